"""Compaction, without a store: how many runs there are after a year, and what it costs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.compaction import LOOKUP_RATIO, MOST_ROWS, RECORDS_RATIO, Run, plan, runs, tail
from functions.snapshot import layout
from functions.snapshot.manifest import LeafReference, Span

YEAR = 365 * 24  # hours


def leaf(first: int, last: int, rows: int) -> LeafReference:
    key = f"snapshots/leaves/{first}-{last}.json"
    return LeafReference(key, first, last, rows, files=1, bytes=rows, span=(first, last))


def run(first: int, last: int, rows: int | None = None) -> Run:
    return Run(Span(first, last), (leaf(first, last, last - first + 1 if rows is None else rows),))


@dataclass
class Log:
    """A log of publishes; `dead` positions are superseded. Counts what is written."""

    runs: list[Run] = field(default_factory=list)
    dead: set[int] = field(default_factory=set)
    last: int = 0
    published: int = 0
    written: int = 0
    most: int = 0

    def live(self, span: Span) -> int:
        count = span.last - span.first + 1
        return count - sum(span.first <= position <= span.last for position in self.dead)

    def publish(self, fresh: int) -> None:
        """Carry out what the plan says for `fresh` new rows."""
        mine = Span(self.last + 1, self.last + fresh)
        found = list(self.runs)
        for rewrite in plan(self.runs, fresh, self.live):
            span = rewrite.span(mine)
            listed = sum(self.live(one.span) for one in rewrite.runs)
            rows = listed + (fresh if rewrite.fresh else 0)
            at = found.index(rewrite.runs[0]) if rewrite.runs else len(found)
            found[at : at + len(rewrite.runs)] = [run(span.first, span.last, rows)] if rows else []
            self.written += rows
        self.runs, self.last = found, mine.last
        self.published += fresh
        self.most = max(self.most, len(found))


def test_leaves_of_one_stretch_are_one_run() -> None:
    leaves = [leaf(1, 5, 3), leaf(1, 5, 2), leaf(6, 9, 4)]
    assert [(r.span, r.rows, len(r.leaves)) for r in runs(leaves)] == [
        (Span(1, 5), 5, 2),
        (Span(6, 9), 4, 1),
    ]
    assert runs([]) == []


@pytest.mark.parametrize(
    ("rows", "fresh", "most", "count"),
    [
        ([], 5, None, 0),
        ([9], 5, None, 1),
        ([10], 5, None, 0),
        ([100, 20, 9], 5, None, 2),  # 9 joins 5, so that 20 joins 14
        ([100, 5, 20, 1], 5, None, 1),  # what lies behind a large one is not looked at
        ([9], 5, 13, 0),
        ([9], 5, 14, 1),
    ],
)
def test_the_tail_is_what_is_not_much_larger(
    rows: list[int], fresh: int, most: int | None, count: int
) -> None:
    assert tail(rows, fresh, 2, most) == count


def test_a_run_of_which_half_is_superseded_is_rewritten_where_it_lies() -> None:
    large, size = 1 << 20, 1 << 20
    some = [run(1, size), run(size + 1, size + large // 2), run(2 * size, 2 * size + 9999)]
    listed = {1: size // 2 - layout.GROUP_ROWS, size + 1: large // 2, 2 * size: 10_000}
    found = plan(some, 1, lambda span: listed[span.first])
    assert [(r.runs, r.fresh) for r in found] == [((some[0],), False), ((), True)]
    assert found[0].span(Span(9, 9)) == some[0].span
    # One row more, and it stays.
    listed[1] += layout.GROUP_ROWS
    assert plan(some, 1, lambda span: listed[span.first])[:-1] == []


def test_a_run_of_which_nothing_is_left_is_dropped() -> None:
    some = [run(1, 5), run(6, 100_000)]
    (first, last) = plan(some, 1, lambda span: 0 if span.first == 1 else 90_000)
    assert (first.runs, first.fresh) == ((some[0],), False)
    assert (last.runs, last.fresh) == ((), True)


@pytest.mark.parametrize("rows", [1, 1_000], ids=["one", "a-thousand"])
def test_a_year_of_hourly_publishes(rows: int) -> None:
    """Never more runs than doublings, and no row is rewritten more often than that."""
    log = Log()
    for _ in range(YEAR):
        log.publish(rows)
    doublings = math.log2(YEAR)
    full = log.last / (MOST_ROWS / 3)  # runs that have grown to their end
    assert log.most <= doublings + full + 2
    assert log.written <= (doublings + 2) * log.published


@given(st.lists(st.integers(1, 3_000), min_size=1, max_size=300))
def test_publishes_of_any_size(sizes: list[int]) -> None:
    log = Log()
    for fresh in sizes:
        log.publish(fresh)
        spans = [one.span for one in log.runs]
        assert [s.first for s in spans] == [1, *(s.last + 1 for s in spans[:-1])]
        assert spans[-1].last == log.last
        doublings = math.log2(log.published / min(sizes))
        assert len(log.runs) <= doublings + 2
    assert log.written <= (math.log2(log.published) + 2) * log.published


@pytest.mark.parametrize("ratio", [RECORDS_RATIO, LOOKUP_RATIO])
def test_any_run_is_followed_by_much_smaller_ones(ratio: int) -> None:
    sizes: list[int] = []
    for fresh in _hourly():
        count = tail(sizes, fresh, ratio)
        sizes[len(sizes) - count :] = [sum(sizes[len(sizes) - count :]) + fresh]
        assert all(sizes[i] >= ratio * sum(sizes[i + 1 :]) for i in range(len(sizes) - 1))
        assert len(sizes) <= math.log(sum(sizes), ratio) + 2


def _hourly() -> Iterator[int]:
    for hour in range(YEAR):
        yield 1 + (hour * 7919) % 97


def test_changed_items_do_not_pile_up() -> None:
    """The same thousand items change again and again: what is stored stays a few times that."""
    log, at = Log(), list[int]()
    chosen: Callable[[int], range] = lambda n: range(n * 37 % 10, 1_000, 10)  # noqa: E731
    log.publish(1_000)
    at = list(range(1, 1_001))
    for number in range(2_000):
        mine = chosen(number)
        log.dead.update(at[item] for item in mine)
        for place, item in enumerate(mine):
            at[item] = log.last + 1 + place
        log.publish(len(mine))
        log.dead = {p for p in log.dead if any(r.span.first <= p <= r.span.last for r in log.runs)}
    stored = sum(one.rows for one in log.runs)
    assert stored <= 2 * 1_000 + layout.GROUP_ROWS * len(log.runs)
    assert len(log.runs) <= 12
    assert sum(log.live(one.span) for one in log.runs) == 1_000
