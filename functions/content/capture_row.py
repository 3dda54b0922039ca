"""A capture's row, as delivery, listings and restores need it, and its lines in an index.

A CDXJ line is a key, a date in 14 digits and JSON, as in pywb. CDX is the Internet Archive's
format: eleven fields below a header line. An unknown value is omitted in JSON, and `-` elsewhere.
Timestamps are dates in 14 digits, UTC.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urljoin

from functions.snapshot import surt
from functions.snapshot.instant import from_digits, to_digits, to_stamp

FIELDS = (
    "url",
    "url_surtkey",
    "fetch_date",
    "fetch_time",
    "fetch_status",
    "fetch_method",
    "fetch_body",
    "fetch_redirect",
    "content_digest",
    "content_length",
    "content_mime_type",
    "content_mime_detected",
    "content_truncated",
    "content_damaged",
    "warc_record_type",
    "refers_to",
    "warc_filename",
    "warc_record_offset",
    "warc_record_length",
    "warc_request_offset",
)
"""The columns of schema.CAPTURE that a row reads, in the order of the attributes of CaptureRow."""
UNKNOWN = "-"
REVISIT = "warc/revisit"
"""Media type of revisits in indexes."""
_NO_TYPE = "unk"

_UNPLAIN = re.compile(r"[^!-~]+")


@dataclass(frozen=True, slots=True)
class CaptureRow:
    """A listed capture: its values from schema.CAPTURE under similar names, and its sets.

    `digest` is the SHA-1 of the payload as stored, base32, or `label:value`. `date` is W3CDTF, as
    exact as in the file. `time` is the same in UTC, if it is exact to the second. `original` is the
    identifier of a revisit's original, if known. `damaged` names the fault in the record's
    compressed member. `method` is the request's method, None for GET or if unknown. `body` is the
    query that stands for the request's body, and `request` the offset of the request's record.
    """

    identifier: str
    position: int
    sets: tuple[str, ...]
    url: str
    surt: str
    date: str | None
    time: datetime | None
    status: int | None
    method: str | None
    body: str | None
    redirect: str | None
    digest: str | None
    length: int | None
    mime: str | None
    detected: str | None
    truncated: str | None
    damaged: str | None
    type: str
    original: str | None
    filename: str | None
    offset: int | None
    stored: int | None
    request: int | None

    @property
    def is_revisit(self) -> bool:
        """True if its payload is in another capture."""
        return self.type == "revisit"

    @property
    def stamp(self) -> str:
        """Its date in 14 digits, missing parts at their minimum; "" if the date is unknown."""
        return to_stamp(self.date or "")

    @property
    def instant(self) -> datetime:
        """The instant of its stamp. It must have a date."""
        return to_instant(int(self.stamp))

    def resolve(self) -> "CaptureRow":
        """Return a revisit as a response with the media type of its original; others unchanged.

        A revisit also stays unchanged if that media type is unknown.
        """
        mime = self.mime or self.detected
        return replace(self, type="response", mime=mime) if self.is_revisit and mime else self

    @staticmethod
    def of(
        identifier: str, position: int, sets: tuple[str, ...], fields: Mapping[str, Any]
    ) -> "CaptureRow":
        """Return the capture from a record's fields, which must include FIELDS."""
        url, surt, *others = map(fields.__getitem__, FIELDS)
        return CaptureRow(identifier, position, sets, url, surt or "", *others)


_REDIRECTS = (301, 302, 303, 307, 308)


def redirect_target(capture: CaptureRow) -> str:
    """Return the URL that an archived redirect leads to, "" if it is none."""
    if capture.status not in _REDIRECTS or not capture.redirect:
        return ""
    try:
        return urljoin(capture.url, capture.redirect.strip())
    except ValueError:
        return ""


def capture_url(capture: CaptureRow) -> str:
    """Return the URL by which a capture is found, with its request's arguments if it has any."""
    if capture.method is None:
        return capture.url
    raw = capture.url.encode("utf-8", "surrogateescape")
    return surt.request_url(raw, capture.method, capture.body).decode("utf-8", "surrogateescape")


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


LINE_FIELDS: Mapping[str, Callable[[CaptureRow], str | None]] = {
    "urlkey": lambda c: c.surt,
    "timestamp": lambda c: _text(c.stamp),
    "url": lambda c: c.url,
    "mime": lambda c: REVISIT if c.is_revisit else (c.mime or _NO_TYPE),
    "status": lambda c: _text(c.status),
    "digest": lambda c: c.digest,
    "redirect": lambda c: _text(c.redirect),
    "length": lambda c: _text(c.stored),
    "offset": lambda c: _text(c.offset),
    "filename": lambda c: _text(c.filename),
    "method": lambda c: c.method,
    "requestBody": lambda c: _text(c.body),
    "identifier": lambda c: c.identifier,
    "media_type": lambda c: c.mime or c.detected,
    "size": lambda c: _text(c.length),
    "robotflags": lambda c: None,
}
"""Fields of a line, with functions that return a capture's value; None if it is unknown.

Only Sheaf has `media_type` and `size`; restores request them. `robotflags` is for OutbackCDX.
`media_type` is also known for revisits, and `size` is the payload's size in bytes.
"""

_USUAL = tuple(LINE_FIELDS)[:-3]

ALIASES: Mapping[str, str] = {
    "original": "url",
    "mimetype": "mime",
    "statuscode": "status",
    "redirecturl": "redirect",
}
"""Names of some fields at the Internet Archive; the last is OutbackCDX's."""

KEY = ("urlkey", "timestamp")
_CDX = ("urlkey", "timestamp", "url", "mime", "status", "digest", "redirect")
_PLACE = ("length", "offset", "filename")
_HEAD = " CDX N b a m s k r M S V g"
_NUMBERS = frozenset({"timestamp", "status", "length", "offset"})
_TEXT = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
_CDX11 = (*_TEXT[:6], "redirecturl", "robotflags", *_PLACE)


def _lines(texts: Sequence[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def _frame(names: Sequence[str], texts: Sequence[str], key: str | None) -> str:
    return _lines(texts) + ("" if key is None else f"\n{key}\n")


@dataclass(frozen=True, slots=True)
class Form:
    """An output format: media type, writer of a line, and default fields.

    `write` takes a capture and field names. `frame` takes the field names, the written lines and an
    optional resume key, and returns the body.
    """

    type: str
    write: Callable[[CaptureRow, Sequence[str]], str]
    fields: Sequence[str]
    is_fixed: bool = False
    frame: Callable[[Sequence[str], Sequence[str], str | None], str] = _frame


def field_value(capture: CaptureRow, name: str) -> str:
    """Return a field's value by either of its names; UNKNOWN if it has no value."""
    return LINE_FIELDS[ALIASES.get(name, name)](capture) or UNKNOWN


def plain_value(capture: CaptureRow, name: str) -> str:
    """Return a field's value without blanks and line ends: not printable ASCII becomes %XX."""
    text = field_value(capture, name)
    return _UNPLAIN.sub(lambda match: quote(match[0], safe=""), text)


def _table(capture: CaptureRow, names: Sequence[str]) -> str:
    texts = ((name, LINE_FIELDS[ALIASES.get(name, name)](capture)) for name in names)
    return json.dumps({name: text for name, text in texts if text is not None})


def _columns(capture: CaptureRow, names: Sequence[str]) -> str:
    return " ".join(plain_value(capture, name) for name in names)


def _typed_array(capture: CaptureRow, names: Sequence[str]) -> str:
    """Return values as JSON with numbers as such, as OutbackCDX writes them."""
    values = ((ALIASES.get(name, name), field_value(capture, name)) for name in names)
    return json.dumps([int(v) if n in _NUMBERS and v.isdecimal() else v for n, v in values])


def _array_frame(names: Sequence[str], texts: Sequence[str], key: str | None) -> str:
    """Return the Internet Archive's JSON: an array of arrays, the first with the field names."""
    if not texts and key is None:
        return "[]\n"
    tail = [] if key is None else ["[]", json.dumps([key])]
    return "[" + ",\n ".join((json.dumps([*names]), *texts, *tail)) + "]\n"


FORMS: Mapping[str, Form] = {
    "cdxj": Form(
        "text/x-cdxj",
        lambda capture, names: (
            f"{_columns(capture, KEY)} "
            f"{_table(capture, [name for name in names if name not in KEY])}"
        ),
        _USUAL,
    ),
    "json": Form(
        "application/x-ndjson",
        _table,
        _USUAL,
        frame=lambda names, texts, key: _lines(
            [*texts, *([] if key is None else [json.dumps({"resumeKey": key})])]
        ),
    ),
    "cdx": Form(
        "text/plain",
        lambda capture, names: f"{_columns(capture, names)} {UNKNOWN} {_columns(capture, _PLACE)}",
        _CDX,
        is_fixed=True,
        frame=lambda names, texts, key: f"{_HEAD}\n{_frame(names, texts, key)}",
    ),
    "text": Form("text/plain", _columns, _TEXT),
    "array": Form(
        "application/json",
        lambda capture, names: json.dumps([field_value(capture, name) for name in names]),
        _TEXT,
        frame=_array_frame,
    ),
    "cdx11": Form("text/plain", _columns, _CDX11),
    "rows": Form(
        "application/json",
        _typed_array,
        _CDX11,
        frame=lambda names, texts, key: "[" + ",\n".join(texts) + "]\n",
    ),
}
"""Output formats; dialect.Dialect names them."""


def to_instant(stamp: int) -> datetime:
    """Return the instant of a timestamp; an invalid time, such as a leap second, is the day's last.

    If the day is also invalid, this is the earliest datetime.
    """
    day, time = f"{stamp:014}"[:8], f"{stamp:014}"[8:]
    for text in (day + time, f"{day}235959"):
        try:
            return from_digits(text)
        except ValueError:
            continue
    return datetime.min.replace(tzinfo=UTC)


def to_timestamp(instant: datetime) -> int:
    """Return the timestamp of an aware datetime; fractions of a second are dropped."""
    return int(to_digits(instant))
