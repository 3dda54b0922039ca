"""Lists of records, of a kind or of a set, and the list of collections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from functions.kinds import CAPTURES, find_kind
from functions.kinds.collections import COLLECTION
from functions.reading.record_filter import PAGES, write_literals
from functions.reading.record_rows import walk_back
from functions.reading.repository import PublishedRecord, RecordFilter, RecordSelection
from functions.site.fields import read_date, read_title, shorten
from functions.site.page import (
    TABLE_ROWS,
    FilterForm,
    PageError,
    PageRequest,
    PageTable,
    SitePage,
)
from functions.snapshot import instant
from functions.snapshot.manifest import Span
from functions.store import engine

_MANY = 50
"""Records on a page."""
_RECENT = 60
"""The newest records among which a reader is shown some."""
_BACK = (_RECENT, 4_000, 4_000)
"""Positions that are read for them, one step after the other while live URLs are too few."""
_HTML = ("text/html", "application/xhtml+xml")
_GROUPS = 32
"""Row groups of records that a page of a filtered list reads at most."""
_SHOWN = ("url", "title", "fetch_date", "fetch_status", "content_mime_type")
_COLLECTION = ("set_spec", "name", "captures", "bytes", "first_date", "last_date")
_FIELDS = (*_SHOWN, "document")


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
    """A page of a list of records; `more` is the address of the next one, "" at the end.

    `form` is what the reader asked for, None where there is no choice.
    """

    rows: Sequence[RecordLine]
    more: str
    table: PageTable
    form: FilterForm | None


def show(request: PageRequest) -> SitePage:
    """Return the list of records, of the kind in the argument `kind` or of all."""
    kind = request.arguments.get("kind", "")
    counts = request.manifest.kinds()
    listing = list_records(request, "/records", "")
    values = {
        "listing": listing,
        "kind": kind,
        "counts": {name: n for name, n in sorted(counts.items()) if n},
    }
    title = request.text(f"kinds.{kind}") if kind else request.text("records.title")
    return SitePage("records.html", title, values)


def list_records(request: PageRequest, path: str, spec: str) -> RecordListing:
    """Return a page of the list at `path`, of a set ("": of all). Raises PageError."""
    address, (records, table) = request.address, _read_page(request, spec, _MANY)
    has_captures = not CAPTURES.isdisjoint(_kinds(request))
    return RecordListing(
        [describe_record(record, request) for record in records],
        "" if table.more is None else address.page(path, **table.more),
        table,
        request.make_form(request.list_types() if has_captures else ()),
    )


def find_table(request: PageRequest) -> PageTable:
    """Return the list of records of a kind and a set, as its page has it. Raises PageError."""
    return _read_page(request, request.arguments.get("under", ""), TABLE_ROWS)[1]


def _kinds(request: PageRequest) -> tuple[str, ...]:
    kind, counts = request.arguments.get("kind", ""), request.manifest.kinds()
    if kind and kind not in counts:
        raise PageError(request.text("records.unknown", kind=kind), 404)
    return (kind,) if kind else tuple(counts)


def _read_page(
    request: PageRequest, spec: str, limit: int
) -> tuple[Sequence[PublishedRecord], PageTable]:
    """Return records from the arguments record and rest on, and their table. Raises PageError.

    Pages come first, then with `rest` what they load; both by position. A page of a list may be
    short, as what it costs must not depend on how rare a status is.
    """
    kinds, chosen, start = _kinds(request), request.read_filter(), request.number("record")
    manifest, repository = request.manifest, request.parts.repository
    has_rest, is_rest = not CAPTURES.isdisjoint(kinds), request.arguments.get("rest") == "1"
    rows: list[tuple[PublishedRecord, str | None]] = []
    following: tuple[int, str | None] | None = None
    is_html = not chosen.media_type or any(t.startswith(chosen.media_type) for t in _HTML)
    parts = (False,) if is_rest or not is_html else (True, False)
    for pages in parts if has_rest else (None,):
        rest = "1" if pages is False else None
        conditions = replace(chosen, pages=pages)
        span = Span(start + 1, manifest.last_position)
        selection = RecordSelection(kinds, span, spec or None)
        if conditions != RecordFilter():
            end = repository.reach(manifest, selection, _GROUPS)
            span = Span(span.first, end)
            selection = replace(selection, span=span, filter=conditions)
        rows += [(r, rest) for r in _read(request, selection, limit + 1 - len(rows))]
        if len(rows) > limit:
            following = rows[limit - 1][0].position, rows[limit - 1][1]
        elif span.last < manifest.last_position:
            following = span.last, rest
        if following:
            break
        start = 0
    records = [record for record, _ in rows[:limit]]
    return records, _describe_table(request, spec, records, following)


def _describe_table(
    request: PageRequest,
    spec: str,
    records: Sequence[PublishedRecord],
    following: tuple[int, str | None] | None,
) -> PageTable:
    """Return records as a table. `following` is the place where the next page begins."""
    names = ("kind", "status", "type", "year", "record", "rest")
    arguments = {name: request.arguments.get(name) or None for name in names}
    kinds, place, is_rest = _kinds(request), request.number("record"), arguments["rest"] == "1"
    conditions = [f"kind IN {engine.texts(sorted(kinds))}"] if arguments["kind"] else []
    if spec:
        member = f"s = {engine.quote(spec)} OR starts_with(s, {engine.quote(f'{spec}:')})"
        conditions.append(f"list_bool_or([{member} FOR s IN list_concat(sets, left_sets)])")
    conditions += write_literals(request.read_filter())
    order = "position"
    if not CAPTURES.isdisjoint(kinds):
        order = f"NOT {PAGES}, position"
        conditions += [f"NOT {PAGES}"] if is_rest else []
        if place and not is_rest:
            conditions.append(f"(position > {place} OR NOT {PAGES})")
    if place and (is_rest or order == "position"):
        conditions.append(f"position > {place}")
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    rows = []
    for r in records:
        # Other kinds have no such columns, though their documents may have such members.
        fields = r.fields if find_kind(r.kind).is_capture else {}
        shown = (fields.get(name) for name in _SHOWN)
        rows.append((r.position, r.identifier, r.kind, instant.to_text(r.datestamp), *shown))
    more = None
    if following:
        more = {**arguments, "record": following[0], "rest": following[1], "under": spec or None}
    return PageTable(
        "records",
        "SELECT position, identifier, kind, strftime(datestamp, '%Y-%m-%dT%H:%M:%SZ') AS "
        f"datestamp, {', '.join(_SHOWN)} FROM records {where}ORDER BY {order}",
        ("position", "identifier", "kind", "datestamp", *_SHOWN),
        rows,
        {**arguments, "under": spec or None},
        more,
    )


def find_collections(request: PageRequest) -> PageTable:
    """Return the collections from the argument record on. Raises PageError."""
    return _read_collections(request, TABLE_ROWS)[1]


def _read_collections(
    request: PageRequest, limit: int
) -> tuple[Sequence[PublishedRecord], PageTable]:
    """Return up to `limit` collections, and their table. Raises PageError."""
    place = request.number("record")
    span = Span(place + 1, request.manifest.last_position)
    # One more tells that others follow.
    records = _read(request, RecordSelection((COLLECTION.name,), span), limit + 1)
    live = [record for record in records[:limit] if not record.deleted]
    table = PageTable(
        "collections",
        f"SELECT {', '.join(_COLLECTION)} FROM collections JOIN (SELECT identifier, position FROM "
        f"records) USING (identifier) WHERE position > {place} ORDER BY position",
        _COLLECTION,
        [[record.fields[name] for name in _COLLECTION] for record in live],
        {"record": place or None},
        {"record": records[limit - 1].position} if len(records) > limit else None,
    )
    return live, table


def list_newest(request: PageRequest, limit: int) -> Sequence[RecordLine]:
    """Return some of the records that were published last, one of each URL, pages first.

    A collection is no news: each capture in it changes it.
    """
    manifest, lines = request.manifest, dict[str, PublishedRecord]()
    kinds = tuple({*manifest.kinds()} - {COLLECTION.name})
    for span in walk_back(manifest, kinds, _BACK):
        selection = RecordSelection(kinds, span)
        records = _read(request, selection, span.last - span.first + 1)
        for record in reversed(records):
            if not record.deleted:
                lines.setdefault(str(record.fields.get("url") or record.identifier), record)
        if len(lines) >= limit:
            break

    def rank(record: PublishedRecord) -> tuple[bool, int]:
        media_type = record.fields.get("content_mime_type") or ""
        is_part = find_kind(record.kind).is_capture and "html" not in media_type
        return is_part, -record.position

    newest = sorted(lines.values(), key=rank)
    return [describe_record(record, request) for record in newest[:limit]]


def show_collections(request: PageRequest) -> SitePage:
    """Return the list of collections, with what each holds."""
    records, table = _read_collections(request, _MANY)
    values: Mapping[str, Any] = {
        "records": records,
        "more": None if table.more is None else request.address.page("/collections", **table.more),
        "table": table,
        "name_collection": request.name_collection,
    }
    return SitePage("collections.html", request.text("collections.title"), values)


def describe_record(record: PublishedRecord, request: PageRequest) -> RecordLine:
    """Return a record as a line of a list."""
    deleted = record.deleted or not record.fields
    title = request.text("record.deleted") if deleted else shorten(read_title(record))
    if record.kind == COLLECTION.name and not deleted:
        title = request.name_collection(record.fields)
    url = shorten(str(record.fields.get("url") or ""))
    return RecordLine(
        record.identifier,
        record.kind,
        title,
        "" if deleted or url == title else url,
        "" if deleted else shorten(", ".join(find_kind(record.kind).authors(record.fields)[:3])),
        "" if deleted else read_date(record)[:10],
        deleted,
        None if deleted else request.find_view(record),
    )


def _read(
    request: PageRequest, selection: RecordSelection, limit: int
) -> Sequence[PublishedRecord]:
    if selection.is_empty:
        return ()
    repository, manifest = request.parts.repository, request.manifest
    return repository.page(manifest, selection, limit, headers=False, fields=_FIELDS)
