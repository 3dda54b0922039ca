"""Commands for a shell that get a record, its copy, its row and its set."""

from functions.kinds import find_kind
from functions.reading.repository import PublishedRecord
from functions.site.page import PageRequest
from functions.store import engine


def list_commands(
    request: PageRequest, record: PublishedRecord, raw: str, copy: str | None
) -> list[tuple[str, str]]:
    """Return commands to copy, each with the key of its description."""
    table = "records" if record.deleted else find_kind(record.kind).view
    query = f"FROM {table} WHERE identifier = {engine.quote(record.identifier)}"
    commands = [("record.get", f"curl {quote_shell(raw)}")] if raw else []
    if copy is not None:
        commands.append(("record.fetch", f"curl -O -J {quote_shell(copy)}"))
    commands.append(("record.query", f"sheaf query {quote_shell(query)}"))
    root = str(request.parts.configuration["identify.data_url"]).rstrip("/")
    if root.startswith(("http://", "https://")):
        # What queries the published data files without Sheaf (docs/reference/store.md).
        views = quote_shell(f"{root}/{request.manifest.views_key}")
        variable = quote_shell(f"SET VARIABLE root = {engine.quote(f'{root}/')};")
        fetch = f"(echo {variable}; curl -s {views}) > views.sql"
        duckdb = f"{fetch}\nduckdb -init views.sql -c {quote_shell(query)}"
        commands.append(("record.duckdb", duckdb))
    for spec in record.sets[:1] if raw else ():
        line = f"sheaf harvest {request.address.oai} records --set {quote_shell(spec)}"
        commands.append(("record.harvest", line))
    return commands


def quote_shell(text: str) -> str:
    """Return an argument for a POSIX shell."""
    if "'" in text and not any(sign in text for sign in '"$`\\!'):
        return f'"{text}"'
    return "'" + text.replace("'", "'\"'\"'") + "'"
