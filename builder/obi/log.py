"""Logs of runs: read from the store, and searched for one object."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from builder.obi import key, replay
from builder.obi.content import DELETION, ROWS, TEMPLATE, Incidence, Refipo, Row, SeenRow, Version
from builder.obi.history import LOG, Committed
from builder.obi.log_table import local_file
from builder.store import documents, durable
from functions.snapshot.store import Reader
from functions.store import engine

_FETCHED = 1 << 9  # rows, as Python objects
# Each is found by its own columns, in few row groups: a log is ordered by kind and object.
_ABOUT = (
    "row IN ('version', 'incidence', 'seen', 'failure') AND id = $id",
    "row = 'refipo' AND handle = $id",
    "row = 'refipo' AND id = $id AND handle != $id",
    "row = 'redirect' AND (origin = $id OR target = $id)",
    # Of gathering, the time of the run is enough; an imported capture is older.
    "row = 'exchange' AND id = $id AND \"at\" < tist - 3600",
)
_RANK = {Version: 0, Incidence: 1}


def read_rows(store: Reader, run: Committed, condition: str = "true") -> Iterator[Row]:
    """Yield the rows of a run's log in its order that meet a condition in SQL.

    Raises DamagedStore if the log cannot be read, or is not the committed log.
    """
    return (row for _, row in read_dated_rows(store, run, condition))


def read_dated_rows(
    store: Reader, run: Committed, condition: str = "true"
) -> Iterator[tuple[int, Row]]:
    """Yield the same, each row with the time of the state that it is about."""
    with _rows_of(store, run.log_key, run.log) as (connection, file):
        sql = f"SELECT * FROM {engine.table('$files')} WHERE {condition}"
        with engine.reading(run.log_key):
            cursor = connection.execute(sql, {"files": [str(file)]})
            names = [column[0] for column in cursor.description]
            while rows := cursor.fetchmany(_FETCHED):
                for members in (dict(zip(names, row, strict=True)) for row in rows):
                    yield members.get("own_tist") or run.time, _build_row(members)


def count_rows(store: Reader, tist: int) -> tuple[str, int, Mapping[str, int]]:
    """Return SHA-256, size and rows by name of a log that is not committed. Raises DamagedStore."""
    where = key.run(tist) + LOG
    digest, size = durable.digest_object(store, where)
    with _rows_of(store, where, digest) as (connection, file), engine.reading(where):
        sql = f"SELECT row, count(*) FROM {engine.table('$files')} GROUP BY row ORDER BY row"
        return digest, size, dict(connection.execute(sql, {"files": [str(file)]}).fetchall())


def read_packs(store: Reader, run: Committed) -> set[str]:
    """Return the digests of the packs that a run's log names. Raises DamagedStore."""
    with _rows_of(store, run.log_key, run.log) as (connection, file), engine.reading(run.log_key):
        sql = f"SELECT DISTINCT pack FROM {engine.table('$files')} WHERE pack IS NOT NULL"
        return {str(pack) for (pack,) in connection.execute(sql, {"files": [str(file)]}).fetchall()}


@contextmanager
def _rows_of(
    store: Reader, where: str, digest: str | None
) -> Iterator[tuple[engine.Connection, Path]]:
    with (
        tempfile.TemporaryDirectory(prefix="sheaf-log-") as folder,
        engine.connect_reader() as connection,
    ):
        yield connection, local_file(store, where, digest, Path(folder) / "log")


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """All log rows that name an object, each with the tist of its run, in order."""

    id: str
    rows: tuple[tuple[int, Row], ...]

    @property
    def is_known(self) -> bool:
        """True if any run has found the object, or tried to."""
        return bool(self.rows)

    def versions(self) -> list[tuple[int, Version]]:
        """Return its versions, oldest first."""
        return [(t, r) for t, r in self.rows if isinstance(r, Version) and r.id == self.id]

    def events(self) -> list[tuple[int, Row]]:
        """Return the events of the object: all rows but sightings and file blocks."""
        own = [(t, r) for t, r in self.rows if not isinstance(r, SeenRow | Refipo)]
        return [(t, r) for t, r in own if not isinstance(r, Version) or r.id == self.id]

    def blocks(self) -> list[tuple[int, Refipo]]:
        """Return the file blocks that name the object; of a template, its own of its last run."""
        blocks = [(t, r) for t, r in self.rows if isinstance(r, Refipo)]
        if own := [(t, r) for t, r in blocks if r.handle == self.id]:
            last = max(t for t, _ in own)
            newest = max((t for t, v in self.versions() if v.kind == TEMPLATE), default=0)
            return [(t, r) for t, r in own if t == last >= newest]
        return blocks

    def at(self, tist: int) -> tuple[int, Version] | None:
        """Return the version of the object at a time, and the tist that recorded it.

        None before the first version, and while the object was lost.
        """
        before = [dated for dated in self.versions() if dated[0] <= tist]
        happened = [r for t, r in self.rows if isinstance(r, Incidence) and t <= tist]
        return before[-1] if before and not (happened and happened[-1].what == DELETION) else None


def read_history(
    connection: engine.Connection,
    store: Reader,
    runs: Sequence[Committed],
    scratch: Path,
    identifier: str,
) -> ItemHistory:
    """Return the history of an object from the logs of `runs`. Raises DamagedStore, StoreError."""
    connection.execute("DROP TABLE IF EXISTS logged")
    replay.read(connection, store, runs, scratch, _ABOUT, {"id": identifier})
    cursor = connection.execute("SELECT * FROM logged ORDER BY tist")
    names = [column[0] for column in cursor.description]
    logged = (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
    rows = [(int(row["tist"]), _build_row(row)) for row in logged]
    rows.sort(key=lambda dated: (dated[0], _RANK.get(type(dated[1]), 2), repr(dated[1])))
    return ItemHistory(identifier, tuple(rows))


def read_held(store: Reader, runs: Sequence[Committed], tist: int) -> set[str]:
    """Return the archives of which losses were held in the state of a time.

    Raises DamagedStore and StoreError.
    """
    with tempfile.TemporaryDirectory(prefix="sheaf-log-") as folder, engine.connect() as connection:
        condition = f"row = 'archive' AND held > 0 AND tist = {tist}"
        replay.read(connection, store, runs, Path(folder), (condition,))
        return {str(home) for (home,) in connection.execute("SELECT home FROM logged").fetchall()}


def _build_row(members: Mapping[str, Any]) -> Row:
    kind = ROWS[str(members["row"])]
    # NULL stands for a member's default, if it has one.
    values = {
        member.name: members[member.name]
        for member in fields(kind)
        if members.get(member.name) is not None or member.default is MISSING
    }
    row: Row = documents.build(kind, values)
    return row
