"""What identifies a capture: its address and its date.

The address is the text of its URL, with host, registered domain and the set of its domain.
Registered domains follow the ICANN part of the public suffix list.

The date is W3CDTF text, exactly as precise as the file's own date. WARC-Date is W3CDTF in UTC (ISO
28500, 5.4). An ARC date has 14 digits, or fewer where a crawler lost some. Missing digits are
never filled in.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from builder.store.suffix_list import split_suffix
from functions.archive.record import RecordFault, show
from functions.snapshot import authority, oai_name, surt
from functions.snapshot.authority import text as text

_W3CDTF = re.compile(
    rb"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9})\d*)?)?"
    rb"([Zz]|[+-]\d\d:?\d\d)?)?)?)?(.*)",
    re.DOTALL,
)
_DIGITS = re.compile(rb"(\d*)(.*)", re.DOTALL)
FIRST_YEAR, LAST_YEAR = 1970, 2099
"""Years of captures. Files give dates beyond them for want of one, or write another notation."""

_ORDINARY = re.compile(rb"(?:19[7-9]\d|20\d\d)-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\dZ")


_CACHED = 200  # the most characters of a URL's start in the cache


@dataclass(frozen=True, slots=True)
class Host:
    """A host: its name, its form in a SURT, its registered domain and its set."""

    name: str
    surt: str
    registered: str | None
    set_spec: str


@dataclass(slots=True)
class CaptureAddress:
    """A URL's text, its bytes if they differ, its host, and its path's index. Do not change it."""

    url: str
    raw: bytes | None
    host: Host | None
    path_at: int

    @property
    def surt(self) -> str:
        """The SURT, computed at each call."""
        return surt.key(self.url, self.host.surt if self.host else None, self.path_at)


def parse_address(raw: bytes) -> CaptureAddress:
    """Return the address of a URL's bytes, whatever they are."""
    url = text(raw)
    start = url.find("://")
    end = url.find("/", start + 3)
    if 0 < start < end <= _CACHED and url[end + 1 : end + 2] != "/":  # else a repeated scheme
        host, path_at = _authority(url[:end])
    else:
        host, path_at = _authority.__wrapped__(url)
    return CaptureAddress(url, None if len(url) == len(raw) else raw, host, path_at)


@lru_cache(maxsize=1 << 14)
def _authority(url: str) -> tuple["Host | None", int]:
    """Return the host of a URL, or of its part before the path, and the path's index."""
    parts = authority.split(url)
    return (parse_host(*parts[:2]), parts[2]) if parts else (None, 0)


@lru_cache(maxsize=1 << 16)
def parse_host(scheme: str, netloc: str) -> Host | None:
    """Return the host of a URL's authority (RFC 3986, 3.2), None without a valid host name.

    `netloc` is lower case and without user information.
    """
    parsed = authority.parse(scheme, netloc)
    if parsed is None:
        return None
    name = parsed.name
    if parsed.is_ip:
        return Host(name, parsed.surt, None, oai_name.join_set("domain", "ip", name))
    parts = split_suffix(name)
    if parts is None:
        return Host(name, parsed.surt, None, oai_name.join_set("domain", name))
    suffix, before = parts
    labels = [label for label in reversed(before.split(".")) if label]
    registered = f"{labels[0]}.{suffix}" if labels else None
    return Host(name, parsed.surt, registered, oai_name.join_set("domain", suffix, *labels))


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
    offset = timedelta()
    if zone and zone not in b"Zz":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        offset = -offset if zone[:1] == b"-" else offset
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


def _build_instant(parts: list[bytes], fraction: str, offset: timedelta) -> Instant:
    numbers = [int(part) for part in parts]
    whole = len(parts) == 6
    if not FIRST_YEAR <= numbers[0] <= LAST_YEAR:
        return NO_DATE
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
