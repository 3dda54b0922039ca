"""Criteria by which an operator describes captures: what was typed becomes what the columns have.

Each function raises ValueError, saying what is wrong or was expected, for what no column can have.
"""

import re
from datetime import datetime

from builder.sources import address
from functions.archive import digest as digests

HOST = "^[A-Za-z][A-Za-z0-9+-]*://[^/?#]*"
"""A URL up to the end of its host, as a regular expression of Python and of DuckDB."""

_HOST = re.compile(HOST)
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+-]*:")
_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,9})?)?(Z?))?)?)?"
)


def date(text: str) -> str:
    """Return a date or time of the calendar, W3CDTF in UTC, as exact as wanted."""
    match = _DATE.fullmatch(text)
    if not match:
        raise ValueError("expected a date such as 2007, 2007-11 or 2007-11-05T12:00:00Z")
    *fields, zone = match.groups()
    if zone == "":
        raise ValueError(f"a time is in UTC and ends with Z: expected {text}Z")
    numbers = [int(field) for field in fields if field]
    try:
        datetime(*(numbers + [1, 1][len(numbers) - 1 :]))  # type: ignore[arg-type]
    except ValueError:
        raise ValueError("no calendar has this date, or no day this time") from None
    return text


def is_reversed(start: str, end: str) -> bool:
    """Tell whether a range ends before it begins, as far as the less exact date says."""
    first, last = start.rstrip("Z"), end.rstrip("Z")
    return first[: len(last)] > last[: len(first)]


def digest(text: str) -> str:
    """Return a payload's digest as `content_digest` has it: base32 without label for a SHA-1.

    A SHA-1 may be in hexadecimal, and labelled; a digest of another algorithm has to be labelled.
    """
    found = digests.parse((text if ":" in text else f"sha1:{text}").encode())
    if found is None:
        raise ValueError(
            "expected a SHA-1 of 32 characters in base32 or 40 hexadecimal digits, "
            "or a label such as sha256: and its digest"
        )
    return found.text()


def url_prefix(text: str) -> str:
    """Return the beginning of a URL as `url` has it; scheme and host in lower case."""
    prefix = address.text(text.encode("utf-8", "surrogateescape"))
    if not _SCHEME.match(prefix):
        raise ValueError(f"expected a URL from its scheme on, as http://{text.lstrip('/')}")
    start = _HOST.match(prefix)
    end = start.end() if start else 0
    return prefix[:end].lower() + prefix[end:]
