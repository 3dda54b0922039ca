"""Versions: rows of the table of records, read as the records that they are."""

import json
from collections.abc import Mapping
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
    return header if headers else (*header, "document", *_FIELDS)


def read(row: tuple[Any, ...], stamps: Mapping[int, datetime], spec: str | None) -> Record:
    """Return a row of `columns` as a list of the set `spec` has it; None: as all others have it.

    `stamps` are the datestamps by sequence. Raises DamagedStore for a document that is none.
    """
    place, sequence, name, kind, deleted, sets, left, *rest = row
    if left and spec is not None and not any(setspec.is_within(s, spec) for s in sets):
        deleted, sets = True, [s for s in left if setspec.is_within(s, spec)]
    fields: dict[str, Any] = {}
    if rest and not deleted:
        document, *values = rest
        fields = dict(zip(_FIELDS, values, strict=True)) if document is None else _loaded(document)
    return Record(place, name, kind, stamps[sequence], deleted, tuple(sets or ()), fields)


def _loaded(document: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(document)
    except ValueError as error:
        raise DamagedStore(f"a document of the table records is damaged: {error}") from error
    return found
