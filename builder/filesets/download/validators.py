"""Validators of responses, which show whether two of them are of the same bytes."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_LONGEST = 1000  # characters of an entity tag that is sent back


def validators(headers: Mapping[str, str]) -> tuple[str, str]:
    """Return ETag and Last-Modified of a response, "" for a missing one."""
    return headers.get("etag", "").strip(), headers.get("last-modified", "").strip()


def strong_validator(headers: Mapping[str, str]) -> str:
    """Return the strong validator of a response, or "".

    A Last-Modified is one without an ETag, and at least a second before Date (RFC 9110, sections
    8.8.2.2 and 13.1.5).
    """
    etag, modified = validators(headers)
    if etag:
        return etag if etag.startswith('"') else ""
    try:
        age = parsedate_to_datetime(headers.get("date", "")) - parsedate_to_datetime(modified)
    except (TypeError, ValueError):
        return ""
    return modified if age.total_seconds() >= 1 else ""


def sendable_validator(headers: Mapping[str, str]) -> str | None:
    """Return the strong validator if it can be sent back in If-Range, or None."""
    found = strong_validator(headers)
    sendable = found.isascii() and found.isprintable() and len(found) <= _LONGEST
    return found if found and sendable else None


def number(text: str | None) -> int | None:
    """Return the number in a header field, or None."""
    found = (text or "").strip()
    return int(found[:18]) if found.isascii() and found.isdigit() else None
