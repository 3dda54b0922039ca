"""Criteria as an operator types them, and what they mean for captures of every exactness."""

import pytest

from builder import criterion
from builder.selection import Selection
from functions.oai import engine

SECOND = "2007-11-05T12:30:15Z"


@pytest.mark.parametrize(
    "text",
    ["2007", "2007-11", "2008-02-29", "2007-11-05T12:30Z", SECOND, "2007-11-05T12:30:15.25Z"],
)
def test_dates_of_the_calendar_are_taken(text: str) -> None:
    assert criterion.date(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yesterday", "expected a date such as"),
        ("2007-11-05T12Z", "expected a date such as"),
        ("2007-11-05T12:30:15+01:00", "expected a date such as"),
        ("2013-02-30", "no calendar"),
        ("2007-02-29", "no calendar"),
        ("2014-99", "no calendar"),
        ("0000", "no calendar"),
        ("2014-01-27T99:99:99Z", "no calendar"),
        ("2014-01-26T20:06:24", "ends with Z: expected 2014-01-26T20:06:24Z"),
    ],
)
def test_what_is_no_date_says_why(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        criterion.date(text)


@pytest.mark.parametrize(
    ("start", "end", "is_reversed"),
    [
        ("2015", "2014", True),
        ("2014-03", "2014-02-28", True),
        ("2007-11-05T12:30:16Z", "2007-11-05T12:30:15Z", True),
        ("2007-11-05T12:31:00Z", "2007-11-05T12:30Z", True),
        ("2014", "2014", False),
        ("2014-03", "2014", False),
        ("2014", "2014-03", False),
        ("2007-11-05T12:30:15Z", "2007-11-05T12:30Z", False),
    ],
)
def test_a_range_is_reversed_if_it_is_empty(start: str, end: str, is_reversed: bool) -> None:
    assert criterion.is_reversed(start, end) == is_reversed


@pytest.mark.parametrize(
    ("date", "start", "end", "is_met"),
    [
        # known as well as what is asked for
        ("2007-11-05", "2007-11-05", "2007-11-05", True),
        ("2007-11-05", "2007-11-06", None, False),
        ("2007-11-05", None, "2007-11-04", False),
        # known better: the end includes all of the day, month or year
        (SECOND, "2007-11-05T12:30Z", "2007-11-05T12:30Z", True),
        (SECOND, "2007-11-05T12:31Z", None, False),
        (SECOND, None, "2007-11-05T12:29Z", False),
        (SECOND, "2007", "2007", True),
        (SECOND, "2008", None, False),
        (SECOND, None, "2006", False),
        ("2007-11-05T12:30:15.25Z", SECOND, SECOND, True),
        ("2007-11-05T12:30:15.25Z", "2007-11-05T12:30:16Z", None, False),
        # known less well: what may lie between them does
        ("2007", "2007-03", None, True),
        ("2007", None, "2007-03", True),
        ("2007", "2007-03", "2007-04", True),
        ("2007", "2008-03", None, False),
        ("2007", None, "2006-12", False),
        ("2007-11-05T12:30Z", SECOND, SECOND, True),
        ("2007-11-05T12:30Z", "2007-11-05T12:31:00Z", None, False),
        # not known at all
        (None, "2007", None, False),
        (None, None, "2007", False),
    ],
)
def test_dates_are_compared_as_far_as_the_less_exact_one_says(
    date: str | None, start: str | None, end: str | None, is_met: bool
) -> None:
    condition, values = Selection(start=start, end=end).described()
    with engine.connect() as connection:
        sql = f"SELECT coalesce({condition}, false) FROM (SELECT $date::VARCHAR AS fetch_date)"
        assert connection.execute(sql, {**values, "date": date}).fetchone() == (is_met,)
