"""Stretches of bytes, held against plain sets of numbers."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from functions.store import scratch
from functions.store.scratch import Extent

numbers = st.integers(0, 60)
extents = st.lists(st.builds(lambda a, n: Extent(a, a + n), numbers, st.integers(0, 20)))


def covered(some: object) -> set[int]:
    return {n for one in some for n in range(one.start, one.end)}  # type: ignore[attr-defined]


@given(extents)
def test_merged_is_the_same_bytes_in_order_and_apart(some: list[Extent]) -> None:
    found = scratch.merge_extents(some)
    assert covered(found) == covered(some)
    assert all(a.end < b.start for a, b in pairwise(found))
    assert all(one.length > 0 for one in found)


@given(extents, st.integers(0, 10), numbers)
def test_merging_over_gaps_adds_gaps_only(some: list[Extent], gap: int, size: int) -> None:
    found = scratch.merge_extents(some, gap, size)
    wanted = {n for n in covered(some) if n < size}
    assert wanted <= covered(found) <= set(range(size))
    assert all(b.start - a.end > gap for a, b in pairwise(found))
    if not gap:
        assert covered(found) == wanted


@given(extents, extents)
def test_missing_is_what_is_wanted_and_not_there(wanted: list[Extent], there: list[Extent]) -> None:
    found = scratch.missing_extents(wanted, scratch.merge_extents(there))
    assert covered(found) == covered(wanted) - covered(there)


@given(extents, st.integers(1, 7))
def test_parts_are_the_same_bytes_in_small_pieces(some: list[Extent], most: int) -> None:
    merged = scratch.merge_extents(some)
    found = scratch.cut_extents(merged, most)
    assert covered(found) == covered(merged)
    assert sum(one.length for one in found) == sum(one.length for one in merged)
    assert all(0 < one.length <= most for one in found)
