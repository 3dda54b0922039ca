"""Lines of an index of captures: their fields, and the output formats.

A CDXJ line is a key, a date in 14 digits and JSON, as in pywb. CDX is the Internet Archive's
format: eleven fields below a header line. An unknown value is omitted in JSON, and `-` elsewhere.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from functions.content.capture import CaptureRow

UNKNOWN = "-"
REVISIT = "warc/revisit"
"""Media type of revisits in indexes."""
_NO_TYPE = "unk"

_UNPLAIN = re.compile(r"[^!-~]+")


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


FIELDS: Mapping[str, Callable[[CaptureRow], str | None]] = {
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
}
"""Fields of a line, with functions that return a capture's value; None if it is unknown.

Only Sheaf has the last two; restores request them. `media_type` is also known for revisits, and
`size` is the payload's size in bytes.
"""

_USUAL = tuple(FIELDS)[:-2]

ALIASES: Mapping[str, str] = {"original": "url", "mimetype": "mime", "statuscode": "status"}
"""The Internet Archive's names of some fields."""

KEY = ("urlkey", "timestamp")
_CDX = ("urlkey", "timestamp", "url", "mime", "status", "digest", "redirect")
_HEAD = " CDX N b a m s k r M S V g"
_TEXT = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")


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


def value(capture: CaptureRow, name: str) -> str:
    """Return a field's value by either of its names; UNKNOWN if it has no value."""
    return FIELDS[ALIASES.get(name, name)](capture) or UNKNOWN


def _table(capture: CaptureRow, names: Sequence[str]) -> str:
    found = ((name, FIELDS[ALIASES.get(name, name)](capture)) for name in names)
    return json.dumps({name: text for name, text in found if text is not None})


def _plain(text: str) -> str:
    """Return a value without blanks and line ends: all but printable ASCII becomes %XX."""
    return _UNPLAIN.sub(lambda found: quote(found[0], safe=""), text)


def _cdxj(capture: CaptureRow, names: Sequence[str]) -> str:
    key, stamp = (_plain(value(capture, name)) for name in KEY)
    return f"{key} {stamp} {_table(capture, [name for name in names if name not in KEY])}"


def _columns(capture: CaptureRow, names: Sequence[str]) -> str:
    return " ".join(_plain(value(capture, name)) for name in names)


def _cdx(capture: CaptureRow, names: Sequence[str]) -> str:
    place = (_plain(value(capture, name)) for name in ("length", "offset", "filename"))
    return f"{_columns(capture, names)} {UNKNOWN} {' '.join(place)}"


def _cdx_frame(names: Sequence[str], texts: Sequence[str], key: str | None) -> str:
    return f"{_HEAD}\n{_frame(names, texts, key)}"


def _table_frame(names: Sequence[str], texts: Sequence[str], key: str | None) -> str:
    return _lines(texts) + ("" if key is None else json.dumps({"resumeKey": key}) + "\n")


def _array(capture: CaptureRow, names: Sequence[str]) -> str:
    return json.dumps([value(capture, name) for name in names])


def _array_frame(names: Sequence[str], texts: Sequence[str], key: str | None) -> str:
    """Return the Internet Archive's JSON: an array of arrays, the first with the field names."""
    if not texts and key is None:
        return "[]\n"
    tail = [] if key is None else ["[]", json.dumps([key])]
    return "[" + ",\n ".join((json.dumps([*names]), *texts, *tail)) + "]\n"


FORMS: Mapping[str, Form] = {
    "cdxj": Form("text/x-cdxj", _cdxj, _USUAL),
    "json": Form("application/x-ndjson", _table, _USUAL, frame=_table_frame),
    "cdx": Form("text/plain", _cdx, _CDX, is_fixed=True, frame=_cdx_frame),
    "text": Form("text/plain", _columns, _TEXT),
    "array": Form("application/json", _array, _TEXT, frame=_array_frame),
}
"""Output formats; dialect.Dialect names them."""
