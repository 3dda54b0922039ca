"""Check of the obi store's tables: replays the logs of its runs and compares the results."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from builder.obi import replay
from builder.obi.history import Committed
from builder.parquet.writer import batches, write_table
from builder.store.findings import Finding
from functions.database import engine
from functions.snapshot import layout, obi
from functions.snapshot.manifest import DataFile, Manifest
from functions.snapshot.store import Reader
from functions.store.catalog import Catalogue


def findings(
    store: Reader,
    manifest: Manifest,
    runs: Sequence[Committed],
    connection: engine.Connection,
    scratch: Path,
) -> Iterator[Finding]:
    """Build the tables of a snapshot again from the logs alone, and compare them with its files.

    Another version of a library may write other bytes: files with the same rows are not damaged.
    Raises DamagedStore for a log that was edited.
    """
    shown = [run for run in runs if run.tist <= manifest.run]
    key, catalogue = layout.manifest_key(manifest.snapshot), Catalogue(store)
    if manifest.run != (shown[-1].tist if shown else 0):
        yield Finding("obi-tables", key, f"it shows the run {manifest.run}, which does not exist")
        return
    replay.fold(connection, store, shown, scratch)
    for table in obi.TABLES:
        files = [*catalogue.files(manifest, table)]
        if [file.key for file in files] == keys(connection, table, scratch):
            continue
        differing = _differing(store, connection, table, files)
        if differing:
            home = files[0].key if files else key
            problem = f"{differing:,} rows of {table} differ from the runs' logs"
            yield Finding("obi-tables", home, problem)


def keys(connection: engine.Connection, table: str, scratch: Path) -> list[str]:
    """Return the keys of the files that a publish writes for a table of the replay."""
    found = []
    with engine.reading(f"the table {table}"):
        stream = engine.stream(connection, replay.query(table))
        for written in write_table(batches(stream), table, scratch):
            found.append(layout.data_key(table, written.digest))
            written.path.unlink()
    return found


def _differing(
    store: Reader, connection: engine.Connection, table: str, files: Sequence[DataFile]
) -> int:
    """Return the number of rows in which the files differ from the replay."""
    values = {"files": [str(store.local(file.key)) for file in files]}
    names = ", ".join(column.name for column in obi.TABLES[table])
    there = f"SELECT {names} FROM {engine.table('$files')}"
    if not files:
        there, values = f"SELECT {names} FROM {table} WHERE false", {}
    made = f"SELECT {names} FROM {table}"
    with engine.reading(f"the table {table}"):
        ((count,),) = connection.execute(
            f"SELECT (SELECT count(*) FROM ({there} EXCEPT ALL {made})) + "
            f"(SELECT count(*) FROM ({made} EXCEPT ALL {there}))",
            values,
        ).fetchall()
    return int(count)
