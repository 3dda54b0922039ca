"""Versions: rows of the table of records, read as the records that they are."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from functions.database.columns import Columns
from functions.oai.repository import Record
from functions.oai.repository_duckdb.page import Page
from functions.snapshot import obi, position, schema, setspec
from functions.snapshot.errors import DamagedStore
from functions.snapshot.manifest import Manifest, RowGroup, overlapping

_HEADER = ("position", "sequence", "identifier", "kind", "deleted", "sets")
_FIELDS = tuple(column.name for column in schema.CONTENT)
DOCUMENT = obi.DOCUMENT.name
"""The column that has what items of schema.DOCUMENTED hold; it is read where there are any."""
_ELSEWHERE = schema.DOCUMENTED | {"capture"}
"""Kinds of items of which no document is in the table of documents."""


def columns(
    *, headers: bool, of_set: bool, fields: Collection[str] | None = None
) -> tuple[str, ...]:
    """Return what is read of a row, for a list of headers or of records, of a set or of all.

    `fields` are those that are needed of a record (None: all), DOCUMENT for those
    of schema.DOCUMENTED.
    """
    header = (*_HEADER, "left_sets") if of_set else _HEADER
    if headers:
        return header
    return (*header, *(name for name in _FIELDS if fields is None or name in fields))


def page(found: Columns, stamps: Mapping[int, datetime], spec: str | None) -> Page:
    """Return rows of `columns` as a list of the set `spec` has them; None: as all others do.

    `stamps` are the datestamps by sequence.
    """
    shown = {name: found[name] for name in found if name not in ("sequence", "left_sets")}
    shown["datestamp"] = [stamps[number] for number in found["sequence"]]
    shown["sets"] = [tuple(sets or ()) for sets in found["sets"]]
    if spec is not None and any(found["left_sets"]):
        shown["deleted"] = [*found["deleted"]]
        for row, left in enumerate(found["left_sets"]):
            if left and not any(setspec.is_within(s, spec) for s in shown["sets"][row]):
                shown["deleted"][row] = True
                shown["sets"][row] = tuple(s for s in left if setspec.is_within(s, spec))
    return Page(shown)


class Narrowed:
    """The columns that are read of a list's row groups: DOCUMENT where any may have one."""

    def __init__(self, manifest: Manifest, names: tuple[str, ...]) -> None:
        self._names = names
        self._without = tuple(name for name in names if name != DOCUMENT)
        kinds = tuple(sorted(schema.DOCUMENTED))
        living = position.living(manifest, kinds) if DOCUMENT in names else set()
        self._spans = position.stretches(manifest, living, kinds) if living else []

    def of(self, groups: Sequence[RowGroup]) -> tuple[str, ...]:
        """Return the names for neighbouring row groups of records or copies."""
        first, last = groups[0].first, groups[-1].last
        if self._spans and (isinstance(first, tuple) or overlapping(self._spans, first, last)):
            return self._names
        return self._without


def lacking(records: Page) -> list[str] | None:
    """Return the identifiers, sorted, of the records whose fields the table of documents has.

    None where all records have their fields as columns, or no fields of theirs were asked for.
    """
    kinds = {*records.column("kind")}
    if kinds <= {"capture"} or (kinds <= _ELSEWHERE and DOCUMENT not in records.names):
        return None
    return sorted(r.identifier for r in records if r.kind not in _ELSEWHERE and not r.deleted)


def filled(records: Page, documents: Mapping[str, str]) -> Iterator[Record]:
    """Yield the records with the fields of their documents, JSON by identifier.

    Raises DamagedStore for a document that is none, or is not there.
    """
    for record in records:
        if record.kind == "capture" or record.deleted:
            yield record
            continue
        try:
            if record.kind in _ELSEWHERE:
                yield replace(record, fields=json.loads(record.fields.get(DOCUMENT, "{}")))
            else:
                yield replace(record, fields=json.loads(documents[record.identifier]))
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedStore(f"the document of {record.identifier} is damaged") from error
