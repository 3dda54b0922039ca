"""Protocols of a restore: the source of captures and their bytes, a store or an endpoint."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol


@dataclass(frozen=True, slots=True)
class ListedCapture:
    """A capture as needed for a plan.

    `stamp` is its date in 14 digits; unknown parts have the lowest value ("" if all is unknown).
    `media_type` is without parameters, "" if unknown. `length` is the size of the stored payload in
    bytes; `digest` identifies the payload. The payload of a `revisit` is that of another capture.
    `method` is the request's method unless it is GET: the URL then includes the request's
    arguments.
    """

    identifier: str
    url: str
    surt: str
    stamp: str
    status: int | None
    redirect: str | None
    digest: str
    media_type: str
    length: int | None
    revisit: bool = False
    method: str | None = None

    @property
    def leads(self) -> bool:
        """Whether it is a redirect, which has no file."""
        return self.status is not None and 300 <= self.status < 400 and bool(self.redirect)


@dataclass(frozen=True, slots=True)
class CaptureFilter:
    """Filter of captures by set (if any), and by the prefixes `urls`.

    Without `urls` all captures match. A host name matches the whole host, and `*.host` its
    subdomains as well. `until` has 14 digits: the last second that matches.
    """

    set: str | None
    urls: tuple[str, ...]
    until: str


@dataclass(frozen=True, slots=True)
class CaptureBytes:
    """The bytes of a capture as the server sent them, to be read once; `size` is None if unknown.

    `headers` are those of the archived response, by names in lower case, the first of each.
    """

    stream: BinaryIO
    size: int | None
    headers: Mapping[str, str] = field(default_factory=dict)


class CaptureSource(Protocol):
    """Captures of one snapshot, and their bytes. `open` is thread-safe."""

    @property
    def address(self) -> str:
        """The address, as the user writes it."""
        ...

    def captures(self, choice: CaptureFilter) -> Iterator[ListedCapture]:
        """Yield the captures of the choice, in any order, perhaps with duplicates.

        Raises SheafError if the source is unavailable.
        """
        ...

    def of_url(self, url: str, until: str) -> Iterator[ListedCapture]:
        """Yield the captures of one URL, in any order. Raises SheafError."""
        ...

    def open(self, identifier: str, digest: str = "") -> AbstractContextManager[CaptureBytes]:
        """Open the bytes of a capture, with codings decoded; `digest` comes from its listing.

        Raises MissingError if this file is unavailable, SheafError if the source is. The last read
        raises MissingError damaged if the payload does not match the digest of its record.
        """
        ...

    def close(self) -> None:
        """Close connections and files."""
        ...
