"""Instants as text: UTC, to the second, in the forms of OAI-PMH 2.0 and of web archives."""

import re
from datetime import UTC, datetime
from functools import lru_cache

FORM = "%Y-%m-%dT%H:%M:%SZ"
_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DIGITS = "%Y%m%d%H%M%S"


@lru_cache(maxsize=4096)  # a page has many instants, and few of them differ
def to_text(instant: datetime) -> str:
    """Return `YYYY-MM-DDThh:mm:ssZ` for an aware datetime; fractions of a second are cut off."""
    return instant.astimezone(UTC).strftime(FORM)


def from_text(text: str) -> datetime:
    """Return the aware UTC datetime of `YYYY-MM-DDThh:mm:ssZ`.

    Raises ValueError for any other form, including a day alone and fractions of a second.
    """
    if not _FORM.fullmatch(text):
        raise ValueError(f"{text!r} is not of the form YYYY-MM-DDThh:mm:ssZ")
    return datetime.fromisoformat(text)


@lru_cache(maxsize=1024)
def from_datestamp(text: str) -> datetime | None:
    """Return the aware UTC datetime of a datestamp in either granularity; None if it is invalid.

    OAI-PMH 2.0, section 3.3. It is the first second of a day.
    """
    if not (_DAY.fullmatch(text) or _FORM.fullmatch(text)):
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:  # for example 30 February
        return None


def to_digits(instant: datetime) -> str:
    """Return 14 digits for an aware datetime; fractions of a second are cut off."""
    return instant.astimezone(UTC).strftime(_DIGITS).rjust(14, "0")


def to_stamp(date: str) -> str:
    """Return 14 digits for a W3CDTF date in UTC, missing parts at their minimum; "" without a year.

    Fractions of a second are cut off.
    """
    digits = "".join(filter(str.isdigit, date[:19]))
    return digits + "00000101000000"[len(digits) :] if len(digits) >= 4 else ""


def from_digits(text: str) -> datetime:
    """Return the aware UTC datetime of 14 digits. Raises ValueError."""
    return datetime.strptime(text, _DIGITS).replace(tzinfo=UTC)
