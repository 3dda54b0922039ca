"""Instants: UTC, to the second, in the form of OAI-PMH 2.0, section 3.3."""

from datetime import UTC, datetime

FORM = "%Y-%m-%dT%H:%M:%SZ"


def to_text(instant: datetime) -> str:
    """Return `YYYY-MM-DDThh:mm:ssZ` for an aware datetime; a fraction of a second is cut off."""
    return instant.astimezone(UTC).strftime(FORM)


def from_text(text: str) -> datetime:
    """Return the aware UTC datetime of `YYYY-MM-DDThh:mm:ssZ`.

    Raises ValueError for any other form, a day form and a fraction included.
    """
    if len(text) != 20 or not text.isascii():
        raise ValueError(f"{text!r} is not of the form YYYY-MM-DDThh:mm:ssZ")
    return datetime.strptime(text, FORM).replace(tzinfo=UTC)
