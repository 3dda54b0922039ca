"""Archive files on web servers: finds them by http:// and https:// URLs, and opens them.

fsspec's HTTP files send no validator with a range, so a file that is replaced would be read as a
mixture, and they connect past the address guard.
"""

import io
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

from builder.errors import UsageError
from builder.http.addresses import PublicAddresses, networks
from builder.http.client import HttpClient, agent_of, user_agent
from builder.http.errors import Deferred, FetchError, ReplacedError
from builder.http.politeness import HostPolicy, HostQueue
from builder.http.ranges import RangeClient, WebFile
from builder.http.secrets import strip_secrets
from builder.http.settings import HttpSettings, http_settings, proxies
from builder.http.url import is_address
from builder.sources.webarchives.ingest import splits
from builder.sources.webarchives.ingest.splits import ArchiveFile
from builder.store.durable import writing
from functions.config.configuration import Configuration, default
from functions.store.window_stream import RangeFile

_BUFFER = 1 << 18  # bytes
_FORGIVES = 60.0  # seconds for which an unreachable host is not requested
_LOCK = threading.Lock()
_CONTACT = "repository.admin_emails"


def find(source: str, settings: Configuration, environment: Mapping[str, str]) -> list[ArchiveFile]:
    """Return the file at a URL; if it cannot be looked up, it has a flaw.

    Its label has no signatures and tokens: labels are published. Raises UsageError for a URL that
    cannot be requested.
    """
    url = source.partition("#")[0].strip()
    label = strip_secrets(url)
    _check(url, label)
    parts = urlsplit(url)
    path = Path(Path(unquote(parts.path)).name or parts.hostname or "")
    file = ArchiveFile(path, label, 0, 0, url, named=True)
    web = _connect(url, settings, environment)
    try:
        with _wrap_failures():
            web_file = web.look_up(url)
        file = replace(file, bytes=web_file.size or 0, modified=_number(web_file))
        if web_file.ranged and file.bytes >= splits.RANGED_FROM:
            with _open_ranges(web, url, web_file, None) as stream:
                return [replace(file, ranged=splits.is_ranged(stream, file.is_likely))]
    except OSError as error:
        return [replace(file, flaw=str(error))]
    return [file]


def open_file(
    file: ArchiveFile,
    settings: Configuration,
    environment: Mapping[str, str],
    end: int | None,
    spool: Path,
) -> io.BufferedReader:
    """Open a file as a seekable stream that fetches ranges up to `end` (None: the file's end).

    It reads behind `end` when asked to, in small ranges. Without ranges, the file is first written
    to a temporary file in `spool`. Raises OSError if the file is unavailable, as does the stream if
    it is replaced while it is read. Raises StoreError if `spool` cannot be written.
    """
    web = _connect(file.address, settings, environment)
    with _wrap_failures():
        web_file = web.look_up(file.address)
        if (web_file.size or 0, _number(web_file)) != (file.bytes, file.modified):
            raise ReplacedError
    if web_file.ranged:
        return _open_ranges(web, file.address, web_file, end)
    with writing(spool):
        target = tempfile.TemporaryFile(dir=spool)  # noqa: SIM115 - the caller closes it
    try:
        with _wrap_failures(), writing(spool):
            web.save(file.address, target, web_file)
        target.seek(0)
    except BaseException:
        target.close()
        raise
    return cast(io.BufferedReader, target)


def _connect(url: str, settings: Configuration, environment: Mapping[str, str]) -> RangeClient:
    """Return the client for a URL, whose host may have any address; its redirects may not."""
    http, behind = http_settings(settings, "ingest"), proxies(environment)
    agent = user_agent(settings)
    if settings[_CONTACT] == default(_CONTACT):  # the configuration names no operator
        agent = agent_of("(sheaf ingest)")
    with _LOCK:
        web, named = _client(http, agent, tuple(sorted(environment.items())))
        proxy = behind.of_url(url)
        named |= {urlsplit(url).hostname or "", proxy.host if proxy else ""}
    return web


@contextmanager
def _wrap_failures() -> Iterator[None]:
    """Raise failures as OSError, as those of one unreadable file."""
    try:
        yield
    except ReplacedError as error:
        raise OSError(splits.REPLACED) from error
    except FetchError as error:
        raise OSError(f"{error.code}: {error.detail}".removesuffix(": ")) from error
    except Deferred as error:
        raise OSError(f"{error}: it asked for a pause over http.wait_seconds") from error


@lru_cache(maxsize=8)
def _client(
    settings: HttpSettings, agent: str, environment: tuple[tuple[str, str], ...]
) -> tuple[RangeClient, set[str]]:
    stop = threading.Event()
    policy = HostPolicy(settings.host_seconds, settings.host_concurrent, forgives=_FORGIVES)
    addresses = PublicAddresses(frozenset(settings.ports), networks(settings.allow_networks))
    client = HttpClient(
        agent=agent,
        addresses=addresses,
        hosts=HostQueue(policy, stop),
        stop=stop,
        keep_alive=True,
        proxies=proxies(dict(environment)),
    )
    return RangeClient(client, settings.limits(), settings.retry_policy()), addresses.named


def _check(url: str, label: str) -> None:
    """Raise UsageError for a URL that cannot be requested; a password is not repeated."""
    try:
        parts = urlsplit(url)
        has_user = "@" in parts.netloc
    except ValueError as error:
        raise UsageError(f"{label}: {error}") from error
    if has_user:
        raise UsageError(
            f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}: a URL with a user or "
            "a password is refused, because the address of a source is published"
        )
    if not is_address(url):
        raise UsageError(f"{label}: expected a URL with a host, and %XX for other characters")


def _open_ranges(
    web: RangeClient, url: str, web_file: WebFile, end: int | None
) -> io.BufferedReader:
    def read(start: int, length: int) -> bytes:
        with _wrap_failures():
            return web.read(url, start, length, web_file)

    return io.BufferedReader(RangeFile(read, web_file.size or 0, end), _BUFFER)


def _number(web_file: WebFile) -> int:
    return splits.number_validator(web_file.validator) if web_file.validator else 0
