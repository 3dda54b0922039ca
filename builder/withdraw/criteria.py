"""Criteria for captures: converts an operator's input into the form of the columns.

Each function raises ValueError if no column can have the value. The error says what is wrong or
what was expected.
"""

import re
from datetime import datetime

from builder.sources import address
from functions.archive import digest as digests

HOST = "^[A-Za-z][A-Za-z0-9+-]*://[^/?#]*"
"""A URL up to the end of its host, as a regular expression for Python and DuckDB."""

_HOST = re.compile(HOST)
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+-]*:")
_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,9})?)?(Z?))?)?)?"
)


def date(text: str) -> str:
    """Return a valid calendar date or time, W3CDTF in UTC, of any precision."""
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
        raise ValueError("this date or time does not exist") from None
    return text


def is_reversed(start: str, end: str) -> bool:
    """Return whether a range ends before it begins, compared at the lower of the two precisions."""
    first, last = start.rstrip("Z"), end.rstrip("Z")
    return first[: len(last)] > last[: len(first)]


def digest(text: str) -> str:
    """Return a payload's digest in the form of `content_digest`: base32 without label for a SHA-1.

    A SHA-1 may be hexadecimal and may have a label; a digest of another algorithm needs a label.
    """
    found = digests.parse((text if ":" in text else f"sha1:{text}").encode())
    if found is None:
        raise ValueError(
            "expected a SHA-1 of 32 characters in base32 or 40 hexadecimal digits, "
            "or a label such as sha256: and its digest"
        )
    return found.text()


def url_prefix(text: str) -> str:
    """Return the beginning of a URL in the form of `url`, with scheme and host in lower case."""
    prefix = address.text(text.encode("utf-8", "surrogateescape"))
    if not _SCHEME.match(prefix):
        raise ValueError(f"expected a URL with its scheme, such as http://{text.lstrip('/')}")
    start = _HOST.match(prefix)
    end = start.end() if start else 0
    return prefix[:end].lower() + prefix[end:]
