"""Asks an engine questions about the tables; a process of its own, with its own packages.

    python ask.py ENGINE < {"root": ..., "tables": [...], "questions": [...], "snapshots": [...]}

Prints the rows of each question for each snapshot as JSON. The engines read the tables by what the
guide for analysts says of them. Nothing of Sheaf is imported.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Ask = Callable[[str], Sequence[Sequence[Any]]]


@contextmanager
def duckdb(root: str, tables: list[str], snapshot: int) -> Iterator[Ask]:
    """DuckDB with its extension for Iceberg."""
    connection = _connect("avro", "httpfs", "iceberg")
    for table in tables:
        connection.execute(
            f"CREATE VIEW {table} AS SELECT * FROM "
            f"iceberg_scan('{root}/tables/{table}', snapshot_from_id = {snapshot}::UBIGINT)"
        )
    yield lambda sql: connection.execute(sql).fetchall()


def _connect(*extensions: str) -> Any:
    """Return a connection with extensions, which are files of packages beside DuckDB's."""
    import duckdb

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in extensions:
        folder = Path(duckdb.__file__).parents[1]
        found = [*folder.glob(f"duckdb_ext*/**/{name}.duckdb_extension*")]
        connection.execute(f"LOAD '{found[0]}'")
    return connection


@contextmanager
def views(root: str, tables: list[str], snapshot: int) -> Iterator[Ask]:
    """DuckDB without an extension, with the views that each snapshot has as SQL."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET VARIABLE root = '{root}/'")
    connection.execute(Path(f"{root}/snapshots/{snapshot}/views.sql").read_text("utf-8"))
    yield lambda sql: connection.execute(sql).fetchall()


@contextmanager
def pyiceberg(root: str, tables: list[str], snapshot: int) -> Iterator[Ask]:
    """PyIceberg reads the rows; it has no SQL, so another engine asks what it read."""
    import polars
    from pyiceberg.table import StaticTable

    context = polars.SQLContext()
    for table in tables:
        found = StaticTable.from_metadata(f"{root}/tables/{table}")
        rows = found.scan(snapshot_id=snapshot).to_arrow()
        context.register(table, polars.from_arrow(rows).lazy())
    yield lambda sql: context.execute(sql).collect().rows()


@contextmanager
def polars(root: str, tables: list[str], snapshot: int) -> Iterator[Ask]:
    """Polars, with its own reader of data files and deletes."""
    import polars

    context = polars.SQLContext()
    for table in tables:
        found = polars.scan_iceberg(
            f"{root}/tables/{table}", snapshot_id=snapshot, reader_override="native"
        )
        context.register(table, found)
    yield lambda sql: context.execute(sql).collect().rows()


@contextmanager
def clickhouse(root: str, tables: list[str], snapshot: int) -> Iterator[Ask]:
    """ClickHouse, in the process. It reads nothing outside its working folder."""
    import chdb

    os.chdir(root)

    def ask(sql: str) -> list[list[Any]]:
        sources = ", ".join(
            f"{table} AS (SELECT * FROM icebergLocal('{root}/tables/{table}'))"
            for table in tables
            if table in sql.split()
        )
        options = f"iceberg_snapshot_id = {snapshot}, output_format_json_quote_64bit_integers = 0"
        found = chdb.query(f"WITH {sources} {sql} SETTINGS {options}", "JSONCompact")
        rows: list[list[Any]] = json.loads(str(found))["data"]
        return rows

    yield ask


@contextmanager
def spark(root: str, tables: list[str], snapshot: int) -> Iterator[Ask]:
    """Spark with Iceberg's own library, whose jar another package on PyPI holds."""
    import pyspark
    import snowpark_connect_deps_iceberg
    from pyspark.sql import SparkSession
    from relocate import relocate_jars

    own = Path(pyspark.__file__).parent / "jars"
    (jar,) = (Path(snowpark_connect_deps_iceberg.__file__).parent / "jars").glob(
        "iceberg-spark-runtime-3.5_2.12-*.jar"
    )
    jackson = Path(root).parent / "jackson.jar"
    if not jackson.exists():
        package = "com/fasterxml/jackson"
        names = ("core", "databind", "annotations")
        jars = [path for name in names for path in own.glob(f"jackson-{name}-2*.jar")]
        relocate_jars(jars, package, f"org/apache/iceberg/shaded/{package}", jackson)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", f"{jar},{jackson}")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    for table in tables:
        rows = session.read.format("iceberg").option("snapshot-id", snapshot)
        rows.load(f"{root}/tables/{table}").createOrReplaceTempView(table)
    yield lambda sql: [tuple(row) for row in session.sql(sql).collect()]


READERS = (duckdb, views, pyiceberg, polars, clickhouse, spark)
ENGINES = {one.__name__: one for one in READERS}


def main() -> None:
    """Answer all questions."""
    order = json.load(sys.stdin)
    answers = []
    for snapshot in order["snapshots"]:
        with ENGINES[sys.argv[1]](order["root"], order["tables"], snapshot) as ask:
            answers.append([[list(row) for row in ask(sql)] for sql in order["questions"]])
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
