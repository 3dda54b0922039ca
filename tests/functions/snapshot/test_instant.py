"""Instants as text."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from functions.snapshot.instant import from_datestamp, from_digits, to_digits


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-22", datetime(2026, 11, 22, tzinfo=UTC)),
        ("2026-11-22T10:00:01Z", datetime(2026, 11, 22, 10, 0, 1, tzinfo=UTC)),
        ("0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
        ("2026-02-30", None),
        ("2026-11-22T24:30:00Z", None),
        ("2026-11-22T10:00:01", None),
        ("2026-11-22T10:00:01.5Z", None),
        ("2026-11-22T10:00:01+00:00", None),
        ("2026-11-22T24:00:00Z", None),
        ("2026-11-22 10:00:00Z", None),
        ("2026-13-01", None),
        ("2026", None),
        ("20261122", None),
        (" 2026-11-22", None),
        ("٢٠٢٦-11-22", None),
        ("2026-11-22\n", None),
        ("", None),
    ],
)
def test_a_datestamp_has_one_of_two_forms(text: str, instant: datetime | None) -> None:
    assert from_datestamp(text) == instant


def test_digits_are_utc() -> None:
    instant = datetime(2026, 11, 22, 1, 2, 3, 999_999, timezone(timedelta(hours=2)))
    assert to_digits(instant) == "20261121230203"
    assert from_digits("20261121230203") == instant.replace(microsecond=0)
    assert from_digits("20261121230203").tzinfo == UTC
    assert to_digits(datetime(988, 1, 2, tzinfo=UTC)) == "09880102000000"
    for text in ("", "2026-11-22", "20260230000000"):
        with pytest.raises(ValueError, match=r"does not match|out of range"):
            from_digits(text)
