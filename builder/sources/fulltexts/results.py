"""Results of requests, and how a response becomes one: bytes go into a temporary file."""

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from builder.http.errors import FetchError
from builder.http.limits import parse_http_date
from builder.http.responses import Fields, Response
from builder.http.secrets import clean_fields
from builder.obi.content import ExchangeRow
from builder.store.durable import writing

HEAD = 1024
_LONGEST = 1000  # most characters of a header field that are kept
_MOST = 16_384  # most characters of all header fields that are kept
_UNPRINTABLE = dict.fromkeys((*range(32), *range(0xD800, 0xE000)), " ")
_CODED = {"gzip": (".gz", ".tgz"), "x-gzip": (".gz", ".tgz"), "compress": (".z",)}
_CODED |= {"x-compress": (".z",), "bzip2": (".bz2",), "x-bzip2": (".bz2",)}


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
class Hop:
    """One URL led to another; both are in normal form."""

    origin: str
    target: str
    status: int
    exchange: ExchangeRow | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of fetching a URL: the hops on the way, the last URL, and the last result."""

    url: str
    hops: tuple[Hop, ...]
    last: str
    final: Final


def store_body(
    response: Response, coding: str | None, scratch: Path, exchange: ExchangeRow
) -> FileContent:
    """Write the body of a response to a temporary file, which the caller deletes.

    `coding` is the file's own coding. Raises FetchError if the body is empty, and StoreError.
    """
    headers = response.headers
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
        media_type=shorten(headers.get("content-type", "").partition(";")[0].strip().lower()),
        etag=shorten(headers.get("etag")),
        last_modified=shorten(headers.get("last-modified")),
        modified=parse_http_date(headers.get("last-modified")),
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


def file_coding(url: str, headers: Mapping[str, str]) -> str | None:
    """Return the coding of a file that is itself packed (x.ps.gz). Raises FetchError for others."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in {"", "identity", "none", "utf-8", "binary"}:
        return None
    path = unquote(urlsplit(url).path).lower()
    if path.endswith(_CODED.get(coding, ())):
        return coding.removeprefix("x-")
    raise FetchError("content-coding", coding, 200)


def _lines(fields: Fields) -> tuple[str, ...]:
    """Return header fields as text; those beyond `_MOST` characters are left out."""
    lines, left = [], _MOST
    for name, value in clean_fields(fields):
        left -= len(name) + len(value)
        if left < 0:
            break
        lines.append(f"{name}: {value}".translate(_UNPRINTABLE))
    return tuple(lines)


def shorten(text: str | None) -> str | None:
    """Return a header field, None if it is empty or too long to be kept."""
    return text if text and len(text) <= _LONGEST else None
