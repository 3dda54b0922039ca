"""About containers (OAI-PMH 2.0, section 2.5), and filters for fields of ReDIF.

A container is a template of that name under templates/about/. The variable `about_<name>` holds
what the container's function returns for the record. A record has no such container if the result
is empty or the record is deleted.

Fields (functions.snapshot.obi.TEMPLATE) are lists by attribute name in lower case; a cluster is a
list of tables of the same form. Unexpected values in a list are skipped.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from functions.config.configuration import Configuration
from functions.oai.answer import read_rights
from functions.oai.repository import PublishedRecord
from functions.snapshot import instant, oai_name

Fields = Mapping[str, Any]

_YEAR = re.compile(r"[0-9]{4}")
_REDIF_DATE = re.compile(r"([0-9]{4})(?:-?([0-9]{2})(?:-?([0-9]{2}))?)?")
_CODES = re.compile(r"[\s,;]+")
_DOI = re.compile(r"(?:doi:\s*|https?://(?:dx\.)?doi\.org/)?(10\..+)", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PARTS = (("volume", "vol. {}"), ("issue", "no. {}"), ("pages", "pp. {}"))
Container = Callable[[PublishedRecord], Any]

WARC = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
"""The namespace for the source format of a capture's metadata."""

REDIF = "urn:x-sheaf:redif:1"
"""The namespace of templates as their archives have them."""

COLUMNS = frozenset({"warc_filename", "warc_record_offset", "fetch_date"})
"""The columns of captures that containers read."""

_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:(T[0-9]{2}:[0-9]{2}:[0-9]{2})?.*Z)?")


def run_time(tist: int) -> str:
    """Return the time of a run in the form of XML Schema."""
    return instant.to_text(datetime.fromtimestamp(tist, UTC))


def texts(fields: Fields | None, *path: str) -> list[str]:
    """Return the texts at the end of a path of clusters and an attribute, each once, in order."""
    *clusters, name = path
    nodes: Sequence[Fields] = [fields or {}]
    for cluster in clusters:
        nodes = [inner for node in nodes for inner in nodes_of(node, cluster)]
    found: list[str] = []
    for node in nodes:  # most templates lack most attributes
        if values := node.get(name):
            found += [value for value in values if isinstance(value, str) and value]
    return [*dict.fromkeys(found)] if len(found) > 1 else found


def handles(fields: Fields | None, *path: str) -> list[str]:
    """Return the handles at the end of a path in their canonical form, each once, in order."""
    return [*dict.fromkeys(map(oai_name.canonical_handle, texts(fields, *path)))]


def nodes_of(fields: Fields | None, cluster: str) -> list[Fields]:
    """Return the clusters of that name."""
    return [node for node in (fields or {}).get(cluster) or () if isinstance(node, Mapping)]


def first(fields: Fields | None, *names: str) -> str | None:
    """Return the first text of the first of these attributes that has one."""
    return next((text for name in names for text in texts(fields, name)), None)


def titles(fields: Fields | None) -> list[str]:
    """Return the titles of a template of any type."""
    for path in (("title",), ("name",), ("name-full",), ("primary", "name")):
        if found := texts(fields, *path):
            return found
    return []


def keywords(fields: Fields | None) -> list[str]:
    """Return the keywords, separated by semicolons or, without semicolons, by commas."""
    found: list[str] = []
    for text in texts(fields, "keywords"):
        found += (part.strip() for part in text.split(";" if ";" in text else ","))
    return [*dict.fromkeys(filter(None, found))]


def codes(fields: Fields | None, scheme: str = "jel") -> list[str]:
    """Return the codes of a classification."""
    found = (code for text in texts(fields, f"classification-{scheme}") for code in _split(text))
    return [*dict.fromkeys(found)]


def _split(text: str) -> Iterator[str]:
    yield from filter(None, _CODES.split(text))


def date(fields: Fields | None) -> str | None:
    """Return the date of creation or publication: a year, with month and day if known."""
    for text in texts(fields, "creation-date"):
        if match := _REDIF_DATE.fullmatch(text):
            return "-".join(filter(None, match.groups()))
    year = next((t for t in texts(fields, "year") if _YEAR.fullmatch(t)), None)
    month = _month(first(fields, "month") or "")
    return f"{year}-{month}" if year and month else year


def _month(text: str) -> str:
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= 12:
        return f"{int(text):02}"
    start = text[:3].lower()
    plain = text.isalpha() and start in _MONTHS
    return f"{_MONTHS.index(start) + 1:02}" if plain else ""


def dois(fields: Fields | None) -> list[str]:
    """Return the DOIs as URLs."""
    matches = map(_DOI.fullmatch, texts(fields, "doi"))
    return [f"https://doi.org/{match[1]}" for match in matches if match]


def citation(fields: Fields | None, journal: str | None) -> str | None:
    """Return the citation: the journal or containing book, volume, issue and pages."""
    within = first(fields, "journal", "book-title") or journal
    if not within:
        return None
    found = ((form, first(fields, name)) for name, form in _PARTS)
    return ", ".join([within, *(form.format(text) for form, text in found if text)])


def restrictions(fields: Fields | None, inherited: Sequence[str] | None) -> list[str]:
    """Return the restrictions of its files: its own, else those of its series or archive.

    RePEc requires that they are shown.
    """
    own = [*texts(fields, "file", "restriction"), *texts(fields, "restriction")]
    return [*dict.fromkeys(own or inherited or ())]


def pages(fields: Fields | None) -> tuple[str, str]:
    """Return the first and the last page, "" if unknown."""
    start, _, end = (first(fields, "pages") or "").replace("\u2013", "-").partition("-")
    return start.strip(), end.strip("- ")


REDIF_FILTERS = {
    "citation": citation,
    "codes": codes,
    "date": date,
    "dois": dois,
    "field": first,
    "handles": handles,
    "keywords": keywords,
    "nodes": nodes_of,
    "noted": run_time,
    "pages": pages,
    "restrictions": restrictions,
    "texts": texts,
    "titles": titles,
}
"""Filters of template crosswalks, by name."""


@dataclass(frozen=True, slots=True)
class RecordOrigin:
    """Origin of a record (guidelines for provenance).

    `harvested` is the time of harvest. `datestamp` is the record's datestamp at its origin: UTC, to
    the day or second. `altered` is True if the metadata was changed since.
    """

    harvested: str
    altered: bool
    base_url: str
    identifier: str
    datestamp: str
    namespace: str


def containers(configuration: Configuration) -> dict[str, Container]:
    """Return the functions of the configured containers, in order of output."""
    found: dict[str, Container] = {}
    rights = read_rights(configuration)
    if rights.all():
        of = lru_cache(maxsize=4096)(rights.of)
        found["rights"] = lambda record: of(record.sets)
    places = {kind: configuration[key] for kind, (key, _) in _ORIGINS.items() if configuration[key]}
    if places:
        found["provenance"] = lambda record: _provenance(record, places.get(record.kind))
    return found


def _provenance(record: PublishedRecord, place: str | None) -> tuple[RecordOrigin, ...]:
    """Return the origin of a record, then the origin of that origin, and so on."""
    return _ORIGINS[record.kind][1](record, place) if place else ()


def _capture_origins(record: PublishedRecord, place: str) -> tuple[RecordOrigin, ...]:
    """Return the origin of a capture: its position in an archive file below `place`, if known."""
    name, offset = record.fields["warc_filename"], record.fields["warc_record_offset"]
    datestamp = _datestamp(record.fields["fetch_date"] or "")
    if not name or offset is None or not datestamp:
        return ()
    where = f"{_file(place, name)}#{offset}"
    return (RecordOrigin(_instant(record.datestamp), True, place, where, datestamp, WARC),)


def _template_origins(record: PublishedRecord, place: str) -> tuple[RecordOrigin, ...]:
    """Return the origin of a template: its file below `place`, the folder of all archives."""
    where = _file(place, record.fields["source"], "/")
    noted = run_time(record.fields["tist"])
    return (RecordOrigin(_instant(record.datestamp), True, place, where, noted, REDIF),)


# Records of a page share a few files and the instant of their publish, so results are cached.
_instant = lru_cache(maxsize=256)(instant.to_text)


@lru_cache(maxsize=4096)
def _file(place: str, name: str, safe: str = "") -> str:
    """Return the URL of the file of that name; characters in `safe` are not escaped."""
    folder = place if place.endswith("/") else f"{place}/"
    return folder + quote(name, safe=safe, errors="replace")


_ORIGINS: Mapping[str, tuple[str, Callable[[PublishedRecord, str], tuple[RecordOrigin, ...]]]] = {
    "capture": ("provenance.origin", _capture_origins),
    "template": ("redif.origin", _template_origins),
}
"""By kind of item: the key that configures the place of its sources, and a function for origins."""


def _datestamp(date: str) -> str:
    """Return a W3CDTF date in UTC to the second or else to the day, "" if it is less precise."""
    match = _DATE.fullmatch(date)
    if match is None:
        return ""
    day, second = match.groups()
    return f"{day}{second}Z" if second else day
