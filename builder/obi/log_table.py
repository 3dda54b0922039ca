"""Logs and documents of runs as Parquet: their columns, their order, and how DuckDB writes them.

A log has the members of all kinds of rows as columns. It is ordered by the kind of row and by the
object that the row is about, in small row groups, so that one object is found with few reads.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path

from builder.obi.content import ROWS, Row, row_line
from builder.obi.history import LOG, Committed
from builder.store import durable
from builder.store.durable import read_chunks
from builder.store.parquet.writer import parse_columns, write_rows
from functions.snapshot.errors import DamagedStore, StoreError
from functions.snapshot.store import Reader
from functions.store import engine

LONGEST = 1 << 25
"""Most bytes of a line of JSON; DuckDB holds two of that size for each thread."""
_GROUP = 30_720  # rows of a row group of a log
_MEMORY = 512  # megabytes
_SORTED = 60_000  # rows of a log that are sorted at a time, about
_SAMPLE = 20  # rows by which the border of such a part is chosen
_TYPES = {
    "str": "VARCHAR",
    "int": "BIGINT",
    "bool": "BOOLEAN",
    "tuple[str, ...]": "VARCHAR[]",
}


MEMBERS: Mapping[str, str] = {"row": "VARCHAR", "own_tist": "BIGINT"} | {
    field.name: _TYPES[name.removesuffix(" | None")]
    for kind in ROWS.values()
    for field in fields(kind)
    for name in [field.type.__name__ if isinstance(field.type, type) else str(field.type)]
}
"""The members of all kinds of log rows, with DuckDB's types.

`own_tist` is the time of a row that does not have that of its run, else NULL.
"""
_COLUMNS = parse_columns(", ".join(f"{name} {kind}" for name, kind in MEMBERS.items()))
DOCUMENT = parse_columns("id VARCHAR, sets VARCHAR[], document VARCHAR")
"""The columns of documents; the document is JSON text."""
_SUBJECTS = {"refipo": "handle", "redirect": "origin", "archive": "home", "fault": "source"}
_SUBJECT = "id"  # of all other kinds of rows
_WHENS = " ".join(f"WHEN '{kind}' THEN {name}" for kind, name in _SUBJECTS.items())
SUBJECT = f"CASE row {_WHENS} ELSE {_SUBJECT} END"
"""The object that a log row is about."""
ORDER = (
    f"row, {SUBJECT} NULLS FIRST, kind, position, place NULLS FIRST, code, field NULLS FIRST, "
    "detail, what, status, target, url, own_tist"
)
"""The order of the rows of a log, which leaves only equal rows side by side."""


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """A log or documents in a file: SHA-256 and size, and the rows counted by name."""

    digest: str
    bytes: int
    counts: Mapping[str, int]

    @staticmethod
    def of(path: Path, counts: Mapping[str, int]) -> "WrittenLog":
        """Describe a finished file. Raises OSError."""
        return WrittenLog(durable.digest_file(path), path.stat().st_size, counts)


def write_log(path: Path, rows: Iterable[Row]) -> WrittenLog:
    """Write a log of rows in any order; equal rows give equal bytes. Raises OSError, StoreError."""
    lines, counts = path.with_suffix(".lines"), dict[str, int]()
    with lines.open("wb") as out:
        for row in rows:
            out.write(row_line(row))
            counts[row.row] = counts.get(row.row, 0) + 1
    with engine.reading(str(path.parent)):
        connection = engine.connect(memory_megabytes=_MEMORY, scratch=path.parent)
    with closing(connection):
        copy_log(
            connection,
            f"FROM read_json({engine.quote(str(lines))}, columns = {dict(MEMBERS)}, "
            f"format = 'newline_delimited', maximum_object_size = {LONGEST})",
            path,
        )
    lines.unlink()
    return WrittenLog.of(path, counts)


def copy_log(connection: engine.Connection, query: str, path: Path) -> None:
    """Write the log rows of a query, which may lack members, in their order. Raises StoreError."""
    with engine.reading("the log of the run"):
        rows = f"SELECT {_select(connection, query)} FROM ({query})"
        parts = (
            engine.stream(connection, f"{rows} WHERE {part} ORDER BY {ORDER}")
            for part in cut_log(connection, rows)
        )
        write_rows(parts, _COLUMNS, path, _GROUP)


def cut_log(connection: engine.Connection, rows: str, most: int = _SORTED) -> Iterator[str]:
    """Yield the conditions of parts of a log, in order, with about `most` rows each.

    Borders are chosen by a sample, so parts differ in size. Rows about one object stay together.
    """
    sql = f"SELECT row, count(*) FROM ({rows}) GROUP BY row ORDER BY row"
    counts = dict(connection.execute(sql).fetchall())
    if sum(counts.values()) <= most:
        yield "true"
        return
    for kind, count in counts.items():
        subject, own = _SUBJECTS.get(kind, _SUBJECT), f"row = {engine.quote(kind)}"
        sample = _SAMPLE * (-(-count // most))
        # The sample is taken before any condition of its own query.
        chosen = f"SELECT {subject} FROM ({rows}) WHERE {own}"
        sql = f"FROM ({chosen}) USING SAMPLE {sample} ROWS"
        subjects = sorted(value for (value,) in connection.execute(sql).fetchall() if value)
        low = None
        for high in (*sorted(set(subjects[_SAMPLE::_SAMPLE])), None):
            above = "true" if low is None else f"{subject} >= {engine.quote(low)}"
            below = "true" if high is None else f"{subject} < {engine.quote(high)}"
            nulls = f" OR {subject} IS NULL" if low is None else ""
            yield f"{own} AND (({above}) AND ({below}){nulls})"
            low = high


def _select(connection: engine.Connection, query: str) -> str:
    """Return the columns of a log, with NULL for those that the query lacks."""
    there = {name for name, *_ in connection.execute(f"DESCRIBE {query}").fetchall()}
    return ", ".join(
        f'"{name}"' if name in there else f'NULL::{kind} AS "{name}"'
        for name, kind in MEMBERS.items()
    )


def logs_sql(connection: engine.Connection, files: Sequence[str]) -> str:
    """Return the query of all rows of logs; `log` is the name of a row's file."""
    named = ", ".join(map(engine.quote, files))
    source = (
        f"read_parquet([{named}], union_by_name = true, filename = 'log', "
        "hive_partitioning = false)"
    )
    return f"SELECT {_select(connection, f'FROM {source}')}, log FROM {source}"


def local_log(store: Reader, run: Committed, scratch: Path) -> Path:
    """Return a checked file of a run's log, as `local_file` does."""
    return local_file(store, run.log_key, run.log, scratch / f"{run.tist}-{LOG}")


def local_file(store: Reader, where: str, digest: str | None, copy: Path) -> Path:
    """Return a file of the object: its own in a folder, else a `copy`.

    Raises DamagedStore if its SHA-256 is not `digest`, StoreError if it cannot be copied.
    """
    path = Path(store.address) / where
    if path.is_file():
        sha256 = durable.digest_object(store, where)[0]
    else:
        path, hasher = copy, hashlib.sha256()
        try:
            with copy.open("wb") as out, closing(store.open(where)) as source:
                for part in read_chunks(source, where):
                    hasher.update(part)
                    out.write(part)
        except OSError as error:
            raise StoreError(f"{where} cannot be copied to {copy}: {error.strerror}") from error
        sha256 = hasher.hexdigest()
    if sha256 != digest:
        copy.unlink(missing_ok=True)
        raise DamagedStore(
            f"{where} is damaged: it does not match the run's commit.json; restore a copy"
        )
    return path
