"""CDX: lines of fields; a header's letters name the fields.

The letters are the Internet Archive's (cdx_legend). A header may be on any line, for indexes are
merged by concatenation. An index without a header is read if its first line fits a known form.
"""

import re
from dataclasses import dataclass

from builder.sources.index.entry import IndexEntry
from functions.archive.record import RecordFault, show

LETTERS: dict[str, str] = {
    "A": "canonized url",
    "B": "news group",
    "C": "rulespace category",
    "D": "compressed dat file offset",
    "F": "canonized frame",
    "G": "multi-column language description",
    "H": "canonized host",
    "I": "canonized image",
    "J": "canonized jump point",
    "K": "FBIS changes",
    "L": "canonized link",
    "M": "meta tags",
    "N": "massaged url",
    "P": "canonized path",
    "Q": "language",
    "R": "canonized redirect",
    "S": "compressed record size",
    "U": "uniqueness",
    "V": "compressed archive file offset",
    "X": "canonized url in other href tags",
    "Y": "canonized url in other src tags",
    "Z": "canonized url found in script",
    "a": "original url",
    "b": "date",
    "c": "old style checksum",
    "d": "uncompressed dat file offset",
    "e": "IP address",
    "f": "frame",
    "g": "file name",
    "h": "original host",
    "i": "image",
    "j": "original jump point",
    "k": "new style checksum",
    "l": "link",
    "m": "media type of the original document",
    "n": "archive document length",
    "o": "port",
    "p": "original path",
    "r": "redirect",
    "s": "response code",
    "t": "title",
    "v": "uncompressed archive file offset",
    "x": "url in other href tags",
    "y": "url in other src tags",
    "z": "url found in script",
    "#": "comment",
}
FIELDS: dict[str, str] = {
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


@dataclass(frozen=True, slots=True)
class Legend:
    """The letters of the fields below a header, and their separator."""

    letters: tuple[str, ...]
    separator: bytes = b" "

    def places(self) -> dict[str, int]:
        """Return the index of the line's field for each field of an entry."""
        return {
            field: self.letters.index(letter)
            for field, letters in FIELDS.items()
            for letter in [next((one for one in letters if one in self.letters), None)]
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
    return ", ".join(f"{one} ({LETTERS[one]})" for one in "ab" if one not in legend.letters)


def unknown_letters(legend: Legend) -> str:
    """Return the unknown letters of a legend."""
    return " ".join(letter for letter in legend.letters if letter not in LETTERS)


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


def is_cdx(head: bytes) -> bool:
    """Tell whether a file with the first bytes `head` is a CDX index."""
    line = head.partition(b"\n")[0]
    return parse_header(line) is not None or guess_legend(line) is not None


def parse_line(line: bytes, legend: Legend) -> tuple[IndexEntry | None, list[RecordFault]]:
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
    given = {field: values[at] for field, at in places.items()}
    return IndexEntry(**{f: b"" if v == b"-" else v for f, v in given.items()}), []


def _fits_legend(values: list[bytes], legend: Legend) -> bool:
    """Tell whether the fields have their legend's forms; shifted fields have not."""
    pairs = zip(legend.letters, values, strict=False)
    return all(_fits(letter, value) for letter, value in pairs if letter in "bskSVv")


def _fits(letter: str, value: bytes) -> bool:
    form = _FORMS_OF_FIELDS.get(letter)
    return form is None or form.fullmatch(value) is not None
