"""Pages of the index of captures: a search cut at the bounds of row groups.

Other servers number the blocks of a compressed index (ZipNum); here the row groups of the table of
URLs are the blocks. Their bounds stand in the manifest's leaves, so that pages are counted without
reading a row, and the last page costs what the first does. Pages are of one snapshot: a publish
between two requests may move their bounds, which a resume key's place survives.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from functions.content.protocols import Bound, BytePlace, Searching
from functions.content.query import Query
from functions.snapshot import layout
from functions.snapshot.manifest import Manifest


@dataclass(frozen=True, slots=True)
class PageBounds:
    """A part of a range of SURTs: from a place on, and below a bound (None: to the end)."""

    first: str
    last: str
    start: BytePlace | None = None
    end: Bound | None = None


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a query: their blocks in order, and how many blocks a page has."""

    blocks: Sequence[PageBounds]
    size: int

    @property
    def count(self) -> int:
        """How many pages there are."""
        return -(-len(self.blocks) // self.size)

    def page(self, number: int) -> Iterator[PageBounds]:
        """Yield the blocks of a page, those that meet as one; none behind the last page."""
        joined: PageBounds | None = None
        for block in self.blocks[number * self.size :][: self.size]:
            if joined is not None and (joined.first, joined.last) == (block.first, block.last):
                joined = replace(joined, end=block.end)
                continue
            if joined is not None:
                yield joined
            joined = block
        if joined is not None:
            yield joined


def largest(lines: int) -> int:
    """Return how many blocks a page may have where an answer may have so many lines."""
    return max(1, lines // layout.GROUP_ROWS)


def find_pages(asked: Query, search: Searching, manifest: Manifest, lines: int) -> Pages:
    """Return the pages of a query. Raises StoreError."""
    blocks: list[PageBounds] = []
    for first, last in asked.scope.ranges:
        some = [*_blocks(search, manifest, asked, first, last)]
        # Whether a single row group has anything of the range is known by looking only.
        if len(some) > 1 or (some and _has_rows(search, manifest, asked, some[0])):
            blocks += some
    if asked.closest is not None:
        return Pages(blocks[:1], 1)
    return Pages(blocks, min(asked.page_size, largest(lines)))


def _blocks(
    search: Searching, manifest: Manifest, asked: Query, first: str, last: str
) -> Iterator[PageBounds]:
    starts = search.starts(manifest, first, last, asked.since, asked.until)
    for number, (surt, stamp) in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else None
        yield PageBounds(first, last, BytePlace(surt, stamp, -1) if number else None, end)


def _has_rows(search: Searching, manifest: Manifest, asked: Query, block: PageBounds) -> bool:
    place = block.start
    while True:
        found = search.page(
            manifest, block.first, block.last, place, 1, asked.since, asked.until, end=block.end
        )
        if found.captures or found.after is None:
            return bool(found.captures)
        place = found.after
