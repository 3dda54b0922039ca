"""What is asked for again."""

from datetime import datetime

import pytest

from builder.sources.datasets.due import NewestResult, is_due
from builder.sources.datasets.status import STATUSES, may_pass

BEFORE = datetime(2026, 5, 1, 10)


def told(
    status: str = "platform-embargoed", until: str | None = None, *states: str
) -> NewestResult:
    return NewestResult("dataset", "10.5/1", BEFORE, status, until, list(states))


@pytest.mark.parametrize(
    ("until", "due"),
    [
        ("2026-11-22", True),
        ("2026-11-23", False),
        ("2026-11", True),
        ("2026-12", False),
        ("2026", True),
        ("2027", False),
        ("2026-11-22T10:00:00Z", True),
    ],
)
def test_what_was_embargoed_is_due_on_the_first_day_that_is_meant(
    until: str | None, due: bool
) -> None:
    assert is_due(told(until=until), "2026-11-22") is due


@pytest.mark.parametrize("until", [None, "", "soon"])
@pytest.mark.parametrize(
    "row",
    [
        ("platform-embargoed",),
        ("platform-restricted",),
        ("needs-token",),
        ("success-partial", "verified", "withheld"),
        ("success-partial", "file-404", "exists"),
    ],
)
def test_what_is_closed_or_missing_without_a_date_is_due_every_30_days(
    until: str | None, row: tuple[str, ...]
) -> None:
    status, *states = row
    assert not is_due(told(status, until, *states), "2026-05-30")
    assert is_due(told(status, until, *states), "2026-05-31")


def test_an_embargo_ends_by_the_clock_of_its_platform() -> None:
    states = "verified", "withheld"
    assert is_due(told("success-partial", "2026-11-01", *states), "2026-11-22")
    assert is_due(told("success-existing", "2026-11-01"), "2026-11-22")
    for until in ("2026-05-01", "2026-04-30"):  # it was asked for on that day, or a day later
        assert not is_due(told("success-partial", until, *states), "2026-05-01")
        assert is_due(told("success-partial", until, *states), "2026-05-02")
    assert not is_due(told("success-partial", "2026-04-29", *states), "2026-05-30")
    assert not is_due(told("success", "2025"), "2026-11-22")
    assert is_due(told("platform-restricted", "2025"), "2026-11-22")


def test_a_file_that_failed_is_retried() -> None:
    assert may_pass("success-partial", ["verified", "file-forbidden"])
    assert may_pass("success-existing", ["verified", "mismatch-size"])
    assert not may_pass("success-partial", ["verified", "withheld", "unsafe-path"])
    assert not may_pass("platform-restricted", ["file-404"])


def test_what_may_pass_is_what_the_vocabulary_says() -> None:
    assert {name for name in STATUSES if may_pass(name, ())} == {
        name for name, status in STATUSES.items() if status.retryable
    }


def test_a_status_of_a_later_version_is_left_alone() -> None:
    assert not is_due(told("success-odd", "2025"), "2026-11-22")
    assert not may_pass("success-odd", ["file-404"])
