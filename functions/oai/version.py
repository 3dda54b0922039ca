"""Versions: rows of the table of records, read as the records that they are."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from functions.oai.columns import Columns
from functions.oai.page import Page
from functions.oai.repository import Record
from functions.snapshot import schema, setspec
from functions.snapshot.errors import DamagedStore

_HEADER = ("position", "sequence", "identifier", "kind", "deleted", "sets")
_FIELDS = tuple(n for n in schema.names("records") if n not in {c.name for c in schema.ITEM})


def columns(
    *, headers: bool, of_set: bool, fields: Collection[str] | None = None
) -> tuple[str, ...]:
    """Return what is read of a row, for a list of headers or of records, of a set or of all.

    `fields` are those that are needed of a record (None: all).
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


def lacking(records: Page) -> list[str]:
    """Return the identifiers, sorted, of the records whose fields are in a document."""
    if {*records.column("kind")} <= {"capture"}:
        return []
    return sorted(r.identifier for r in records if r.kind != "capture" and not r.deleted)


def filled(records: Page, documents: Mapping[str, str]) -> Iterator[Record]:
    """Yield the records with the fields of their documents, JSON by identifier.

    Raises DamagedStore for a document that is none, or is not there.
    """
    for record in records:
        if record.kind == "capture" or record.deleted:
            yield record
            continue
        try:
            yield replace(record, fields=json.loads(documents[record.identifier]))
        except (KeyError, ValueError) as error:
            raise DamagedStore(f"the document of {record.identifier} is damaged") from error
