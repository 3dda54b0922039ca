"""CDXJ: lines of a sort key, a date and a JSON object, in the dialects of its writers.

pywb, cdxj-indexer, warcit and WACZ name the same fields; Common Crawl adds some. OpenWayback has
its own names and a W3CDTF date; before the object it writes a digest and the record's type. Values
are strings or numbers. Lines that begin with `!` are headers.
"""

import json
import re
from typing import Any

from builder.sources.index.entry import IndexEntry
from functions.archive.record import RecordFault, show

KEYS: dict[str, tuple[str, ...]] = {
    # field of IndexEntry: its names in JSON; the first one present counts
    "url": ("url", "uri"),
    "mime": ("mime", "mct"),
    "status": ("status", "hsc"),
    "digest": ("digest", "sha"),
    "redirect": ("redirect",),
    "length": ("length", "rle"),
    "offset": ("offset",),
    "filename": ("filename",),
    "truncated": ("truncated",),
    "method": ("method",),
    "body": ("requestBody",),
    "refers_to": ("rou",),
    "refers_date": ("rod",),
}
_NUMBERS = frozenset({"status", "hsc", "length", "rle", "offset", "digest", "sha"})
_LINE = re.compile(
    rb"(.*?) (\d{4,17}|\d{4}-\d\d[0-9T:.,Z+\-]*) (?:([^ {][^ ]*) )?(?:([^ {][^ ]*) )?(\{.*)",
    re.DOTALL,
)
_PLACE = re.compile(rb"(?:warcfile:)*(.*?)(?:#(\d+))?", re.DOTALL)
_HEAD = re.compile(
    rb"(?:![^\n]*\n)*[^ \n]+ (?:\d{14,17}|\d{4}-\d\d-\d\dT\S+)(?: [^ \n{]+){0,2} \{\""
)
_RECORD_TYPE = re.compile(rb"[a-z]+", re.IGNORECASE)


def is_cdxj(head: bytes) -> bool:
    """Tell whether a file with the first bytes `head` is a CDXJ index."""
    return _HEAD.match(head) is not None


def parse_line(line: bytes) -> tuple[IndexEntry | None, list[RecordFault]]:
    """Parse a line; return its entry, None if it has another form, and its faults."""
    match = _LINE.fullmatch(line)
    if not match:
        return None, [("index-line-invalid", None, show(line), "left out")]
    key, date, first, second, text = match.groups()
    faults: list[RecordFault] = []
    try:
        parsed = _DECODER.decode(text.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None, [("index-line-invalid", "JSON", show(text), "left out")]
    values = {field: _value(parsed, names, faults) for field, names in KEYS.items()}
    words = [word for word in (first, second) if word]
    kind = words.pop() if words and _RECORD_TYPE.fullmatch(words[-1]) else b""
    if words and not values["digest"]:
        values["digest"] = _drop_dash(words[0])
    reference = _value(parsed, ("ref",), faults)
    if reference and not values["filename"]:
        place = _PLACE.fullmatch(reference)
        values["filename"], offset = place.groups() if place else (b"", None)
        values["offset"] = values["offset"] or offset or b""
    return IndexEntry(date=date, kind=kind, key=key, **values), faults


class _Number(str):
    """A number of a JSON text, as written."""


def _first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))  # the first of a repeated name counts


_DECODER = json.JSONDecoder(
    object_pairs_hook=_first, parse_int=_Number, parse_float=_Number, parse_constant=_Number
)


def _value(parsed: dict[str, Any], names: tuple[str, ...], faults: list[RecordFault]) -> bytes:
    for name in names:
        value = parsed.get(name)
        if value is not None:
            break
    else:
        return b""
    if isinstance(value, str) and (name in _NUMBERS or not isinstance(value, _Number)):
        try:
            # Restores invalid UTF-8, raw or as Python writes it (\udce1).
            return _drop_dash(value.encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError:
            pass
    detail = show(ascii(value).encode())
    faults.append(("index-value-invalid", name, detail, "treated as missing"))
    return b""


def _drop_dash(value: bytes) -> bytes:
    return b"" if value == b"-" else value
