"""A list as a chain of pages: pure values.

A list is ordered by position. A publish appends a segment of pages, and records that changed leave
their old pages. So a page has a range of positions that never gains a record. It is named by the
first one, and keeps that name as long as it exists.

    LIST/all.json            the chain of all records: [[INSTANT, [FIRST, ...]], ...], ascending
    LIST/all/FIRST.xml       a page of it
    LIST/set/NAME.json       the chain of a set, with its sets below it
    LIST/set/NAME/FIRST.xml  a page of it

A set that is dense in a publish, or short, has no pages of that publish: its segment says "all" as
well, [INSTANT, [FIRST, ...], "all"], and names those pages of the list of all records that have
some of its records. A router answers with these records alone. So the size of a site is bounded:
only what is large and scattered is there twice. A segment never gains a record, so that its form
is decided once.
"""

import json
from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import chain as joined
from itertools import pairwise

from functions.snapshot import instant
from functions.snapshot.manifest import Manifest, Span
from functions.snapshot.seal import refuse_damage

_ALL = "all"
_MOST_REQUESTS = 4
"""How many times as many requests a reader may make where a set shares pages."""


@dataclass(frozen=True, slots=True)
class ChainSegment:
    """The pages of one datestamp, by their first positions, ascending.

    If it `is_shared`, they are pages of the list of all records.
    """

    instant: datetime
    firsts: tuple[int, ...]
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class PageFrame:
    """What a page shows besides its records: whether it is the first, and the page behind it.

    `following` is None on the last page.
    """

    is_first: bool
    following: int | None


@dataclass(frozen=True)
class PageChain:
    """The pages of a list, by segments with ascending instants and positions."""

    segments: tuple[ChainSegment, ...] = ()

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """The first positions of all pages, ascending."""
        return tuple(joined.from_iterable(segment.firsts for segment in self.segments))

    @cached_property
    def shared(self) -> frozenset[int]:
        """The first positions of those pages that are of the list of all records."""
        return frozenset(joined.from_iterable(s.firsts for s in self.segments if s.is_shared))

    @property
    def own(self) -> list[int]:
        """The first positions of its own pages, ascending."""
        return [first for first in self.firsts if first not in self.shared]

    def find_page(self, position: int) -> int | None:
        """Return the page whose range has a position; None if no page has it."""
        place = bisect_right(self.firsts, position)
        return self.firsts[place - 1] if place else None

    def frames(self) -> dict[int, PageFrame]:
        """Return the frame of each page."""
        pages = pairwise((*self.firsts, None))
        return {
            first: PageFrame(first == self.firsts[0], following)
            for first, following in pages
            if first is not None
        }

    def ranges(self, spans: Iterable[tuple[datetime, Span]]) -> dict[int, Span]:
        """Return the positions of each page, given the spans of the segments."""
        ends = {stamp: span.last for stamp, span in spans}
        last = [ends[segment.instant] for segment in self.segments for _ in segment.firsts]
        behind = (*(first - 1 for first in self.firsts[1:]), *last[-1:])
        return {f: Span(f, min(*ends)) for f, *ends in zip(self.firsts, last, behind, strict=True)}

    def select(self, last: int, gone: Collection[int] = ()) -> "PageChain":
        """Return the chain up to a position, without the pages `gone`."""
        parts = (
            replace(s, firsts=tuple(f for f in s.firsts if f <= last and f not in gone))
            for s in self.segments
        )
        return PageChain(tuple(segment for segment in parts if segment.firsts))

    def list_behind(self, last: int) -> list[ChainSegment]:
        """Return the pages behind a position."""
        parts = (replace(s, firsts=tuple(f for f in s.firsts if f > last)) for s in self.segments)
        return [segment for segment in parts if segment.firsts]

    def append(self, *pages: ChainSegment) -> "PageChain":
        """Return the chain with further pages."""
        segments = [*self.segments]
        for part in pages:
            if segments and replace(segments[-1], firsts=part.firsts) == part:
                part = replace(part, firsts=(*segments.pop().firsts, *part.firsts))
            segments.append(part)
        return PageChain(tuple(segments))

    def to_json(self) -> bytes:
        """Return the chain as JSON, as routers read it."""
        rows = [
            [instant.to_text(s.instant), s.firsts, *([_ALL] if s.is_shared else [])]
            for s in self.segments
        ]
        return json.dumps(rows, separators=(",", ":")).encode()

    @staticmethod
    def from_json(data: bytes) -> "PageChain":
        """Parse the output of `to_json`. Raises DamagedStore."""
        with refuse_damage("a list of the site"):
            rows = json.loads(data)
            return PageChain(
                tuple(
                    ChainSegment(instant.from_text(stamp), tuple(firsts), shared == [_ALL])
                    for stamp, firsts, *shared in rows
                )
            )


def list_spans(manifest: Manifest, since: datetime | None) -> list[tuple[datetime, Span]]:
    """Return the datestamps of a list, ascending, and the positions of the records with each.

    `since` is Manifest.since of the format: earlier publishes have that datestamp.
    """
    spans: list[tuple[datetime, Span]] = []
    for publish in manifest.sequences:
        stamp = max(publish.effective, since or publish.effective)
        first = publish.first
        if spans and spans[-1][0] == stamp:
            first = spans.pop()[1].first
        spans.append((stamp, Span(first, publish.last)))
    return [(stamp, span) for stamp, span in spans if span.first <= span.last]


def is_shareable(records: int, pages: int, earlier: int, limit: int) -> bool:
    """Return whether a set shares the `pages` of a publish that have some of its `records`.

    It does if it is dense there: with own pages of `limit` records, a reader would make no fewer
    than a quarter of the requests. And it does if it is short, as long as it has shared so few
    pages, `earlier`, that there is one request for each record of a page at most.
    """
    is_short = records < limit and earlier + pages < limit
    return is_short or pages <= _MOST_REQUESTS * -(-records // limit)
