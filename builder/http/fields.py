"""Fields: what the head of an answer says besides its status (RFC 9110, section 5)."""

from collections.abc import Iterable


def text(value: bytes) -> str:
    """Return what a field says, without blanks around it: UTF-8 where it is that, else latin-1."""
    try:
        found = value.decode()
    except UnicodeDecodeError:
        found = value.decode("latin-1")
    return found.strip()


def first(raw: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return fields by their names in small letters, the first of each."""
    found: dict[str, str] = {}
    for name, value in raw:
        found.setdefault(name.lower(), value)
    return found
