"""The page of an archive file: what it declares, and the faults that were found in it."""

from collections.abc import Mapping, Sequence
from typing import Any

from functions.site.page import TABLE_ROWS, PageError, PageRequest, PageTable, SitePage
from functions.store import engine

_MANY = 200
"""Faults on a page."""
_COLUMNS = ("place", "code", "field", "detail", "done")


def show(request: PageRequest) -> SitePage:
    """Return the page of the archive file in the argument `name`. Raises PageError."""
    name = request.arguments.get("name", "")
    rows_of = request.parts.repository.source_rows
    # The path may name folders of the operator's machine.
    hidden = ("path", "reading")
    rows = [
        {column: value for column, value in row.items() if column not in hidden and value}
        for row in rows_of(request.manifest, "sources", name, 10)
    ]
    if not rows:
        raise PageError(request.text("source.unknown", name=name), 404)
    faults = rows_of(request.manifest, "faults", name, _MANY + 1)
    values = {
        "rows": rows,
        "faults": faults[:_MANY],
        "is_cut": len(faults) > _MANY,
        "table": _describe(name, faults[:_MANY]),
    }
    return SitePage("source.html", name, values)


def find_table(request: PageRequest) -> PageTable:
    """Return the first faults of the archive file in the argument `name`."""
    name = request.arguments.get("name", "")
    rows = request.parts.repository.source_rows(request.manifest, "faults", name, TABLE_ROWS)
    return _describe(name, rows)


def _describe(name: str, faults: Sequence[Mapping[str, Any]]) -> PageTable:
    query = (
        f"SELECT {', '.join(_COLUMNS)} FROM faults WHERE source = {engine.quote(name)} ORDER BY ALL"
    )
    rows = [tuple(fault[column] for column in _COLUMNS) for fault in faults]
    return PageTable("faults", query, _COLUMNS, rows, {"name": name})
