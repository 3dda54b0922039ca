"""Lines of an index of captures: fields as a table, and the forms in which lines are written.

CDXJ is a key, a date in 14 digits and JSON, as pywb has it; CDX the Internet Archive's, of eleven
fields behind a line that names them. What is not known is left out of JSON, and `-` elsewhere.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from functions.content.capture import CaptureRow

UNKNOWN = "-"
REVISIT = "warc/revisit"
"""What indexes have in the place of a revisit's media type."""
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
"""Fields of a line, and what a capture has of each; None where nothing is known.

What restores a site asks for the last two, which no other index has: the media type also of a
revisit, and the bytes of the payload.
"""

_USUAL = tuple(FIELDS)[:-2]

ALIASES: Mapping[str, str] = {"original": "url", "mimetype": "mime", "statuscode": "status"}
"""Names that the Internet Archive's server has for some."""

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
    """A form of an answer: media type, how a capture is written, and its fields unless told.

    `write` takes a capture and the names of fields. `frame` takes the names, what was written, and
    a resume key if one is shown, and returns the body.
    """

    type: str
    write: Callable[[CaptureRow, Sequence[str]], str]
    fields: Sequence[str]
    is_fixed: bool = False
    frame: Callable[[Sequence[str], Sequence[str], str | None], str] = _frame


def value(capture: CaptureRow, name: str) -> str:
    """Return what a capture has of a field, by either name; UNKNOWN where that is nothing."""
    return FIELDS[ALIASES.get(name, name)](capture) or UNKNOWN


def _table(capture: CaptureRow, names: Sequence[str]) -> str:
    found = ((name, FIELDS[ALIASES.get(name, name)](capture)) for name in names)
    return json.dumps({name: text for name, text in found if text is not None})


def _plain(text: str) -> str:
    """Return a value that no blank and no end of a line is in: what is not plain is %XX."""
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
    """Return the Internet Archive's JSON: an array of arrays, the first of which has the names."""
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
"""Forms of answers; dialect.Dialect names them."""
