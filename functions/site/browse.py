"""Lists of records, of a kind or of a set, and the list of collections."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from functions.kinds import find_kind
from functions.kinds.collections import COLLECTION
from functions.reading.repository import PublishedRecord, RecordSelection
from functions.site.fields import read_date, read_title, shorten
from functions.site.page import PageError, PageRequest, SitePage
from functions.snapshot.manifest import Span

_MANY = 50
"""Records on a page."""
_FIELDS = ("url", "title", "fetch_date", "fetch_status", "content_mime_type", "document")


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A record in a list: what tells it from others, and the address of its copy."""

    identifier: str
    kind: str
    title: str
    url: str
    authors: str
    date: str
    deleted: bool
    copy: str | None


@dataclass(frozen=True, slots=True)
class RecordListing:
    """A page of a list of records; `more` is the position behind which it continues."""

    rows: tuple[RecordLine, ...]
    more: int | None


def show(request: PageRequest) -> SitePage:
    """Return the list of records, of the kind in the argument `kind` or of all."""
    kind = request.arguments.get("kind", "")
    counts = request.manifest.kinds()
    if kind and kind not in counts:
        raise PageError(request.text("records.unknown", kind=kind), 404)
    listing = list_records(request, "", kind)
    more = request.address.page("/records", kind=kind or None, record=listing.more)
    values = {
        "listing": listing,
        "kind": kind,
        "counts": {name: n for name, n in sorted(counts.items()) if n},
        "more": more if listing.more is not None else None,
    }
    title = request.text(f"kinds.{kind}") if kind else request.text("records.title")
    return SitePage("records.html", title, values)


def show_collections(request: PageRequest) -> SitePage:
    """Return the list of collections, with what each holds."""
    records = _read(request, RecordSelection((COLLECTION.name,), _span(request)), _MANY + 1)
    live = [record for record in records[:_MANY] if not record.deleted]
    more = None
    if len(records) > _MANY:
        more = request.address.page("/collections", record=records[_MANY - 1].position)
    values: Mapping[str, Any] = {"records": live, "more": more}
    return SitePage("collections.html", request.text("collections.title"), values)


def list_records(request: PageRequest, spec: str, kind: str = "") -> RecordListing:
    """Return records of a set ("": of all) from a position on. Raises PageError."""
    kinds = (kind,) if kind else tuple(request.manifest.kinds())
    selection = RecordSelection(kinds, _span(request), spec or None)
    records = _read(request, selection, _MANY + 1)
    more = records[_MANY - 1].position if len(records) > _MANY else None
    return RecordListing(tuple(describe_record(r, request) for r in records[:_MANY]), more)


def describe_record(record: PublishedRecord, request: PageRequest) -> RecordLine:
    """Return a record as a line of a list."""
    deleted = record.deleted or not record.fields
    title = request.text("record.deleted") if deleted else shorten(read_title(record))
    url = shorten(str(record.fields.get("url") or ""))
    return RecordLine(
        record.identifier,
        record.kind,
        title,
        "" if deleted or url == title else url,
        "" if deleted else ", ".join(find_kind(record.kind).authors(record.fields)[:3]),
        "" if deleted else read_date(record)[:10],
        deleted,
        None if deleted else request.find_view(record),
    )


def _span(request: PageRequest) -> Span:
    return Span(request.number("record") + 1, request.manifest.last_position)


def _read(
    request: PageRequest, selection: RecordSelection, limit: int
) -> tuple[PublishedRecord, ...]:
    if selection.is_empty:
        return ()
    repository, manifest = request.parts.repository, request.manifest
    return tuple(repository.page(manifest, selection, limit, headers=False, fields=_FIELDS))
