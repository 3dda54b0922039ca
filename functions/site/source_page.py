"""The page of an archive file: what it declares, and the faults that were found in it."""

from functions.site.page import PageError, PageRequest, SitePage
from functions.store import engine

_MANY = 200
"""Faults on a page."""


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
        "query": f"FROM faults WHERE source = {engine.quote(name)}",
    }
    return SitePage("source.html", name, values)
