"""Windows: what a run asks for, and what is covered after it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources.harvest import window
from builder.sources.harvest.state import HarvestState
from builder.sources.harvest.window import HarvestDates

DAYS = st.integers(1, 28).map(lambda day: f"2026-11-{day:02}")


def state(covered: window.Covered | None = None, granularity: str = window.SECOND) -> HarvestState:
    return HarvestState(
        "http://a.cz/oai", "oai_dc", None, "parquet", {"granularity": granularity}, covered=covered
    )


def test_datestamps_are_of_utc_in_both_forms() -> None:
    ten = datetime(2026, 11, 22, 10, tzinfo=UTC)
    assert window.to_text(ten, window.SECOND) == "2026-11-22T10:00:00Z"
    assert window.to_text(ten, window.DAY) == "2026-11-22"
    assert window.earlier("2026-11-22T00:00:00Z", 1, window.SECOND) == "2026-11-21T23:59:59Z"
    assert window.earlier("2026-11-22T10:00:00Z", 86_400, window.DAY) == "2026-11-21"
    assert window.earlier("0001-01-01", 86_400, window.DAY) == "0001-01-01"
    assert window.is_before("2026-11-22", "2026-11-22T00:00:01Z")
    assert not window.is_before("2026-11-22", "2026-11-22T00:00:00Z")


@pytest.mark.parametrize(
    ("covered", "asked", "granularity", "expected"),
    [
        (None, HarvestDates(), window.SECOND, (None, None)),
        (
            (None, "2026-11-22T10:00:00Z"),
            HarvestDates(),
            window.SECOND,
            ("2026-11-22T09:00:00Z", None),
        ),
        ((None, "2026-11-22T10:00:00Z"), HarvestDates(), window.DAY, ("2026-11-21", None)),
        ((None, "2026-11-22T10:00:00Z"), HarvestDates(full=True), window.SECOND, (None, None)),
        ((None, "2026-11-22"), HarvestDates("2026-01-01"), window.SECOND, ("2026-01-01", None)),
        (
            None,
            HarvestDates("2026-01-01T10:00:00Z", "2026-02-01T10:00:00Z"),
            window.DAY,
            ("2026-01-01", "2026-02-01"),
        ),
    ],
)
def test_a_run_asks_from_what_is_covered_less_an_overlap(
    covered: window.Covered | None,
    asked: HarvestDates,
    granularity: str,
    expected: tuple[str | None, str | None],
) -> None:
    overlap = window.overlap(None, granularity)
    assert window.plan(state(covered, granularity), asked, overlap) == expected


@pytest.mark.parametrize(
    ("before", "since", "until", "after"),
    [
        (None, None, None, (None, "2026-11-22")),
        (None, "2026-11-01", "2026-11-10", ("2026-11-01", "2026-11-10")),
        (None, None, "2027-01-01", (None, "2026-11-22")),
        (("2026-11-05", "2026-11-10"), "2026-11-09", None, ("2026-11-05", "2026-11-22")),
        (("2026-11-05", "2026-11-10"), "2026-11-01", "2026-11-06", ("2026-11-01", "2026-11-10")),
        (("2026-11-05", "2026-11-10"), "2026-11-12", None, ("2026-11-05", "2026-11-10")),
        (("2026-11-05", "2026-11-10"), None, "2026-11-02", ("2026-11-05", "2026-11-10")),
        (("2026-11-05", "2026-11-10"), None, None, (None, "2026-11-22")),
        ((None, "2026-11-10"), "2026-11-01", "2026-11-03", (None, "2026-11-10")),
    ],
)
def test_what_is_covered_has_no_gaps(
    before: window.Covered | None, since: str | None, until: str | None, after: window.Covered
) -> None:
    assert window.covering(before, since, until, "2026-11-22") == after


@given(st.lists(st.tuples(st.none() | DAYS, st.none() | DAYS), min_size=1, max_size=6))
def test_a_day_is_covered_if_a_run_asked_for_it(runs: list[tuple[str | None, str | None]]) -> None:
    covered: window.Covered | None = None
    days: set[str] = set()
    for since, until in runs:
        if since and until and until < since:
            continue
        covered = window.covering(covered, since, until, "2026-11-29")
        every = [f"2026-11-{day:02}" for day in range(1, 30)]
        days |= {d for d in every if (since or "") <= d <= (until or "9")}
        assert covered is not None
        assert {d for d in every if (covered[0] or "") <= d <= covered[1]} <= days


def test_windows_that_are_refused_become_easier_and_come_to_an_end() -> None:
    begin: str | None = "2020-01-01T00:00:00Z"
    until: str | None = "2027-01-01T00:00:00Z"
    asked = []
    while found := window.easier(begin, until, "2021-01-01", "2026-11-22T10:00:00Z"):
        if found == (begin, until):
            break
        begin, until = found
        asked.append(found)
        assert len(asked) < 9
    assert asked[-1] == (None, None)
    assert ("2021-01-01", None) in asked
    assert window.easier(None, None, "", "2026-11-22T10:00:00Z") is None


@pytest.mark.parametrize(
    ("said", "began"),
    [
        ("2026-11-22T20:00:00Z", "2026-11-22T10:00:00Z"),  # the slower clock counts
        ("2026-11-22T08:00:00Z", "2026-11-22T08:00:00Z"),
        ("2026-11-22", "2026-11-22T00:00:00Z"),
        ("2026-11-20", "2026-11-20T00:00:00Z"),
        *((said, "2026-11-21T10:00:00Z") for said in (None, "now", "soon")),  # a day ago
    ],
)
def test_when_a_list_began(said: str | None, began: str) -> None:
    assert window.beginning(said, "2026-11-22T10:00:00Z") == began
