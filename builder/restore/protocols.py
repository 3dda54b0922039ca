"""The seam of restoring: where captures and their bytes come from, a store or an endpoint."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol


@dataclass(frozen=True, slots=True)
class ListedCapture:
    """A capture, as a plan needs it.

    `stamp` is its date in 14 digits, what is not known of it being the least ("" where nothing is).
    `media_type` is without parameters, "" where nothing is known, and `length` the bytes of the
    payload as stored; `digest` is what identifies those. A `revisit` has those of another capture.
    `method` is that of the request where it is no GET: the URL then has the request's arguments.
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
        """Whether it is a redirect, which is no file."""
        return self.status is not None and 300 <= self.status < 400 and bool(self.redirect)


@dataclass(frozen=True, slots=True)
class CaptureFilter:
    """Which captures are restored: of the set, if any, and of a URL that begins as one of `urls`.

    No `urls` stand for all. A host alone stands for all of it, and `*.host` for its subdomains as
    well. `until` are 14 digits, the last second that counts.
    """

    set: str | None
    urls: tuple[str, ...]
    until: str


@dataclass(frozen=True, slots=True)
class CaptureBytes:
    """The bytes of a capture, as a server sent them once, to be read once; `size` if it is known.

    `headers` are the archived response's, by names in lower case, the first of each.
    """

    stream: BinaryIO
    size: int | None
    headers: Mapping[str, str] = field(default_factory=dict)


class CaptureSource(Protocol):
    """Captures of one snapshot, and their bytes. `opened` is safe to use from threads."""

    @property
    def address(self) -> str:
        """What it is, as people write it."""
        ...

    def captures(self, choice: CaptureFilter) -> Iterator[ListedCapture]:
        """Yield the captures of the choice, in any order; one may come twice.

        Raises SheafError where they cannot be had.
        """
        ...

    def of_url(self, url: str, until: str) -> Iterator[ListedCapture]:
        """Yield the captures of one URL, in any order. Raises SheafError."""
        ...

    def open(self, identifier: str, digest: str = "") -> AbstractContextManager[CaptureBytes]:
        """Give the bytes of a capture, codings undone; `digest` is what its listing says.

        The last read raises Missing damaged where the payload has not the digest that its record
        names. Raises Missing for what this one file lacks, SheafError where the source is gone.
        """
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...
