"""The page of a set: its counts, the sets below it, how to harvest it; or the sets at the top."""

from collections.abc import Sequence
from dataclasses import dataclass

from functions.kinds import find_kind
from functions.oai.request import LIST_IDENTIFIERS, LIST_RECORDS
from functions.reading.repository import SetRow
from functions.site import browse
from functions.site.page import TABLE_ROWS, PageError, PageRequest, PageTable, SitePage
from functions.snapshot import oai_name
from functions.store import engine

_MANY = 200
"""Sets on a page."""


@dataclass(frozen=True, slots=True)
class SetLine:
    """A set in a list: `deleted` counts what is withdrawn or has left the set.

    `share` is the number of its live records in percent of that of the largest set of the list.
    """

    spec: str
    name: str
    live: int
    deleted: int
    share: float = 0


def show(request: PageRequest) -> SitePage:
    """Return the page of the set `under`, or of the sets at the top. Raises PageError."""
    spec = request.arguments.get("under", "")
    repository, manifest = request.parts.repository, request.manifest
    own = None
    if spec:
        own = repository.find_set(manifest, spec) if oai_name.is_set(spec) else None
        if own is None:
            raise PageError(request.text("sets.unknown", spec=spec), 404)
    rows = _children(request, spec, _MANY + 1)
    more = rows[_MANY - 1].spec if len(rows) > _MANY else None
    most = max((row.live for row in rows), default=0) or 1
    address = request.address
    chosen = {"set": spec} if spec else {}
    values = {
        "own": _line(request, own) if own else None,
        "above": [_name_stored(request, s) for s in oai_name.set_lineage(spec)[:-1]]
        if spec
        else [],
        "rows": [_line(request, row, most) for row in rows[:_MANY]],
        "count": manifest.sets,
        "more": address.page("/sets", under=spec or None, after=more) if more else None,
        "list_url": address.request(LIST_RECORDS, metadataPrefix="oai_dc", **chosen),
        "view": address.answer(LIST_IDENTIFIERS, metadataPrefix="oai_dc", **chosen),
        "command": f"sheaf harvest {address.oai} records" + (f" --set '{spec}'" if spec else ""),
        "listing": browse.list_records(request, "/sets", spec) if spec else None,
        "description": request.parts.configuration["sets.descriptions"].get(spec, ""),
        "table": _describe(request, spec, rows, _MANY),
        "record_link": _link_record(request, spec),
        "first": own.first if own else None,
        "last": own.last if own else None,
    }
    title = (
        request.name_set(spec, own.name if own else None) if spec else request.text("sets.title")
    )
    return SitePage("sets.html", title, values)


def _name_stored(request: PageRequest, spec: str) -> tuple[str, str]:
    """Return a set with its name; that of a template is in its row alone."""
    row = request.parts.repository.find_set(request.manifest, spec)
    return spec, request.name_set(spec, row.name if row else None)


def find_table(request: PageRequest) -> PageTable:
    """Return the sets below the one in the argument `under`, with counts."""
    spec = request.arguments.get("under", "")
    return _describe(request, spec, _children(request, spec, TABLE_ROWS + 1), TABLE_ROWS)


def _children(request: PageRequest, spec: str, limit: int) -> Sequence[SetRow]:
    after = request.arguments.get("after", "")
    return request.parts.repository.children(request.manifest, spec, after, limit)


def _describe(request: PageRequest, spec: str, rows: Sequence[SetRow], limit: int) -> PageTable:
    """Return rows of a level as a table; one more than `limit` tells that others follow."""
    within, after = f"{spec}:" if spec else "", request.arguments.get("after", "")
    behind = f"set_spec > {engine.quote(after)} AND " if after else ""
    query = (
        f"SELECT set_spec, live, records - live AS gone FROM sets WHERE {behind}"
        f"starts_with(set_spec, {engine.quote(within)}) AND "
        f"len(string_split(set_spec, ':')) = {within.count(':') + 1} ORDER BY set_spec"
    )
    under = {"under": spec or None}
    return PageTable(
        "sets",
        query,
        ("set_spec", "live", "gone"),
        [(row.spec, row.live, row.records - row.live) for row in rows[:limit]],
        {**under, "after": after or None},
        {**under, "after": rows[limit - 1].spec} if len(rows) > limit else None,
    )


def _link_record(request: PageRequest, spec: str) -> str | None:
    """Return the page of the record that describes a set: of a collection, series or archive."""
    manifest = request.manifest
    for kind, count in manifest.kinds().items():
        identifier = find_kind(kind).of_set(manifest, spec) if count else None
        if identifier is not None:
            record = request.parts.repository.record(manifest, identifier)
            return request.address.record(identifier) if record and not record.deleted else None
    return None


def _line(request: PageRequest, row: SetRow, most: int = 1) -> SetLine:
    name = request.name_set(row.spec, row.name)
    gone = row.records - row.live
    return SetLine(row.spec, name, row.live, gone, round(100 * row.live / most, 2))
