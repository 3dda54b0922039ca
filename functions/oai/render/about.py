"""About containers (OAI-PMH 2.0, section 2.5).

A container is a template of that name under templates/about/. The variable `about_<name>` holds
what the container's function returns for the record. A record has no such container if the result
is empty or the record is deleted.
"""

from dataclasses import dataclass
from functools import lru_cache

from functions.config.configuration import Configuration
from functions.kinds import KINDS
from functions.oai.answer import read_rights
from functions.oai.render.loop import Container
from functions.reading.repository import PublishedRecord
from functions.snapshot import instant

COLUMNS = frozenset(name for kind in KINDS.values() for name in kind.origin_columns)
"""The columns that containers read."""


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
    keys = {kind.name: kind.origin_key for kind in KINDS.values() if kind.origin_key}
    places = {kind: configuration[key] for kind, key in keys.items() if configuration[key]}
    if places:
        functions["provenance"] = lambda record: (
            _list_origins(record, places[record.kind]) if record.kind in places else ()
        )
    return functions


def _list_origins(record: PublishedRecord, place: str) -> tuple[RecordOrigin, ...]:
    """Return the source of an item's metadata below `place`, if it is known."""
    kind = KINDS[record.kind]
    source = kind.origin(record.fields, place)
    if source is None:
        return ()
    return (RecordOrigin(_instant(record.datestamp), True, place, *source, kind.origin_namespace),)


# Records of a page share the instant of their publish.
_instant = lru_cache(maxsize=256)(instant.to_text)
