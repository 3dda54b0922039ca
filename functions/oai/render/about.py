"""About containers: what is said of a record beside its metadata (OAI-PMH 2.0, section 2.5).

A container is a template of that name under templates/about/, which finds under `about_<name>`
what the container's function says of the record at hand. A record of which it says nothing has no
such container, nor has a deleted one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from functions.config.configuration import Configuration
from functions.oai.render import redif
from functions.oai.repository import PublishedRecord
from functions.oai.rights import read_rights
from functions.snapshot import instant

Container = Callable[[PublishedRecord], Any]

WARC = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
"""The namespace that stands for the form of what a capture's metadata was read from."""

REDIF = "urn:x-sheaf:redif:1"
"""The namespace of templates as their archives have them."""

COLUMNS = frozenset({"warc_filename", "warc_record_offset", "fetch_date"})
"""The columns of captures that containers look at."""

_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:(T[0-9]{2}:[0-9]{2}:[0-9]{2})?.*Z)?")


@dataclass(frozen=True, slots=True)
class RecordOrigin:
    """Where a record was taken from (guidelines for provenance).

    `harvested` is when, and `datestamp` is the record's own there: UTC, of a day or a second.
    `altered` tells that its metadata was changed since.
    """

    harvested: str
    altered: bool
    base_url: str
    identifier: str
    datestamp: str
    namespace: str


def containers(configuration: Configuration) -> dict[str, Container]:
    """Return the containers that the configuration asks for, in the order in which they come."""
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
    """Return where a record was taken from, and where that was taken from, and so on."""
    return _ORIGINS[record.kind][1](record, place) if place else ()


def _capture_origins(record: PublishedRecord, place: str) -> tuple[RecordOrigin, ...]:
    """Return the place of a capture in its archive file, which lies at `place`; none if unknown."""
    name, offset = record.fields["warc_filename"], record.fields["warc_record_offset"]
    datestamp = _datestamp(record.fields["fetch_date"] or "")
    if not name or offset is None or not datestamp:
        return ()
    where = f"{_file(place, name)}#{offset}"
    return (RecordOrigin(_instant(record.datestamp), True, place, where, datestamp, WARC),)


def _template_origins(record: PublishedRecord, place: str) -> tuple[RecordOrigin, ...]:
    """Return the file in which a template stood, below the folder of all archives at `place`."""
    where = _file(place, record.fields["source"], "/")
    noted = redif.run_time(record.fields["tist"])
    return (RecordOrigin(_instant(record.datestamp), True, place, where, noted, REDIF),)


# Records of a page share a few files, and the instant of their publish: each is written once.
_instant = lru_cache(maxsize=256)(instant.to_text)


@lru_cache(maxsize=4096)
def _file(place: str, name: str, safe: str = "") -> str:
    """Return where the file of that name lies; characters that are `safe` are not escaped."""
    folder = place if place.endswith("/") else f"{place}/"
    return folder + quote(name, safe=safe, errors="replace")


_ORIGINS: Mapping[str, tuple[str, Callable[[PublishedRecord, str], tuple[RecordOrigin, ...]]]] = {
    "capture": ("provenance.origin", _capture_origins),
    "template": ("redif.origin", _template_origins),
}
"""By kind of item the key of where its sources lie, and what tells of a record's own."""


def _datestamp(date: str) -> str:
    """Return a W3CDTF date in UTC to the second or else to the day, "" where less is known."""
    match = _DATE.fullmatch(date)
    if match is None:
        return ""
    day, second = match.groups()
    return f"{day}{second}Z" if second else day
