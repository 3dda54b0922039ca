"""The page of publishes: their changes, their feed (RFC 4287), and the dumps in the store."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from urllib.parse import quote

from functions.http import http_message
from functions.http.http_message import Reply
from functions.oai.request import LIST_IDENTIFIERS
from functions.reading.repository import KindFigures
from functions.site.page import TABLE_ROWS, PageError, PageRequest, PageTable, SitePage
from functions.snapshot import instant
from functions.snapshot.dumps import FOLDER
from functions.snapshot.errors import StoreError

_LOG = logging.getLogger("sheaf")
_MANY, _FEED = 50, 30
"""Publishes on a page, and in the feed."""
_COLUMNS = ("sequence", "kind", "added", "changed", "deleted", "restored", "live")
_DUMP_COLUMNS = ("since", "snapshot", "records", "deleted", "bytes", "name", "sha256")
_QUERY = (
    f"SELECT {', '.join(_COLUMNS)} FROM publishes "
    "WHERE coalesce(added + changed + deleted + restored, 1) > 0{} ORDER BY sequence DESC, kind"
)


@dataclass(frozen=True, slots=True)
class PublishLine:
    """A publish: its number and instant, its changes, and the requests that list them."""

    number: int
    effective: datetime
    changes: tuple[KindFigures, ...]
    view: str
    raw: str


@dataclass(frozen=True, slots=True)
class DumpTable:
    """The dumps in the store, and the addresses of their index and of each format's list."""

    table: PageTable
    index: str
    lists: Mapping[str, str]


def show(request: PageRequest) -> SitePage:
    """Return the page of the publishes before the one in the argument `before`."""
    rows = list(islice(_list(request), _MANY + 1))
    root = str(request.parts.configuration["identify.data_url"]).rstrip("/")
    more = rows[_MANY - 1].number if len(rows) > _MANY else None
    values = {
        "rows": rows[:_MANY],
        "more": request.address.page("/publishes", before=more) if more else None,
        "data_url": root,
        "views": f"{root}/{request.manifest.views_key}" if root else "",
        "dumps": None if request.arguments.get("before") else _read_dumps(request),
        "feed": request.address.page("/publishes.atom"),
        "table": find_table(request, _MANY),
    }
    return SitePage("publishes.html", request.text("publishes.title"), values)


def find_table(request: PageRequest, limit: int = TABLE_ROWS) -> PageTable:
    """Return what the publishes before the one in `before` changed. Raises PageError."""
    before = request.number("before")
    lines = list(islice(_list(request, limit + 1), limit + 1))
    rows = [
        (line.number, *(getattr(change, name) for name in _COLUMNS[1:]))
        for line in lines[:limit]
        for change in line.changes
    ]
    return PageTable(
        "publishes",
        _QUERY.format(f" AND sequence < {before}" if before else ""),
        _COLUMNS,
        rows,
        {"before": before or None},
        {"before": lines[limit - 1].number} if len(lines) > limit else None,
    )


def find_dumps(request: PageRequest) -> PageTable:
    """Return the complete and the newest dump of each format. Raises PageError."""
    dumps = _read_dumps(request)
    if dumps is None:
        raise PageError(request.text("error.missing"), 404)
    return dumps.table


def _read_dumps(request: PageRequest) -> DumpTable | None:
    """Return the dumps in the store with links where its address is known; None without dumps."""
    root = str(request.parts.configuration["identify.data_url"]).rstrip("/")
    if not (request.parts.dumps and request.parts.configuration["publish.dumps"]):
        return None
    try:
        index = request.parts.dumps()
    except StoreError as error:
        # The page shows the publishes nevertheless: a role may not allow reading the index.
        _LOG.warning("the dumps are not shown: %s", error)
        return None
    if index is None:
        return None
    base = f"{root}/{FOLDER}" if root.startswith(("http://", "https://")) else ""
    rows = [
        (
            name,
            *(getattr(dump, column) for column in _DUMP_COLUMNS),
            base + quote(dump.name) if base and dump.name else None,
        )
        for name, entry in index.formats.items()
        for dump in (entry.complete, entry.newest)
        if dump is not None
    ]
    lists = {name: base + quote(entry.list) for name, entry in index.formats.items() if base}
    table = PageTable("dumps", "", ("format", *_DUMP_COLUMNS, "address"), rows)
    return DumpTable(table, base and f"{base}index.json", lists)


def feed(request: PageRequest) -> Reply:
    """Return the Atom feed of the newest publishes."""
    configuration, address = request.parts.configuration, request.address
    variables = {
        "t": request.text,
        "number": request.text.write_number,
        "root": address.root,
        "pages": address.locate(address.page("/publishes")),
        "rows": list(islice(_list(request), _FEED)),
        "updated": request.manifest.effective,
        "name": configuration["repository.name"],
    }
    body = request.parts.renderer.page("publishes.xml", variables)
    return Reply(200, "application/atom+xml", body, digest=http_message.document_digest(body))


def _list(request: PageRequest, limit: int = _MANY + 1) -> Iterator[PublishLine]:
    """Yield publishes before the one in the argument `before`, newest first. Raises PageError."""
    before, address = request.number("before") or None, request.address
    for row in request.parts.repository.publishes(request.manifest, before, limit):
        stamp = instant.to_text(row.effective)
        arguments = {"metadataPrefix": "oai_dc", "from": stamp, "until": stamp}
        changes = tuple(
            kind
            for kind in row.kinds
            if kind.added is None or any((kind.added, kind.changed, kind.deleted, kind.restored))
        )
        yield PublishLine(
            row.sequence,
            row.effective,
            changes,
            address.answer(LIST_IDENTIFIERS, **arguments),
            address.request(LIST_IDENTIFIERS, **arguments),
        )
