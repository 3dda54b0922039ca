"""Versions: rows of the table of records, read as the records that they are."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from functions.oai.repository import Record
from functions.snapshot import schema, setspec
from functions.snapshot.errors import DamagedStore

_HEADER = ("position", "sequence", "identifier", "kind", "deleted", "sets")
_FIELDS = tuple(n for n in schema.names("records") if n not in {c.name for c in schema.ITEM})


def columns(*, headers: bool, of_set: bool) -> tuple[str, ...]:
    """Return what is read of a row, for a list of headers or of records, of a set or of all."""
    header = (*_HEADER, "left_sets" if of_set else "NULL")
    return header if headers else (*header, *_FIELDS)


def read(row: tuple[Any, ...], stamps: Mapping[int, datetime], spec: str | None) -> Record:
    """Return a row of `columns` as a list of the set `spec` has it; None: as all others have it.

    `stamps` are the datestamps by sequence. What is no capture has its fields in a document.
    """
    place, sequence, name, kind, deleted, sets, left, *values = row
    if left and spec is not None and not any(setspec.is_within(s, spec) for s in sets):
        deleted, sets = True, [s for s in left if setspec.is_within(s, spec)]
    bare = deleted or not values
    fields = {} if bare else dict(zip(_FIELDS, values, strict=True))
    return Record(place, name, kind, stamps[sequence], deleted, tuple(sets or ()), fields)


def lacking(records: Sequence[Record]) -> list[str]:
    """Return the identifiers, sorted, of the records whose fields are in a document."""
    return sorted(r.identifier for r in records if r.kind != "capture" and r.fields)


def filled(records: Sequence[Record], documents: Mapping[str, str]) -> Iterator[Record]:
    """Yield the records with the fields of their documents, JSON by identifier.

    Raises DamagedStore for a document that is none, or is not there.
    """
    for record in records:
        if record.kind == "capture" or not record.fields:
            yield record
            continue
        try:
            yield replace(record, fields=json.loads(documents[record.identifier]))
        except (KeyError, ValueError) as error:
            raise DamagedStore(f"the document of {record.identifier} is damaged") from error
