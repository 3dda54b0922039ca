"""About containers (OAI-PMH 2.0, section 2.5).

A container is a template of that name under templates/about/. The variable `about_<name>` holds
what the container's function returns for the record. A record has no such container if the result
is empty or the record is deleted.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from functions.config.configuration import Configuration
from functions.oai.answer import read_rights
from functions.oai.render.loop import Container
from functions.reading.redif_fields import run_time
from functions.reading.repository import PublishedRecord
from functions.snapshot import instant

WARC = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
"""The namespace for the source format of a capture's metadata."""

REDIF = "urn:x-sheaf:redif:1"
"""The namespace of templates as their archives have them."""

COLUMNS = frozenset({"warc_filename", "warc_record_offset", "fetch_date", "source", "tist"})
"""The columns of captures and templates that containers read."""

_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:(T[0-9]{2}:[0-9]{2}:[0-9]{2})?.*Z)?")


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
    functions: dict[str, Container] = {}
    rights = read_rights(configuration)
    if rights.all():
        of = lru_cache(maxsize=4096)(rights.of)
        functions["rights"] = lambda record: of(record.sets)
    places = {kind: configuration[key] for kind, (key, _) in _ORIGINS.items() if configuration[key]}
    if places:
        functions["provenance"] = lambda record: (
            _ORIGINS[record.kind][1](record, places[record.kind]) if record.kind in places else ()
        )
    return functions


def _capture_origins(record: PublishedRecord, place: str) -> tuple[RecordOrigin, ...]:
    """Return the origin of a capture: its position in an archive file below `place`, if known."""
    name, offset = record.fields["warc_filename"], record.fields["warc_record_offset"]
    match = _DATE.fullmatch(record.fields["fetch_date"] or "")
    if not name or offset is None or match is None:  # also a date that is not exact to the day
        return ()
    day, second = match.groups()
    datestamp = f"{day}{second}Z" if second else day
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
