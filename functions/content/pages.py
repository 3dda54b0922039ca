"""Pages of the index of captures, cut at the bounds of row groups.

Other servers number the blocks of a compressed index (ZipNum). Here the blocks are the row groups
of the table of URLs. Their bounds are in the manifest's leaves. Counting pages therefore reads no
rows, and the last page costs as much as the first. Pages belong to one snapshot: a publish between
two requests may move their bounds. A resume key stays valid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from functions.content.protocols import Bound, BytePlace, Searching
from functions.content.query import Query
from functions.snapshot import layout
from functions.snapshot.manifest import Manifest


@dataclass(frozen=True, slots=True)
class PageBounds:
    """A part of a range of SURTs: from a place, and below a bound (None: to the end)."""

    first: str
    last: str
    start: BytePlace | None = None
    end: Bound | None = None


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a query: its blocks in order, and the number of blocks in a page."""

    blocks: Sequence[PageBounds]
    size: int

    @property
    def count(self) -> int:
        """Number of pages."""
        return -(-len(self.blocks) // self.size)

    def page(self, number: int) -> Iterator[PageBounds]:
        """Yield the blocks of a page, adjacent ones joined; none behind the last page."""
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
    """Return the maximum number of blocks in a page, if an answer has at most that many lines."""
    return max(1, lines // layout.GROUP_ROWS)


def find_pages(asked: Query, search: Searching, manifest: Manifest, lines: int) -> Pages:
    """Return the pages of a query. Raises StoreError."""
    blocks: list[PageBounds] = []
    for first, last in asked.scope.ranges:
        some = [*_blocks(search, manifest, asked, first, last)]
        # The bounds of a single row group do not show whether it has rows in the range.
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
