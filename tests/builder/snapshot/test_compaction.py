"""Compaction by the numbers alone: few runs, and little that is written again."""

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from builder.snapshot import compaction
from builder.snapshot.compaction import LOOKUP_RATIO, MOST_ROWS, RECORDS_RATIO, LeafRun, Rewrite
from functions.snapshot import layout
from functions.snapshot.manifest import LeafReference, Span

YEAR = 365 * 24  # publishes, one an hour
sizes = st.integers(1, 5_000)


def leaf(first: int, last: int, rows: int | None = None, part: int = 0) -> LeafReference:
    """Return a leaf of a run; with `rows` fewer are listed than the stretch has."""
    count = last - first + 1 if rows is None else rows
    return LeafReference(f"{first}-{last}-{part}", first, last, count, 1, count, (first, last))


def published(rows: list[int], ratio: int, most: int | None = None) -> tuple[list[int], int, int]:
    """Publish as many rows each time: the runs in the end, the most there were, rows written."""
    runs: list[int] = []
    longest = written = 0
    for fresh in rows:
        count = compaction.runs_to_merge(runs, fresh, ratio, most)
        merged = sum(runs[len(runs) - count :]) + fresh
        runs[len(runs) - count :] = [merged]
        written += merged
        longest = max(longest, len(runs))
    assert sum(runs) == sum(rows)
    return runs, longest, written


def bound(total: int, ratio: int) -> float:
    """Each run has at least so many times the rows of the next, but for the last."""
    return math.log(total, ratio) + 2


def test_a_year_of_hourly_publishes_leaves_few_runs() -> None:
    for ratio in (RECORDS_RATIO, LOOKUP_RATIO):
        for fresh in (1, 40, 3_000):
            rows = [fresh] * YEAR
            runs, longest, written = published(rows, ratio)
            assert longest <= bound(YEAR, ratio)
            assert len(runs) <= bound(YEAR, ratio)
            # A row is written again whenever its run grows by a factor.
            assert written <= sum(rows) * ratio * (math.log2(YEAR) + 1)


def test_a_year_of_hourly_publishes_behind_a_large_one_leaves_that_alone() -> None:
    large = 150_000_000
    runs, longest, written = published([large, *[100] * YEAR], RECORDS_RATIO, MOST_ROWS)
    assert runs[0] == large
    assert longest <= bound(100 * YEAR, RECORDS_RATIO) + 1
    assert written - large <= 100 * YEAR * 2 * (math.log2(YEAR) + 1)


@given(st.lists(sizes, min_size=1, max_size=400), st.sampled_from([RECORDS_RATIO, LOOKUP_RATIO]))
def test_whatever_is_published_runs_stay_few(rows: list[int], ratio: int) -> None:
    runs, longest, written = published(rows, ratio)
    for older, newer in itertools.pairwise(runs):
        assert older >= ratio * newer
    assert longest <= bound(sum(rows), ratio)
    assert written <= sum(rows) * (ratio * math.log2(sum(rows) + 1) + 1)


@given(st.lists(st.integers(0, MOST_ROWS), max_size=20), st.integers(1, MOST_ROWS))
def test_no_run_grows_beyond_the_most_by_merging(rows: list[int], fresh: int) -> None:
    count = compaction.runs_to_merge(rows, fresh, RECORDS_RATIO, MOST_ROWS)
    assert count == 0 or sum(rows[len(rows) - count :]) + fresh <= MOST_ROWS


def test_leaves_with_one_span_are_one_run() -> None:
    leaves = [leaf(1, 9), leaf(10, 12, part=1), leaf(10, 12, part=2), leaf(13, 13)]
    found = compaction.leaf_runs(leaves)
    assert [run.span for run in found] == [Span(1, 9), Span(10, 12), Span(13, 13)]
    assert [len(run.leaves) for run in found] == [1, 2, 1]
    assert found[1].rows == 6
    assert compaction.leaf_runs([]) == []


def planned(listed: dict[int, int], runs: list[LeafRun], fresh: int) -> list[Rewrite]:
    return compaction.plan_rewrites(runs, fresh, lambda span: listed[span.first])


def test_the_publish_s_own_run_is_last_and_takes_small_ones_along() -> None:
    runs = compaction.leaf_runs([leaf(1, 1000), leaf(1001, 1010), leaf(1011, 1015)])
    plan = planned({1: 1000, 1001: 10, 1011: 5}, runs, fresh=6)
    assert plan == [Rewrite(tuple(runs[1:]), fresh=True)]
    assert plan[0].span(Span(1016, 1021)) == Span(1001, 1021)


def test_a_run_of_which_little_is_listed_is_rewritten_alone() -> None:
    rows = 3 * layout.GROUP_ROWS
    runs = compaction.leaf_runs(
        [leaf(1, rows), leaf(rows + 1, 2 * rows), leaf(2 * rows + 1, 3 * rows)]
    )
    # The first is half superseded and a bit, the second not at all, of the third nothing is left.
    listed = {1: layout.GROUP_ROWS - 1, rows + 1: rows, 2 * rows + 1: 0}
    plan = planned(listed, runs, fresh=1)
    assert plan[0] == Rewrite((runs[0],), fresh=False)
    assert plan[0].span(Span(9, 9)) == runs[0].span
    assert plan[-1].fresh
    assert runs[2] in plan[-1].runs  # nothing listed is less than any publish
    assert all(runs[1] not in rewrite.runs for rewrite in plan)


def test_one_that_is_half_listed_is_left_alone() -> None:
    rows = 3 * layout.GROUP_ROWS
    runs = compaction.leaf_runs([leaf(1, rows)])
    assert planned({1: layout.GROUP_ROWS}, runs, fresh=1) == [Rewrite((), fresh=True)]


def test_a_first_publish_is_a_run_of_its_own() -> None:
    (rewrite,) = planned({}, [], fresh=7)
    assert rewrite == Rewrite((), fresh=True)
    assert rewrite.span(Span(1, 7)) == Span(1, 7)
