"""SQL views of a snapshot, so that plain DuckDB reads it with no Sheaf installed."""

from collections.abc import Iterable
from pathlib import Path

from functions.oai import engine
from functions.snapshot import instant, schema
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Reader
from functions.store.catalog import Catalogue

_TEMPLATE = Path(__file__).parents[1] / "templates" / "sql" / "views.sql"
_STORED = ("records", "dead", "sets", "faults", "sources")


def views(reader: Reader, manifest: Manifest, root: str | None = None) -> str:
    """Return the statements that make a view of each table of the snapshot.

    Data files are named below `root`; None stands for the place from which `views.sql` is read,
    which is two folders below the store's root (DuckDB's own relative paths start at the working
    directory, so such a file is to be read from the root of the store).
    """
    catalogue = Catalogue(reader)
    prefix = "" if root is None else root.rstrip("/") + "/"
    values = {
        f"{table}_files": _files(
            table, (prefix + file.key for file in catalogue.files(manifest, table))
        )
        for table in _STORED
    }
    sequences = ", ".join(
        f"({s.number}, TIMESTAMP '{instant.to_text(s.effective)[:-1]}', {s.first}, {s.last}, "
        f"{sum(s.records.values())})"
        for s in manifest.sequences
    )
    values["sequences"] = sequences or "(NULL, NULL, NULL, NULL, NULL)"
    values["snapshot"] = str(manifest.snapshot)
    values["effective"] = instant.to_text(manifest.effective)
    values["capture_columns"] = ", ".join(column.name for column in schema.CAPTURE)
    text = _TEMPLATE.read_text("utf-8")
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _files(table: str, keys: Iterable[str]) -> str:
    """Return a table expression over the files, or an empty table of the same columns."""
    names = ", ".join("'" + key.replace("'", "''") + "'" for key in keys)
    if names:
        return engine.table(f"[{names}]")
    columns = ", ".join(f"NULL::{c.type} AS {c.name}" for c in schema.TABLES[table])
    return f"(SELECT {columns} WHERE false)"
