"""Runs of the intake that an earlier release ingested and that are not published yet.

Each becomes a run of a name that sorts at the same place. The old one is removed afterwards.
"""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from builder.intake import intake
from builder.intake.lines import SUFFIX, LineWriter
from builder.upgrade import documents
from functions.database import engine
from functions.snapshot import layout
from functions.snapshot.errors import VERSION, DamagedStore
from functions.snapshot.store import Writer

_MEMORY = 512  # megabytes
_FILES = engine.table("$files")
_PARQUET = ".parquet"


def convert_runs(store: Writer) -> int:
    """Convert all finished runs of earlier schemas; return their number. Raises DamagedStore."""
    count = 0
    for key in [k for k in store.keys(layout.INTAKE) if k.endswith("/" + layout.RUN_SUMMARY)]:
        found = documents.parse(store.read(key), key)
        if documents.is_older(found):
            _convert(store, key, found)
            count += 1
    return count


def _convert(store: Writer, key: str, found: dict[str, Any]) -> None:
    name = key.split("/")[1]
    prefix = layout.run_prefix(name)
    summary = f"{layout.run_prefix(f'{name}-{VERSION}')}{layout.RUN_SUMMARY}"
    run = intake.build_run(summary, found)
    if store.tag(summary) is None:
        with (
            tempfile.TemporaryDirectory(prefix="sheaf-upgrade-") as scratch,
            closing(engine.connect(memory_megabytes=_MEMORY, scratch=Path(scratch))) as connection,
        ):
            intake.commit(store, run, Path(scratch), _parts(store, prefix, connection, scratch))
    store.remove(*(one for one in list(store.keys(prefix)) if one != key))
    store.remove(key)  # last, so that nothing is forgotten


def _parts(
    store: Writer, prefix: str, connection: engine.Connection, scratch: str
) -> Iterator[tuple[str, Path]]:
    """Yield the name and the local path of each data file; the summary holds the sources."""
    for key in store.keys(prefix):
        stem = key.removeprefix(prefix).removesuffix(_PARQUET)
        table = stem.partition("-")[0]
        if key.endswith(_PARQUET) and table != "sources":
            if table not in intake.TABLES:
                raise DamagedStore(f"{key} is damaged: no table has that name; remove that run")
            path = intake.part_path(Path(scratch), table, stem.removeprefix(f"{table}-"))
            _write(connection, table, key, str(store.local(key)), path)
            yield path.name, path


def _write(connection: engine.Connection, table: str, key: str, old: str, path: Path) -> None:
    """Write the rows of a data file with all columns of the table."""
    values = {"files": [old]}
    with engine.reading(key), intake.writing(path.parent):
        described = connection.execute(f"DESCRIBE SELECT * FROM {_FILES}", values).fetchall()
        there = {row[0] for row in described}
        columns = ", ".join(
            column.name if column.name in there else f"NULL::{column.type} AS {column.name}"
            for column in intake.TABLES[table]
        )
        rows = f"SELECT {columns} FROM {_FILES}"
        if not path.name.endswith(SUFFIX):
            target = f"{engine.quote(str(path))} (FORMAT parquet, COMPRESSION zstd)"
            connection.execute(f"COPY ({rows}) TO {target}", values)
            return
        writer = LineWriter(path, intake.TABLES[table])
        for some in engine.batches(connection, rows, values):
            for row in some:
                writer.append(row)
        writer.close()
