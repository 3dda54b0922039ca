"""Results: what one request for a file gave, and what following its redirects came to."""

from dataclasses import dataclass
from pathlib import Path

from builder.http.errors import NotHad


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The file's bytes, in a temporary file at `path`; digests in hexadecimal digits.

    `size` counts them, `head` is their beginning. `modified` is Last-Modified in seconds since
    1970; `coding` is a content coding that the file itself is kept in (x.ps.gz), None for most.
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


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The server said that the file is as it was (304)."""

    etag: str | None = None
    last_modified: str | None = None
    status: int = 304


@dataclass(frozen=True, slots=True)
class Moved:
    """The server named another URL, as it is in its Location."""

    location: str
    status: int


Final = Content | Unchanged | NotHad
Result = Final | Moved


@dataclass(frozen=True, slots=True)
class Hop:
    """One URL led to another; both are normalised."""

    origin: str
    target: str
    status: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of asking for a URL: the hops on the way, the last URL, and what that one gave."""

    asked: str
    hops: tuple[Hop, ...]
    last: str
    final: Final
