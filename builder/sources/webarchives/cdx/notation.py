"""Lines of indexes of web archives: CDX and CDXJ.

CDX has lines of fields; a header's letters name the fields. The letters are the Internet Archive's
(cdx_legend). A header may be on any line, for indexes are merged by concatenation. An index
without a header is read if its first line fits a known form.

CDXJ has lines of a sort key, a date and a JSON object, in the dialects of its writers. pywb,
cdxj-indexer, warcit and WACZ name the same fields; Common Crawl adds some. OpenWayback has its own
names and a W3CDTF date; before the object it writes a digest and the record's type. Values are
strings or numbers. Lines that begin with `!` are headers.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from builder.sources.webarchives.cdx.index_entry import IndexEntry
from functions.archive.record import RecordFault, show

LETTERS = frozenset("ABCDFGHIJKLMNPQRSUVXYZabcdefghijklmnoprstvxyz#")
"""The letters of cdx_legend."""
_REQUIRED = {"a": "original url", "b": "date"}
CDX_FIELDS: dict[str, str] = {
    # field of IndexEntry: its letters; the first one in a legend counts
    "url": "a",
    "date": "b",
    "mime": "m",
    "status": "s",
    "digest": "kc",
    "redirect": "r",
    "length": "S",
    "offset": "Vv",
    "filename": "g",
    "key": "NA",
}
FORMS = (
    "N b a m s k r M S V g",  # CDX11: CDX-Writer, OutbackCDX, pywb
    "N b a m s k r V g",  # 9 fields: Wayback, older ones
    "N b a m s k r M V g",  # 10 fields: Wayback
    "A b e a m s c v n g",  # NetarchiveSuite, Alexa's tools
    "a e b m n g v c",  # NetarchiveSuite, as its jobs make them
    "N b a m s k S",  # answers of Wayback's CDX server
)
"""Legends of indexes that occur without a header."""

_FORMS_OF_FIELDS = {
    "a": re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*:.+"),
    "b": re.compile(rb"\d{14}"),
    "e": re.compile(rb"\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+|-"),
    "s": re.compile(rb"\d{3}|-?"),
    "S": re.compile(rb"\d+|-?"),
    "V": re.compile(rb"\d+|-?"),
    "n": re.compile(rb"\d+|-?"),
    "v": re.compile(rb"\d+|-?"),
    "k": re.compile(rb"(?:[A-Za-z0-9]+-?\d*:)?[A-Za-z0-9=]{3,}|-?"),
    "c": re.compile(rb"[A-Za-z0-9]{3,}|-"),
}
_HEADER = re.compile(rb"([ \t]?)CDX((?:[ \t][!-~])+)[ \t]*\r?")
_FURTHER = 3  # fields that OutbackCDX adds: length, place and file of a revisit's original
CDXJ_KEYS: dict[str, tuple[str, ...]] = {
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
_CDXJ_LINE = re.compile(
    rb"(.*?) (\d{4,17}|\d{4}-\d\d[0-9T:.,Z+\-]*) (?:([^ {][^ ]*) )?(?:([^ {][^ ]*) )?(\{.*)",
    re.DOTALL,
)
_PLACE = re.compile(rb"(?:warcfile:)*(.*?)(?:#(\d+))?", re.DOTALL)
_LINE_START = re.compile(rb"[^ \n]+ (?:\d{14,17}|\d{4}-\d\d-\d\dT\S+)(?: [^ \n{]+){0,2} \{\"")
_FIRST_LINES = 16  # of which the first or half decide the form: a writer's message may come first
_RECORD_TYPE = re.compile(rb"[a-z]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Legend:
    """The letters of the fields below a header, and their separator."""

    letters: tuple[str, ...]
    separator: bytes = b" "

    def places(self) -> dict[str, int]:
        """Return the index of the line's field for each field of an entry."""
        return {
            field: self.letters.index(letter)
            for field, letters in CDX_FIELDS.items()
            for letter in [next((name for name in letters if name in self.letters), None)]
            if letter
        }

    def __str__(self) -> str:
        return " ".join(self.letters)


def parse_header(line: bytes) -> Legend | None:
    """Return the legend in a header line, None for other lines."""
    match = _HEADER.fullmatch(line)
    if not match:
        return None
    separator = match[1] or match[2][:1]
    return Legend(tuple(match[2].decode("ascii").split()), separator)


def missing_fields(legend: Legend) -> str:
    """Return the required fields that a legend lacks, as text; empty if it is complete."""
    lacking = _REQUIRED.keys() - set(legend.letters)
    return ", ".join(f"{letter} ({_REQUIRED[letter]})" for letter in sorted(lacking))


def optional_fields(legend: Legend) -> int:
    """Return how many fields may follow those of the legend."""
    return _FURTHER if str(legend) == FORMS[0] else 0


def guess_legend(line: bytes) -> Legend | None:
    """Return the legend that fits the first line of a file without a header, None if none fits."""
    line = line.rstrip(b"\r")
    for separator in (b" ", b"\t"):
        values = line.split(separator)
        for form in FORMS:
            legend = Legend(tuple(form.split()), separator)
            more = len(values) - len(legend.letters)
            if more not in (0, optional_fields(legend)):
                continue
            pairs = zip(legend.letters, values, strict=False)
            if all(value and _fits(letter, value) for letter, value in pairs):
                return legend
    return None


def parse_cdx_line(line: bytes, legend: Legend) -> tuple[IndexEntry | None, list[RecordFault]]:
    """Parse a line below `legend`: its entry, None if it has other fields, and its faults."""
    values = line.rstrip(b"\r").split(legend.separator)
    more = len(values) - len(legend.letters)
    places = legend.places()
    if more > 0 and (more != optional_fields(legend) or not _fits_legend(values, legend)):
        at = places["url"]  # may have unescaped spaces
        values[at : at + more + 1] = [legend.separator.join(values[at : at + more + 1])]
        more = 0 if _fits_legend(values, legend) else -1
    if more < 0:
        count = len(line.split(legend.separator))
        detail = f"{count} fields, {len(legend.letters)} expected: {show(line)}"
        return None, [("index-line-invalid", None, detail, "left out")]
    fields = {field: values[at] for field, at in places.items()}
    return IndexEntry(**{f: b"" if v == b"-" else v for f, v in fields.items()}), []


def _fits_legend(values: list[bytes], legend: Legend) -> bool:
    """Tell whether the fields have their legend's forms; shifted fields have not."""
    pairs = zip(legend.letters, values, strict=False)
    return all(_fits(letter, value) for letter, value in pairs if letter in "bskSVv")


def _fits(letter: str, value: bytes) -> bool:
    form = _FORMS_OF_FIELDS.get(letter)
    return form is None or form.fullmatch(value) is not None


def is_cdxj(head: bytes) -> bool:
    """Tell whether a file with the first bytes `head` is a CDXJ index."""
    lines = [line for line in head.split(b"\n") if line.strip() and not line.startswith(b"!")]
    fits = [_LINE_START.match(line) is not None for line in lines[:_FIRST_LINES]]
    return bool(fits) and (fits[0] or 2 * sum(fits) >= len(fits))


def parse_cdxj_line(line: bytes) -> tuple[IndexEntry | None, list[RecordFault]]:
    """Parse a line; return its entry, None if it has another form, and its faults."""
    match = _CDXJ_LINE.fullmatch(line)
    if not match:
        return None, [("index-line-invalid", None, show(line), "left out")]
    key, date, first, second, text = match.groups()
    faults: list[RecordFault] = []
    try:
        parsed = _DECODER.decode(text.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None, [("index-line-invalid", "JSON", show(text), "left out")]
    values = {field: _value(parsed, names, faults) for field, names in CDXJ_KEYS.items()}
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


_DECODER = json.JSONDecoder(
    object_pairs_hook=lambda pairs: dict(reversed(pairs)),
    parse_int=_Number,
    parse_float=_Number,
    parse_constant=_Number,
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
