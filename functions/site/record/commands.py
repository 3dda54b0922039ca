"""Commands for a shell that get a record, its copy, its row and its set."""

from functions.database import engine
from functions.oai.repository import PublishedRecord
from functions.site.page import PageRequest

_TABLES = {"capture": "captures", "template": "templates"}
"""The table of DuckDB by the kind of an item; all others are in `records`."""


def list_commands(
    request: PageRequest, record: PublishedRecord, raw: str, copy: str | None
) -> list[tuple[str, str]]:
    """Return commands to copy, each with the key of its description."""
    table = "records" if record.deleted else _TABLES.get(record.kind, "records")
    query = f"FROM {table} WHERE identifier = {engine.quote(record.identifier)}"
    found = [("record.get", f"curl {quote_shell(raw)}")]
    if copy is not None:
        found.append(("record.fetch", f"curl -O -J {quote_shell(copy)}"))
    found.append(("record.query", f"sheaf query {quote_shell(query)}"))
    root = str(request.parts.configuration["identify.data_url"]).rstrip("/")
    if root.startswith(("http://", "https://")):
        found.append(("record.duckdb", _query_remotely(request, root, query)))
    for spec in record.sets[:1]:
        line = f"sheaf harvest {request.address.oai} records --set {quote_shell(spec)}"
        found.append(("record.harvest", line))
    return found


def _query_remotely(request: PageRequest, root: str, query: str) -> str:
    """Return what queries the published data files without Sheaf (docs/reference/store.md)."""
    views = f"{root}/{request.manifest.views_key}"
    variable = f"SET VARIABLE root = {engine.quote(f'{root}/')};"
    return (
        f"(echo {quote_shell(variable)}; curl -s {quote_shell(views)}) > views.sql\n"
        f"duckdb -init views.sql -c {quote_shell(query)}"
    )


def quote_shell(text: str) -> str:
    """Return an argument for a POSIX shell."""
    if "'" in text and not any(sign in text for sign in '"$`\\!'):
        return f'"{text}"'
    return "'" + text.replace("'", "'\"'\"'") + "'"
