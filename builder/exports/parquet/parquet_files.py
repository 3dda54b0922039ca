"""Exports a view of the newest snapshot as Parquet for analysts.

The store's own files have small row groups, so that a page of records is one request. A query over
one column then takes a request for each 4,096 rows. Here a row group has 122,880 rows. There are no
superseded rows, and captures are sorted by SURT and date, as in Common Crawl's index.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from builder.exports.parquet.croissant import ExportedFile
from builder.snapshot import query, views
from builder.store.durable import digest_file
from functions.kinds import ROWS
from functions.snapshot import schema
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Writer
from functions.store import engine

GROUP_ROWS = 122_880
"""Rows of a row group: DuckDB's default."""
FILE_ROWS = 40 * GROUP_ROWS
"""Rows of a file: a few hundred megabytes of captures."""
VIEWS = tuple(name for name in views.TABLES if name != "words")
"""The views that can be exported."""

_ORDER: Mapping[str, str] = {
    "captures": "url_surtkey NULLS FIRST, fetch_time NULLS FIRST, identifier",
    "records": "position",
}


def sort_rows(connection: engine.Connection, store: Writer, view: str) -> tuple[Manifest, int]:
    """Make the table `exported`, the rows of a view in order; return their snapshot and number.

    Raises NothingPublished and StoreError.
    """
    manifest = query.prepare_view(connection, store, view)
    with engine.reading(f"the view {view}"):
        order = _ORDER.get(view, "ALL")
        connection.execute(f"CREATE TABLE exported AS SELECT * FROM {view} ORDER BY {order}")
        ((count,),) = connection.execute("SELECT count(*) FROM exported").fetchall()
    return manifest, int(count)


def list_columns(connection: engine.Connection, view: str) -> list[tuple[str, str, str]]:
    """Return name, DuckDB's type and meaning of the columns of `exported`, a view's rows."""
    own = {kind.table: kind.columns for kind in ROWS}.get(view) or schema.TABLES.get(view, ())
    meanings = {column.name: column.meaning for column in (*schema.TABLES["records"], *own)}
    rows = connection.execute("DESCRIBE exported").fetchall()
    return [(name, type_, meanings.get(name, "")) for name, type_, *_ in rows]


def write_files(
    connection: engine.Connection,
    view: str,
    folder: Path,
    count: int,
    advance: Callable[[int], object],
) -> list[ExportedFile]:
    """Write the `count` rows of `exported` as files; there is at least one.

    Raises StoreError.
    """
    files = []
    for number, first in enumerate(range(0, max(count, 1), FILE_ROWS)):
        path, end = folder / f"{view}-{number:05}.parquet", first + FILE_ROWS
        with engine.reading(f"the view {view}"):
            connection.execute(
                f"COPY (SELECT * FROM exported WHERE rowid >= {first} AND rowid < {end} "
                f"ORDER BY rowid) TO {engine.quote(str(path))} (FORMAT parquet, COMPRESSION zstd, "
                f"ROW_GROUP_SIZE {GROUP_ROWS})"
            )
        rows = min(FILE_ROWS, count - first)
        files.append(ExportedFile(path.name, rows, path.stat().st_size, digest_file(path)))
        advance(rows)
    return files
