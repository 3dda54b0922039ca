"""Replay of the logs of all runs into tables in DuckDB.

A row has the time of the state that it is about, which is its run's. Sheaf 0.2 could read an older
state after later ones. Such a run also has what the later runs would have recorded: rows with their
times, and the names of those rows of theirs that do not count any more.

The tables depend on the logs alone. The same runs therefore give the same rows, and the tables can
be rebuilt from the store at any time. DuckDB puts on disk what exceeds its memory.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from builder.obi.content import DELETION, TEMPLATE
from builder.obi.history import Committed
from builder.obi.log_table import MEMBERS, SUBJECT, local_log, logs_sql
from functions.snapshot import obi, schema
from functions.snapshot.store import Reader
from functions.store import engine

_AT_ONCE = 64  # logs on this machine's disk at a time
_QUOTED = ", ".join(f'"{name}"' for name in MEMBERS)
_NONE = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in MEMBERS.items())
_TYPED = ", ".join(f'"{name}" {kind}' for name, kind in MEMBERS.items())
_LARGE = 10_000
"""Rows of a log that is read by a query of its own."""
_ALONE = 16  # logs that are read so
_LOGGED = f"CREATE TABLE logged (tist BIGINT, run BIGINT, {_TYPED})"
_UNDONE = (
    "CREATE OR REPLACE TABLE undone (state BIGINT, part VARCHAR, subject VARCHAR, undoer BIGINT)"
)
# The names of its columns are none of `logged`.
_COUNTS = f"""
row != 'undone' AND NOT EXISTS (
    FROM undone u WHERE u.state = tist AND u.part = row AND u.subject = ({SUBJECT})
        AND u.undoer > run)
"""
_DEFAULTS = {"again": "coalesce(again, false)", "flags": "coalesce(flags, [])"}
_DEFAULTS |= {"detail": "coalesce(detail, '')", "held": "coalesce(held, 0)"}

_AS_LOGGED = {
    # Columns by table; the rows are those of the logs, unchanged.
    **{
        name: tuple(column.name for column in obi.TABLES[name])
        for name in ("version", "incidence", "redirect", "failure")
    },
    "seen": ("tist", "id", "kind", "status", "etag", "last_modified", "home", "source", "place"),
    "archive": ("tist", "home", "complete", "files", "templates", "held"),
    "fault": ("tist", *(column.name for column in schema.FAULT)),
}

_HOME_BITS = 24
"""Bits of the number of a home: a tist and a home are one integer."""
# Each step may exceed memory: it only groups numbers, joins, or sorts.
_OBI = f"""
CREATE TABLE known_homes AS
SELECT home, row_number() OVER (ORDER BY home) - 1 AS number
FROM (SELECT home FROM version UNION SELECT home FROM seen) WHERE home IS NOT NULL;

CREATE TABLE known_objects AS
SELECT id, kind, min(tist) FILTER (WHERE e = 0) AS found, max(tist) FILTER (WHERE e = 0) AS noted,
    count(*) FILTER (WHERE e = 0)::INTEGER AS versions, max(tist) FILTER (WHERE e < 3) AS seen,
    max(tist) FILTER (WHERE e = 3) AS lost, max(tist) FILTER (WHERE e >= 2) AS happened,
    max((tist << {_HOME_BITS}) + number) AS placed
FROM (SELECT id, kind, tist, 0 AS e, home FROM version
      UNION ALL SELECT id, kind, tist, 1, home FROM seen
      UNION ALL SELECT id, kind, tist, if(what = '{DELETION}', 3, 2), NULL FROM incidence)
LEFT JOIN known_homes USING (home) GROUP BY id, kind HAVING count(*) FILTER (WHERE e = 0) > 0;

CREATE TABLE obi AS
SELECT p.id, p.kind, p.found, p.noted, p.lost,
    if(p.kind = '{TEMPLATE}', greatest(p.seen, w.tist), p.seen) AS seen, p.versions, v.key,
    if(p.kind = '{TEMPLATE}', v.text_sha256, v.sha256) AS digest, p.home
FROM (SELECT * EXCLUDE (lost), if(lost >= happened, lost, NULL) AS lost, h.home
      FROM known_objects LEFT JOIN known_homes h ON h.number = placed % (1 << {_HOME_BITS})) p
JOIN version v ON v.id = p.id AND v.kind = p.kind AND v.tist = p.noted
ASOF LEFT JOIN (SELECT home, tist FROM archive WHERE complete AND held = 0) w
    ON w.home = p.home AND coalesce(p.lost, {10**12}) > w.tist;

DROP TABLE known_homes; DROP TABLE known_objects
"""
_FIRST_BYTES = (
    "SELECT sha256 AS digest, key, bytes, copies, pack, start FROM version JOIN first_seen"
)
_CHECKSUM = f"""
CREATE VIEW checksum AS
WITH first_seen AS (
    SELECT sha256, min(tist) AS tist, count(*) AS copies FROM version GROUP BY sha256)
{_FIRST_BYTES} USING (sha256, tist) WHERE copies = 1
UNION ALL {_FIRST_BYTES} USING (sha256, tist) WHERE copies > 1
QUALIFY row_number() OVER (PARTITION BY sha256 ORDER BY key, pack NULLS LAST, start) = 1
"""
_REFIPO = f"""
CREATE TABLE refipo AS
SELECT {", ".join(f"r.{c.name}" for c in obi.REFIPO)}
FROM logged r
JOIN (SELECT handle, max(tist) AS tist FROM logged WHERE row = 'refipo' GROUP BY handle) l
    ON l.handle = r.handle AND l.tist = r.tist
JOIN obi o ON o.id = r.handle AND o.kind = '{TEMPLATE}' AND o.lost IS NULL AND o.noted <= r.tist
WHERE r.row = 'refipo'
"""


def fold(
    connection: engine.Connection,
    store: Reader,
    runs: Sequence[Committed],
    scratch: Path,
) -> None:
    """Create the tables of functions.snapshot.obi from the logs of all `runs` that count.

    It also creates `archive`, `fault` and `seen` from the rows of these names. The tables are
    unordered; `order` gives the order for writing. Some are views of the logs, copies of which stay
    in `scratch`. Raises DamagedStore, which names the log, and StoreError.
    """
    fold_objects(connection, store, runs, scratch)
    with engine.reading("the logs of the runs"):
        for statements in (_CHECKSUM, _REFIPO):
            connection.execute(statements)
        _runs(connection, runs)


def fold_objects(
    connection: engine.Connection,
    store: Reader,
    runs: Sequence[Committed],
    scratch: Path,
    within: str = "true",
) -> None:
    """Create `obi`, and the tables that are rows of logs, from the rows that meet a condition.

    Raises as `fold` does.
    """
    counting = f"({within}) AND {find_undone(connection, store, runs, scratch)}"
    logged = _find_logs(connection, store, runs, scratch)
    connection.execute(f"CREATE VIEW logged AS FROM ({logged}) WHERE {counting}")
    with engine.reading("the logs of the runs"):
        for table, names in _AS_LOGGED.items():
            columns = ", ".join(_DEFAULTS.get(name, name) + f" AS {name}" for name in names)
            connection.execute(
                f"CREATE VIEW {table} AS SELECT {columns} FROM logged WHERE row = '{table}'"
            )
        connection.execute(_OBI)


def _find_logs(
    connection: engine.Connection, store: Reader, runs: Sequence[Committed], scratch: Path
) -> str:
    """Return the query of the rows of the logs with `tist` and `run`; copies stay in `scratch`.

    A large log is read as it is. Others are joined, because each query opens all files.
    """
    large = [run for run in runs if sum(run.counts.values()) >= _LARGE]
    selects, alone = [], {run.tist for run in large[:_ALONE]}
    for run in large[:_ALONE]:
        with engine.reading(_name_runs([run])):
            query = logs_sql(connection, [str(local_log(store, run, scratch))])
        tist = f"coalesce(own_tist, {run.time}) AS tist, {run.tist}::BIGINT AS run"
        selects.append(f"SELECT {tist}, {_QUOTED} FROM ({query})")
    others = [run for run in runs if run.tist not in alone]
    for number, start in enumerate(range(0, len(others), _AT_ONCE)):
        batch = others[start : start + _AT_ONCE]
        with logs(connection, store, batch, scratch) as sql:
            rows = f"SELECT tist, run, {_QUOTED} FROM ({sql})"
            file = engine.quote(str(scratch / f"logs-{number}.parquet"))
            connection.execute(f"COPY ({rows}) TO {file} (FORMAT parquet, COMPRESSION lz4)")
        selects.append(f"SELECT tist, run, {_QUOTED} FROM {engine.table(f'[{file}]')}")
    none = f"SELECT 0::BIGINT AS tist, 0::BIGINT AS run, {_NONE} WHERE false"
    return " UNION ALL ".join(selects) or none


def find_undone(
    connection: engine.Connection, store: Reader, runs: Sequence[Committed], scratch: Path
) -> str:
    """Create `undone`, and return the condition on rows of `logs` that they count.

    It has the time, kind and subject of rows that count only if a run from `undoer` on has them.
    """
    connection.execute(_UNDONE)
    revising = [run for run in runs if run.as_of is not None]
    if not revising:
        return "true"
    for start in range(0, len(revising), _AT_ONCE):
        with logs(connection, store, revising[start : start + _AT_ONCE], scratch) as sql:
            rows = f"SELECT tist, what, id, run FROM ({sql}) WHERE row = 'undone'"
            connection.execute(f"INSERT INTO undone {rows}")
    return _COUNTS


def read(
    connection: engine.Connection,
    store: Reader,
    runs: Sequence[Committed],
    scratch: Path,
    conditions: Sequence[str] = ("true",),
    values: Mapping[str, Any] | None = None,
) -> None:
    """Create `logged`: the rows that count and meet one of the conditions, with `tist` and `run`.

    No row may meet two. The columns are the members of all kinds of rows. Raises as `fold` does.
    """
    counting = find_undone(connection, store, runs, scratch)
    connection.execute(_LOGGED)
    for start in range(0, len(runs), _AT_ONCE):
        with logs(connection, store, runs[start : start + _AT_ONCE], scratch) as sql:
            for condition in conditions:
                statement = f"INSERT INTO logged SELECT tist, run, {_QUOTED} FROM ({sql})"
                where = f"WHERE ({condition}) AND {counting}"
                connection.execute(f"{statement} {where}", dict(values or {}))


@contextmanager
def logs(
    connection: engine.Connection, store: Reader, runs: Sequence[Committed], scratch: Path
) -> Iterator[str]:
    """Give the query of all rows of the runs' logs, of one at least, with `tist` and `run`.

    Files are read as the queries are; a query of some columns reads these alone. Copies of logs lie
    in `scratch` until the context ends. Raises as `fold` does.
    """
    copies: list[Path] = []
    try:
        with engine.reading(_name_runs(runs)):
            files = {str(local_log(store, run, scratch)): run.tist for run in runs}
            copies += [path for path in map(Path, files) if path.parent == scratch]
            values = ", ".join(f"({engine.quote(f)}, {t}::BIGINT)" for f, t in files.items())
            yield (
                "SELECT *, coalesce(own_tist, run) AS tist "
                f"FROM ({logs_sql(connection, list(files))}) "
                f"JOIN (VALUES {values}) named(log, run) USING (log)"
            )
    finally:
        for path in copies:
            path.unlink(missing_ok=True)


def order(table: str) -> str:
    """Return the total order in which the rows of a table are written."""
    names = dict.fromkeys(obi.ORDER[table])
    names |= {column.name: None for column in obi.TABLES[table]}
    return ", ".join(f"{name} NULLS FIRST" for name in names)


def query(table: str) -> str:
    """Return the query for the rows of a table in the order of writing."""
    names = ", ".join(column.name for column in obi.TABLES[table])
    return f"SELECT {names} FROM {table} ORDER BY {order(table)}"


def _runs(connection: engine.Connection, runs: Iterable[Committed]) -> None:
    typed = ", ".join(f"{column.name} {column.type}" for column in obi.RUN)
    connection.execute(f"CREATE TABLE run ({typed})")
    rows = [
        (
            *(run.time, run.kind, run.source, _naive(run.begun), _naive(run.committed)),
            *(run.log, run.digest, run.previous, json.dumps(dict(run.counts), sort_keys=True)),
        )
        for run in runs
    ]
    if rows:
        marks = ", ".join(f"${n + 1}" for n in range(len(obi.RUN)))
        connection.executemany(f"INSERT INTO run VALUES ({marks})", rows)


def _naive(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


def _name_runs(runs: Sequence[Committed]) -> str:
    first, last = runs[0].tist, runs[-1].tist
    return f"the log of run {first}" if first == last else f"a log of the runs {first} to {last}"
