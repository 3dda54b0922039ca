"""A capture's date: W3CDTF text, exactly as precise as the file's own date.

WARC-Date is W3CDTF in UTC (ISO 28500, 5.4). An ARC date has 14 digits, or fewer where a crawler
lost some. Missing digits are never filled in.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from functions.archive.record import RecordFault, show

_W3CDTF = re.compile(
    rb"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9})\d*)?)?"
    rb"([Zz]|[+-]\d\d:?\d\d)?)?)?)?(.*)",
    re.DOTALL,
)
_DIGITS = re.compile(rb"(\d*)(.*)", re.DOTALL)


_ORDINARY = re.compile(rb"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\dZ")


@dataclass(slots=True)
class Instant:
    """A date: its text, its time if exact to the second, and its text to the second.

    `second` goes into an identity, so that ARC and WARC copies of a capture agree.
    """

    text: str | None = None
    time: datetime | None = None
    second: str | None = None


NO_DATE = Instant()
"""A missing or unreadable date."""


def parse_warc_date(date: bytes) -> tuple[Instant, RecordFault | None]:
    """Parse a WARC-Date; return it and its fault."""
    return _parse_ordinary(date) if len(date) == 20 else _parse_w3cdtf(date)


@lru_cache(maxsize=1 << 10)
def _parse_ordinary(date: bytes) -> tuple[Instant, RecordFault | None]:
    # Cached, since many records have the same second.
    if _ORDINARY.fullmatch(date):
        text = date.decode("ascii")
        with suppress(ValueError):
            return Instant(text, datetime.fromisoformat(text), text), None
    return _parse_w3cdtf(date)


def _parse_w3cdtf(date: bytes) -> tuple[Instant, RecordFault | None]:
    match = _W3CDTF.fullmatch(date)
    if not match or (date[:5].isdigit() and len(date) > 4):
        return parse_arc_date(date, "WARC-Date")
    year, month, day, hour, minute, second, fraction, zone, rest = match.groups()
    parts = [p for p in (year, month, day, hour, minute, second) if p]
    if rest and (second is None or not zone):
        return NO_DATE, ("date-invalid", "WARC-Date", show(date), "published without a date")
    offset = _offset(zone)
    instant = _build_instant(parts, (fraction or b"").decode(), offset)
    if instant is NO_DATE:
        return NO_DATE, ("date-invalid", "WARC-Date", show(date), "published without a date")
    fault = None
    if rest:
        fault = ("date-junk", "WARC-Date", show(date), f"taken as {instant.text}")
    elif second is None:
        fault = ("date-partial", "WARC-Date", show(date), f"published as {instant.text}")
    elif not zone or offset:
        fault = ("date-zone", "WARC-Date", show(date), f"taken as {instant.text}")
    return instant, fault


def parse_arc_date(date: bytes, field: str = "Archive-date") -> tuple[Instant, RecordFault | None]:
    """Parse an ARC header's date; return it and its fault."""
    match = _DIGITS.fullmatch(date)
    digits, rest = match.groups() if match else (b"", b"")
    # W3CDTF has no hour without minutes, so ten digits give a day.
    exact = next((n for n in (14, 12, 8, 6, 4) if len(digits) >= n), 0)
    cuts = ((0, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 14))
    parts = [digits[a:b] for a, b in cuts if b <= exact]
    instant = (
        _build_instant(parts, "", timedelta()) if parts and not (rest and exact < 14) else NO_DATE
    )
    if instant is NO_DATE:
        return NO_DATE, ("date-invalid", field, show(date), "published without a date")
    if exact == 14 and len(date) == 14:
        return instant, None
    code = "date-partial" if exact < 14 else "date-junk"
    return instant, (code, field, show(date), f"published as {instant.text}")


def parse_refers_to(date: bytes) -> str | None:
    """Return a WARC-Refers-To-Date as text, None if it is unreadable."""
    return parse_warc_date(date)[0].text if date else None


def _offset(zone: bytes | None) -> timedelta:
    if zone is None or zone in b"Zz":
        return timedelta()
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return timedelta(minutes=-minutes if zone[:1] == b"-" else minutes)


def _build_instant(parts: list[bytes], fraction: str, offset: timedelta) -> Instant:
    numbers = [int(part) for part in parts]
    whole = len(parts) == 6
    try:
        time = datetime(*(numbers + [1, 1][len(numbers) - 1 :]), tzinfo=UTC)  # type: ignore[arg-type, misc]
        if offset and len(parts) > 3:
            time = (time.replace(tzinfo=timezone(offset))).astimezone(UTC)
    except (ValueError, OverflowError):
        return NO_DATE
    if len(parts) < 4:
        text = "-".join(part.decode() for part in parts)
        return Instant(text, None, text)
    second = time.isoformat()[: 19 if whole else 16] + "Z"
    if not whole:
        return Instant(second, None, second)
    if not fraction:
        return Instant(second, time, second)
    micros = int((fraction + "000000")[:6])
    return Instant(f"{second[:-1]}.{fraction}Z", time.replace(microsecond=micros), second)
