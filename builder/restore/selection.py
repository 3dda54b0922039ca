"""Dates of captures, in 14 digits and in seconds."""

from collections.abc import Mapping
from datetime import UTC, datetime

from builder.http import retry
from builder.restore.errors import RebuildError

LAST = "99991231235959"
"""The last second of all."""
_UNSAID = {ord(character): None for character in "-:TtZz "}


def until(text: str) -> str:
    """Return the last second of a year, month, day or shorter time, in 14 digits.

    The date may contain dashes, colons, `T` and `Z`; it is UTC. Raises RebuildError if it is
    invalid.
    """
    digits = text.translate(_UNSAID)
    if digits.isascii() and digits.isdigit() and len(digits) in {4, 6, 8, 10, 12, 14}:
        first = digits + "00000101000000"[len(digits) :]
        try:
            datetime.strptime(first, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        except ValueError:
            pass
        else:
            return digits + LAST[len(digits) :]
    raise RebuildError(
        f"--as-of {text}: expected a date such as 2009, 2009-11-05 or 2009-11-05T12:00:00Z"
    )


def modification_time(headers: Mapping[str, str], stamp: str) -> int | None:
    """Return the Last-Modified time of a file, in seconds since 1970, or the capture's date.

    The header is ignored if it is after the capture or before 1970. None if both are unknown.
    """
    captured = _seconds(stamp)
    said = retry.moment(headers.get("last-modified"))
    if said is not None and said > 0 and (captured is None or said <= captured):
        return said
    return captured


def _seconds(stamp: str) -> int | None:
    try:
        found = datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return max(0, int(found.timestamp()))
