"""The seams of content: where the bytes of archive files are read, and what bytes an item has."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Protocol

from functions.content.capture import CaptureRow
from functions.oai.repository import PublishedRecord
from functions.snapshot.manifest import Manifest


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes of an object: its address, as people write it, from where, how many (None: to its end).

    `bucket` and `key` name the object where it lies in a bucket, and only there.
    """

    address: str
    offset: int
    length: int | None
    bucket: str = ""
    key: str = ""


NEWEST = 99_999_999_999_999
"""The highest stamp that there is."""


@dataclass(frozen=True, slots=True, order=True)
class BytePlace:
    """A place in the order of the table of URLs (schema.ORDER): where a search goes on behind."""

    surt: str
    stamp: int
    position: int


Bound = tuple[str, int]
"""A SURT, cut as a Place has it, and a date in 14 digits: where blocks of the table meet."""


@dataclass(frozen=True, slots=True)
class CapturePlace:
    """What a search found, and where the next one goes on; None at the end of the range."""

    captures: Sequence[CaptureRow]
    after: BytePlace | None


class Searching(Protocol):
    """Finds the live captures of a snapshot by SURT and date. Safe to use from threads.

    A range is of SURTs, `first` included and `last` not; `since` and `until` are dates in 14
    digits, both included (a capture without a date has 0). The order is that of the first
    schema.SURT_LONGEST characters of the SURT, of date, and of position. Both methods raise
    StoreError.
    """

    def captures(
        self,
        manifest: Manifest,
        first: str,
        last: str,
        after: BytePlace | None,
        limit: int,
        since: int = 0,
        until: int = NEWEST,
    ) -> Sequence[CaptureRow]:
        """Return the first `limit` captures of the range behind `after`; fewer at its end only."""
        ...

    def page(
        self,
        manifest: Manifest,
        first: str,
        last: str,
        after: BytePlace | None,
        limit: int,
        since: int = 0,
        until: int = NEWEST,
        *,
        reverse: bool = False,
        end: Bound | None = None,
    ) -> CapturePlace:
        """Return up to `limit` captures of the range behind `after`, and where to go on.

        With `end` the range ends there at the latest; that is not for reverse order. In `reverse`
        order captures begin at the end, and `after` is what they lie before. There may be fewer
        than `limit`, even none, before the range's end: what one call reads is bounded.
        """
        ...

    def starts(
        self, manifest: Manifest, first: str, last: str, since: int = 0, until: int = NEWEST
    ) -> Sequence[Bound]:
        """Return where the blocks of the range begin, ascending; none where it has no rows.

        Between two of them lies at most one row group of each run of the table. Only the
        manifest's leaves are read for it.
        """
        ...

    def matching(self, pattern: str, texts: Sequence[str], whole: bool) -> Sequence[bool]:
        """Tell of each text whether a regular expression of RE2 matches it, wholly or anywhere.

        Raises QueryError for what is no expression.
        """
        ...


class Archives(Protocol):
    """Reads archive files, wherever they lie. Safe to use from threads."""

    def candidates(self, filename: str) -> Sequence[str]:
        """Return the addresses at which the archive file of that name may lie, likeliest first."""
        ...

    def open(self, address: str, offset: int, length: int | None) -> BinaryIO:
        """Return these bytes of a file, read forwards by one range; it is to be closed.

        Raises ContentError not-at-hand where no such file is there, StoreError where what should
        have it does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of an item, described; they are read when it is opened.

    `media_type` is as archived or as the platform said it ("" where nothing is known); `headers`
    are the archived response's in their order and letters, none for what is no response. `digest`
    is by what the bytes are known ("sha1:" and base32, "sha256:" and hexadecimal), and tells
    states apart; `size` is how many bytes `opened` gives, where that is known before. `capture` is
    there for one, and `original` for a revisit, whose bytes they then are. `stretch` says where
    they lie as they are, with no coding to be undone; None where they are packed in any way.
    """

    identifier: str
    url: str
    date: datetime | None
    status: int | None
    media_type: str
    headers: Sequence[tuple[str, str]]
    digest: str
    size: int | None
    capture: CaptureRow | None = None
    original: CaptureRow | None = None
    stretch: ByteRange | None = None
    told: Mapping[str, str] = field(default_factory=dict)
    """What else is known: `truncated` why bytes are missing, `damaged` what failed in their member,
    `coded` which codings the payload bears as it is stored, by its head, the last applied last."""


class Contents(Protocol):
    """Gives the bytes of a snapshot's items. Safe to use from threads."""

    def find(
        self,
        manifest: Manifest,
        record: PublishedRecord | None,
        *,
        file: str = "",
        at: datetime | None = None,
    ) -> Content:
        """Return what is known of the bytes of a listed record, without reading all of them.

        `file` chooses one of a dataset's, by its path, or of a template's, by its URL. `at` gives
        what a file behind a URL was at that time (None: the last version). Raises ContentError,
        StoreError.
        """
        ...

    def open_content(
        self, content: Content, *, coded: bool = False, verified: bool = True
    ) -> AbstractContextManager[BinaryIO]:
        """Give the bytes as a stream that is read forwards.

        Transfer and content codings are undone, or are left (`coded`: the payload as it is
        stored). Where it is `verified`, the last read raises ContentError damaged if the payload as
        stored has not the digest that its record names. Raises ContentError, StoreError.
        """
        ...
