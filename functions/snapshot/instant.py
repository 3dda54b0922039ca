"""Instants as text: UTC, to the second, in the form of OAI-PMH 2.0, section 3.3."""

import re
from datetime import UTC, datetime
from functools import lru_cache

FORM = "%Y-%m-%dT%H:%M:%SZ"
_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


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
