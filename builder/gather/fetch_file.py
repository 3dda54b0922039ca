"""Fetching a URL and the redirects to its file; the bytes go into a temporary file.

A batch requests each URL on the way once.
"""

import hashlib
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from builder.gather.rules import NO_RULES, GatherRules
from builder.http.client import FetchRequest, HttpClient
from builder.http.errors import FetchError
from builder.http.limits import Limits, parse_http_date
from builder.http.responses import REDIRECTS, Fields, Response
from builder.http.url import Redirects
from builder.intake.intake import writing
from builder.obi.content import ExchangeRow

HEAD = 1024
_LONGEST = 1000  # most characters of a header field that are kept
_MOST = 16_384  # most characters of all header fields that are kept
_UNPRINTABLE = dict.fromkeys((*range(32), *range(0xD800, 0xE000)), " ")
_CODED = {"gzip": (".gz", ".tgz"), "x-gzip": (".gz", ".tgz"), "compress": (".z",)}


_CODED |= {"x-compress": (".z",), "bzip2": (".bz2",), "x-bzip2": (".bz2",)}
_ACCEPT = {"Accept": "*/*", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """The bytes of a file, in a temporary file at `path`; digests in hexadecimal digits.

    `size` is the number of bytes, `head` their beginning. `modified` is Last-Modified in seconds
    since 1970. `coding` is a content coding of the file itself (x.ps.gz), None for most files.
    """

    path: Path
    size: int
    md5: str
    sha256: str
    head: bytes
    media_type: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    modified: int | None = None
    coding: str | None = None
    status: int = 200
    exchange: ExchangeRow | None = None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The server said that the file is unchanged (304)."""

    etag: str | None = None
    last_modified: str | None = None
    status: int = 304


@dataclass(frozen=True, slots=True)
class Moved:
    """The server named another URL in its Location."""

    location: str
    status: int
    exchange: ExchangeRow | None = None


Final = FileContent | Unchanged | FetchError
Result = Final | Moved


@dataclass(frozen=True, slots=True)
class Known:
    """The validators of the last response, for a conditional request."""

    etag: str | None = None
    last_modified: str | None = None

    def headers(self) -> dict[str, str]:
        """Return the header fields that request the file only if it changed."""
        found = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {n: v for n, v in found.items() if v and v.isascii() and v.isprintable()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFetcher:
    """Fetches files into the folder `scratch`; with `obey`, robots.txt decides."""

    client: HttpClient
    limits: Limits
    scratch: Path
    obey: bool = True
    rules: GatherRules = NO_RULES

    def fetch(self, url: str, known: Known, until: float) -> Result:
        """Request a URL in normal form once, and return the result; failures are values.

        Raises Deferred if its host must not be asked before `until`.
        """
        request = FetchRequest(url=url, limits=self.limits, headers=_ACCEPT, until=until)
        host = urlsplit(url).hostname or ""
        try:
            if self.rules.excludes(host):
                raise FetchError("excluded", host)
            if seconds := self.rules.seconds(host):
                self.client.hosts.slow_down(host, seconds)
            if self.obey:
                self.client.obey(request)
            return self._ask(request, known)
        except FetchError as failure:
            return failure.copy()

    def _ask(self, request: FetchRequest, known: Known) -> Result:
        conditions = known.headers()
        with self.client.ask(replace(request, headers={**_ACCEPT, **conditions})) as response:
            status, said = response.status, response.headers
            if status == 304 and conditions:
                return Unchanged(_short(said.get("etag")), _short(said.get("last-modified")))
            if status in REDIRECTS:
                if response.location is None:
                    raise FetchError("bad-redirect", "no Location", status)
                return Moved(response.location, status, self._exchange(response))
            if status != 200:
                raise self.client.refusal(response)
            return self._store(response)

    def _store(self, response: Response) -> FileContent:
        """Write the body to a temporary file, which the caller deletes."""
        length, limits = response.headers.get("content-length", ""), self.limits
        coding = file_coding(response.url, response.headers)
        if length.isascii() and length.isdigit() and int(length) > limits.bytes:
            raise FetchError("too-large", f"{int(length):,} bytes", 200)
        return store_body(response, coding, self.scratch, self._exchange(response))

    def _exchange(self, response: Response) -> ExchangeRow:
        return exchange_row(response, int(self.client.wall()))


def store_body(
    response: Response, coding: str | None, scratch: Path, exchange: ExchangeRow
) -> FileContent:
    """Write the body of a response to a temporary file, which the caller deletes.

    `coding` is the file's own coding. Raises FetchError if the body is empty, and StoreError.
    """
    said = response.headers
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    head, many = b"", 0
    with (
        writing(scratch),
        tempfile.NamedTemporaryFile(dir=scratch, prefix="fobi-", delete=False) as file,
    ):
        path = Path(file.name)
        try:
            for chunk in response.body:
                md5.update(chunk)
                sha256.update(chunk)
                many += len(chunk)
                if len(head) < HEAD:
                    head += chunk[: HEAD - len(head)]
                file.write(chunk)
            if not many:
                raise FetchError("empty", status=200)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return FileContent(
        path=path,
        size=many,
        md5=md5.hexdigest(),
        sha256=sha256.hexdigest(),
        head=head,
        media_type=_short(said.get("content-type", "").partition(";")[0].strip().lower()),
        etag=_short(said.get("etag")),
        last_modified=_short(said.get("last-modified")),
        modified=parse_http_date(said.get("last-modified")),
        coding=coding,
        exchange=exchange,
    )


def exchange_row(response: Response, at: int) -> ExchangeRow:
    """Return the headers of a response, which was received `at`, in seconds since 1970."""
    return ExchangeRow(
        id=response.url,
        at=at,
        status=response.status,
        reason=response.reason,
        address=response.address,
        sent=_lines(response.sent),
        headers=_lines(response.raw),
    )


def file_coding(url: str, said: Mapping[str, str]) -> str | None:
    """Return the coding of a file that is itself packed (x.ps.gz). Raises FetchError for others."""
    coding = said.get("content-encoding", "").strip().lower()
    if coding in {"", "identity", "none", "utf-8", "binary"}:
        return None
    path = unquote(urlsplit(url).path).lower()
    if path.endswith(_CODED.get(coding, ())):
        return coding.removeprefix("x-")
    raise FetchError("content-coding", coding, 200)


def _lines(fields: Fields) -> tuple[str, ...]:
    """Return header fields as text; those beyond `_MOST` characters are left out."""
    found, left = [], _MOST
    for name, value in fields:
        left -= len(name) + len(value)
        if left < 0:
            break
        found.append(f"{name}: {value}".translate(_UNPRINTABLE))
    return tuple(found)


def _short(text: str | None) -> str | None:
    return text if text and len(text) <= _LONGEST else None


@dataclass(frozen=True, slots=True)
class Hop:
    """One URL led to another; both are in normal form."""

    origin: str
    target: str
    status: int
    exchange: ExchangeRow | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of fetching a URL: the hops on the way, the last URL, and the last result."""

    asked: str
    hops: tuple[Hop, ...]
    last: str
    final: Final


@dataclass(slots=True)
class Once:
    """Requests each URL once. Safe to use from threads.

    `ask` gets the URL, and the one whose redirects led to it. A thread may wait for a URL that
    another thread is requesting. A requesting thread waits for no other URL, so there is no
    deadlock.
    """

    ask: Callable[[str, str], Result]
    known: Mapping[str, Result] = field(default_factory=dict)
    """Results that are known already."""
    _asked: dict[str, "Future[Result]"] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def follow(self, url: str) -> Fetched:
        """Return the result of a URL and of its redirects. Raises Deferred."""
        return follow_redirects(url, lambda one: self(one, url))

    def __call__(self, url: str, asked: str) -> Result:
        """Return the result of the URL. Raises Deferred if its host must not be asked now."""
        if url in self.known:
            return self.known[url]
        with self._lock:
            known = self._asked.get(url)
            mine: Future[Result] = Future()
            if known is None:
                self._asked[url] = mine
        if known is not None:
            return known.result()
        try:
            result = self.ask(url, asked)
        except BaseException as error:
            with self._lock:
                del self._asked[url]
            mine.set_exception(error)
            raise
        mine.set_result(result)
        return result


def follow_redirects(url: str, ask: Callable[[str], Result]) -> Fetched:
    """Request a URL and follow its redirects. Raises Deferred.

    A fault of a redirect is a failure of the first URL.
    """
    hops: list[Hop] = []
    way = Redirects(url)
    while True:
        origin = way.last
        result = ask(origin)
        if not isinstance(result, Moved):
            return Fetched(url, tuple(hops), origin, result)
        try:
            target = way.follow(result.location, result.status)
        except FetchError as failure:
            return Fetched(url, tuple(hops), origin, failure.copy())
        hops.append(Hop(origin, target, result.status, result.exchange))
