"""The table of files: the state of each file that templates named or that was requested.

A state follows from the logs of all runs. It is kept in the store as a Parquet file of the states
after a run, so that later sessions read only the logs since. That file is derived: it may be
deleted, and is then made again from the logs. Its name has its own SHA-256, and its metadata names
the commit of the run. Rows are ordered by host and URL, so a few reads find one URL.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from builder.http.errors import OUTCOMES
from builder.obi import key, replay
from builder.obi.content import FILE
from builder.obi.history import Committed
from builder.snapshot.sql import Statements
from builder.store.durable import digest_file
from functions.snapshot.errors import Conflict, MissingObject
from functions.snapshot.store import Reader, Writer
from functions.store import engine

COLUMNS = (
    "id VARCHAR, host VARCHAR, handles VARCHAR[], pdf BOOLEAN, restricted BOOLEAN, tried BIGINT, "
    "had BIGINT, answered BIGINT, times BIGINT, code VARCHAR, detail VARCHAR, noted BIGINT, "
    "digest BLOB, lost BOOLEAN, etag VARCHAR, "
    "last_modified VARCHAR, unreached BIGINT, since BIGINT, target VARCHAR, status BIGINT, "
    "redirect VARCHAR"
)
"""Columns and types.

`handles` are the templates that ever named the file; `pdf` and `restricted` are NULL if there are
none. `tried`, `had` and `answered` are the last runs that requested the file, that found it, and
that found it by a response of its own server then. It failed `times` in a row since, last with
`code`. Its newest bytes were noted by the run `noted`. Its server was `unreached` in so many runs
`since`. It last led to `target`.
"""

STATEMENTS = Statements(__file__)
NAMES = ", ".join(column.split()[0] for column in COLUMNS.split(", "))
_UNREACHABLE = sorted(code for code, outcome in OUTCOMES.items() if outcome.unreachable)

_VERSION = "3"
_METADATA = (
    "SELECT decode(key), decode(value) FROM parquet_kv_metadata($path) "
    "WHERE decode(key) IN ('version', 'commit')"
)
_GROUP = 16_384  # rows
_LEAST, _FRACTION = 1 << 18, 16
"""A table is written once the logs since the last one have more bytes than `_LEAST`, and more than
this fraction of its bytes. So its cost is a fixed part of that of the logs."""
_ROWS = (
    "row IN ('refipo', 'redirect', 'failure')",
    f"row IN ('version', 'seen', 'incidence') AND kind = '{FILE}'",
)


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table in the store: its key, a local file with its bytes, and the run that it shows."""

    key: str
    path: Path
    run: Committed


def create(connection: engine.Connection) -> None:
    """Create an empty table `file`."""
    connection.execute(STATEMENTS.get("empty", typed=COLUMNS))
    connection.execute(STATEMENTS.get("listed"))


def load(
    connection: engine.Connection, table: StoredTable | None, runs: Sequence[Committed]
) -> Sequence[Committed]:
    """Create `file` with the states of a stored table, and return the runs that it lacks."""
    create(connection)
    if table is None:
        return runs
    with engine.reading(table.key):
        _rebase(connection, table.path)
    shown = _ancestors(table.run, runs)
    return [run for run in runs if run.digest not in shown]


def add_runs(
    connection: engine.Connection, store: Reader, runs: Sequence[Committed], scratch: Path
) -> None:
    """Add what the logs of later runs say of files. Raises DamagedStore, StoreError."""
    if runs:
        connection.execute("DROP TABLE IF EXISTS logged")
        replay.read(connection, store, runs, scratch, _ROWS)
        merge(connection, [run.tist for run in runs if run.is_import])
        connection.execute("DROP TABLE logged")


def merge(connection: engine.Connection, imports: Sequence[int]) -> None:
    """Add what the rows of the table `logged` say of files.

    `imports` are runs that recorded captures: these may be older than any time of a run.
    """
    numbers = f"[{', '.join(map(str, imports))}]::BIGINT[]"
    sql = STATEMENTS.get("merge", unreachable=engine.texts(_UNREACHABLE), imports=numbers)
    with engine.reading("the state of files"):
        connection.execute(sql)


def find(
    store: Writer, runs: Sequence[Committed], connection: engine.Connection
) -> StoredTable | None:
    """Return the newest sound table of one of the runs; None if there is none."""
    tables = (read(store, where, runs, connection) for where in reversed(list_tables(store)))
    return next((table for table in tables if table is not None), None)


def read(
    store: Reader, where: str, runs: Sequence[Committed], connection: engine.Connection
) -> StoredTable | None:
    """Return the table at a key; None if it is damaged, or of none of the runs."""
    named = key.parse_file_table(where)
    run = next((run for run in runs if named is not None and run.tist == named[0]), None)
    if named is None or run is None:
        return None
    try:
        path = store.local(where)
    except MissingObject:
        return None
    if digest_file(path) != named[1]:
        return None
    with engine.reading(str(path)):
        metadata = dict(connection.execute(_METADATA, {"path": str(path)}).fetchall())
    is_sound = metadata == {"version": _VERSION, "commit": run.digest}
    return StoredTable(where, path, run) if is_sound else None


def is_outdated(table: StoredTable | None, later: Sequence[Committed]) -> bool:
    """Return whether the logs since a table have grown so far that a new one pays."""
    least = 0 if table is None else table.path.stat().st_size // _FRACTION
    return sum(run.log_bytes for run in later) > max(_LEAST, least)


def save(
    connection: engine.Connection, store: Writer, run: Committed, scratch: Path
) -> StoredTable:
    """Write the states after `run` to the store, and remove tables before the last one.

    A reader may still use the last one. Raises StoreError.
    """
    path = scratch / f"files-{run.tist}.parquet"
    rows = STATEMENTS.get("rows", columns=NAMES)
    about = f"{{version: '{_VERSION}', commit: '{run.digest}'}}"
    with engine.reading("the table of files"):
        connection.execute(
            f"COPY ({rows}) TO {engine.quote(str(path))} (FORMAT parquet, COMPRESSION zstd, "
            f"ROW_GROUP_SIZE {_GROUP}, KV_METADATA {about})"
        )
        _rebase(connection, path)
    where = key.file_table(run.tist, digest_file(path))
    before = list_tables(store)
    with suppress(Conflict):  # its name says that it has the same bytes
        store.create_file(where, path)
    store.remove(*[name for name in before[:-1] if name != where])
    return StoredTable(where, path, run)


def _rebase(connection: engine.Connection, path: Path) -> None:
    connection.execute(STATEMENTS.get("rebase", path=engine.quote(str(path))))


def _ancestors(run: Committed, runs: Sequence[Committed]) -> set[str]:
    """Return the digests of a run and of all runs that were committed before it."""
    by_digest = {each.digest: each for each in runs}
    digests: set[str] = set()
    last: Committed | None = run
    while last is not None:
        digests.add(last.digest)
        last = by_digest.get(last.previous or "")
    return digests


def list_tables(store: Writer) -> list[str]:
    """Return the keys of the tables in the store, the newest last."""
    named = ((key.parse_file_table(where), where) for where in store.keys(key.FILES))
    return [where for parsed, where in sorted((n, w) for n, w in named if n is not None)]
