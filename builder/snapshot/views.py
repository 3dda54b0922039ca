"""SQL views of a snapshot, so that plain DuckDB reads it without Sheaf."""

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from builder.threads import map_requests
from functions.snapshot import figure_tables, instant, item_tables, layout, obi, schema
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Manifest
from functions.store import engine
from functions.store.catalog import Catalogue

TABLES = {
    # view: the tables of the store that it reads
    "records": ("records", "dead"),
    "captures": ("records", "dead"),
    "sets": ("sets",),
    "words": ("words",),
    "faults": ("faults",),
    "sources": ("sources",),
    "collections": ("records", "dead", "documents"),
    "tallies": ("tallies", "records", "dead"),
    "templates": ("records", "dead"),
    "harvested": ("records", "dead"),
    "own_records": ("records", "dead"),
    **{table: (table,) for table in obi.TABLES},
    "filesets": ("records", "dead"),
    **{table: (table,) for table in (*item_tables.TABLES, *figure_tables.TABLES)},
}

NAMES = ("snapshots", *TABLES)
"""All views. `snapshots` shows only data of the manifest."""

_TEMPLATE = Path(__file__).parents[2] / "templates" / "sql" / "views.sql"
_CREATE = ("CREATE", "OR", "REPLACE", "TEMP", "VIEW")
_VIEW = re.compile(rf"^{' '.join(_CREATE)} .*?;$", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\w+")
_ROOT = "coalesce(getvariable('root'), '')"


def store_views(catalogue: Catalogue, manifest: Manifest, before: Manifest | None = None) -> str:
    """Return the statements that make the views for use at the store's location.

    Data files are named below DuckDB's variable `root`, which ends with a slash. If it is not set,
    they are relative to the store's root, and DuckDB must be started there. If there are many
    files, those of leaves that `before` has as well are taken from its views, which are shorter.
    """
    tables = dict.fromkeys(name for names in TABLES.values() for name in names)
    leaves = [leaf for table in tables for leaf in manifest.tables.get(table, ())]
    many = sum(leaf.files for leaf in leaves) > layout.LEAF_FILES
    keys = _find_named(catalogue, before) if before and many else {}
    new = [leaf for leaf in leaves if leaf.key not in keys]
    for leaf, described in zip(new, map_requests(catalogue.leaf, new), strict=True):
        keys[leaf.key] = [file.key for file in described.files]

    def files(table: str) -> Iterable[str]:
        return (key for leaf in manifest.tables.get(table, ()) for key in keys[leaf.key])

    return naming(manifest, files)


def _find_named(catalogue: Catalogue, manifest: Manifest) -> dict[str, list[str]]:
    """Return the keys of the data files of leaves, as the snapshot's own views name them."""
    try:
        text = catalogue.reader.read(manifest.views_key).decode()
    except (MissingObject, UnicodeDecodeError):
        return {}
    if digest(text) != manifest.views:
        return {}
    named: dict[str, list[str]] = {}
    for table, leaves in manifest.tables.items():
        keys = list(dict.fromkeys(re.findall(rf"records/{table}/[0-9a-f]{{32}}\.parquet", text)))
        if len(keys) == sum(leaf.files for leaf in leaves):
            for leaf in leaves:
                named[leaf.key], keys = keys[: leaf.files], keys[leaf.files :]
    return named


def naming(manifest: Manifest, files: Callable[[str], Iterable[str]]) -> str:
    """Return the statements as for `store_views`; `files` gives the keys of a table's files."""

    def source(table: str) -> str:
        keys = list(files(table))
        return engine.table(f"[{_ROOT} || f FOR f IN {_list(keys)}]") if keys else empty(table)

    return views(manifest, source)


def views(manifest: Manifest, source: Callable[[str], str], wanted: Iterable[str] = NAMES) -> str:
    """Return the statements that make the `wanted` views of the snapshot, and those they read.

    `source` returns the table expression for a table of the store.
    """
    text = _choose(_TEMPLATE.read_text("utf-8"), wanted)
    values = {
        f"{table}_files": source(table)
        for table in dict.fromkeys(name for names in TABLES.values() for name in names)
        if f"{{{table}_files}}" in text
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
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _choose(text: str, wanted: Iterable[str]) -> str:
    """Return the statements of the wanted views, and of all views that these may read."""
    left = set(wanted)
    if left.issuperset(NAMES):
        return text
    chosen: list[str] = []
    for statement in reversed(_VIEW.findall(text)):  # a view reads only views before it
        words = _WORD.findall(statement)
        if words[len(_CREATE)] in left:
            chosen.insert(0, statement)
            left.update(words)
    return "\n".join(chosen)


def digest(text: str) -> str:
    """Return the SHA-256 of the views, as recorded in the manifest."""
    return hashlib.sha256(text.encode()).hexdigest()


def fault(manifest: Manifest, data: bytes, expected: Callable[[], str]) -> str:
    """Return the fault of a snapshot's stored views, or "" if they are correct.

    They are correct if the manifest has their digest, or if they are `expected`. `expected` is what
    this version of Sheaf writes for that manifest, as a repair does.
    """
    if manifest.views == hashlib.sha256(data).hexdigest() or data == expected().encode():
        return ""
    return "its content differs from the digest in the manifest"


def files(paths: Iterable[Path]) -> str:
    """Return the table expression over local files; there is at least one."""
    return engine.table(_list(map(str, paths)))


def empty(table: str) -> str:
    """Return the table expression of a table's columns without a row."""
    columns = ", ".join(f"NULL::{c.type} AS {c.name}" for c in schema.TABLES[table])
    return f"(SELECT {columns} WHERE false)"


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(engine.quote, texts))}]"
