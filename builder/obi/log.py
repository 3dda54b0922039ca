"""Logs of runs: read from the store, and searched for one object."""

import hashlib
import json
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from builder.obi import content, key, replay
from builder.obi.content import (
    DELETION,
    ROWS,
    TEMPLATE,
    Incidence,
    Redirect,
    Refipo,
    Row,
    SeenRow,
    Version,
)
from builder.obi.history import LOGS, Committed
from builder.obi.log_table import documents_sql, local_file
from builder.store import documents
from functions.database import engine
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Reader

_FETCHED = 1 << 9  # rows, as Python objects
_INFLATED = 1 << 20  # bytes of an unpacked log in memory at a time
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


def read_rows(
    store: Reader, run: Committed, condition: str = "true", values: Mapping[str, Any] | None = None
) -> Iterator[Row]:
    """Yield the rows of a run's log in its order; of format 2, those that meet a condition in SQL.

    Raises DamagedStore where the log cannot be read, or is not the committed log: at the end of a
    log of format 1, and at once for format 2.
    """
    return (row for _, row in read_dated_rows(store, run, condition, values))


def read_dated_rows(
    store: Reader, run: Committed, condition: str = "true", values: Mapping[str, Any] | None = None
) -> Iterator[tuple[int, Row]]:
    """Yield the same, each row with the time of the state that it is about."""
    if run.format == 1:
        for data in read_lines(store, run.log_key, run.log):
            yield run.time, parse_row(data, run.log_key)
        return
    with _rows_of(store, run.log_key, run.log) as (connection, file):
        sql = f"SELECT * FROM {engine.table('$files')} WHERE {condition}"
        given = {"files": [str(file)], **(values or {})}
        with engine.reading(run.log_key):
            found = connection.execute(sql, given)
            names = [column[0] for column in found.description]
            while rows := found.fetchmany(_FETCHED):
                for told in (dict(zip(names, row, strict=True)) for row in rows):
                    yield told.get("own_tist") or run.time, _build_row(told)


def read_documents(store: Reader, run: Committed) -> Iterator[dict[str, Any]]:
    """Yield the documents of a run with their ids and sets. Raises as `read_rows` does."""
    if run.documents is None:
        return
    if run.format == 1:
        for data in read_lines(store, run.documents_key, run.documents):
            yield json.loads(data)
        return
    with _rows_of(store, run.documents_key, run.documents) as (connection, file):
        for rows in engine.batches(connection, documents_sql(run.format, str(file))):
            for identifier, sets, document in rows:
                yield {"id": identifier, "sets": sets, "document": json.loads(document)}


def count_rows(store: Reader, tist: int, form: int) -> tuple[str, int, Mapping[str, int]]:
    """Return SHA-256, size and rows by name of a log that is not committed. Raises DamagedStore."""
    where = key.run(tist) + LOGS[form]
    digest, size = content.digest_object(store, where)
    if form == 1:
        return (
            digest,
            size,
            Counter(_row_name(line, where) for line in read_lines(store, where, None)),
        )
    with _rows_of(store, where, digest) as (connection, file), engine.reading(where):
        sql = f"SELECT row, count(*) FROM {engine.table('$files')} GROUP BY row ORDER BY row"
        return digest, size, dict(connection.execute(sql, {"files": [str(file)]}).fetchall())


def read_packs(store: Reader, run: Committed) -> set[str]:
    """Return the digests of the packs that a run's log names. Raises DamagedStore."""
    if run.format == 1:
        return set()
    with _rows_of(store, run.log_key, run.log) as (connection, file), engine.reading(run.log_key):
        sql = f"SELECT DISTINCT pack FROM {engine.table('$files')} WHERE pack IS NOT NULL"
        return {str(one) for (one,) in connection.execute(sql, {"files": [str(file)]}).fetchall()}


@contextmanager
def _rows_of(
    store: Reader, where: str, digest: str | None
) -> Iterator[tuple[engine.Connection, Path]]:
    with (
        tempfile.TemporaryDirectory(prefix="sheaf-log-") as folder,
        closing(engine.connect_reader()) as connection,
    ):
        yield connection, local_file(store, where, digest, Path(folder) / "log")


def _row_name(line: bytes, where: str) -> str:
    try:
        found: Mapping[str, str] = json.loads(line)
        return str(found["row"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedStore(f"{where} is damaged: {error!r}") from error


def read_lines(store: Reader, where: str, digest: str | None) -> Iterator[bytes]:
    """Yield the lines of a file. Raises DamagedStore if its SHA-256 is not `digest` (None: any)."""
    found, inflate, rest = hashlib.sha256(), zlib.decompressobj(31), b""
    try:
        for chunk in content.read_parts(store, where):
            found.update(chunk)
            while chunk:  # a chunk may unpack to a hundred times its size
                *whole, rest = (rest + inflate.decompress(chunk, _INFLATED)).split(b"\n")
                yield from whole
                chunk = inflate.unconsumed_tail
    except zlib.error as error:
        raise DamagedStore(f"{where} is damaged: {error}") from error
    if rest or not inflate.eof or inflate.unused_data:
        raise DamagedStore(f"{where} is damaged: it is cut off, or has bytes after its end")
    if digest is not None and found.hexdigest() != digest:
        raise DamagedStore(f"{where} was edited: it differs from the committed one")


def parse_row(data: bytes, where: str) -> Row:
    """Parse a line of a log; members that a later Sheaf added are ignored. Raises DamagedStore."""
    try:
        told = json.loads(data)
        found: Row = documents.build(ROWS[told["row"]], told)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedStore(f"{where} is damaged: {error!r}") from error
    return found


def identify(store: Reader, run: Committed, name: str) -> tuple[int, str] | None:
    """Return the tist and the id of the content or redirect at a key of `run`.

    The id comes from the key, or from the log if the key has it shortened. None for any other key.
    """
    found = key.parse(name.removesuffix(key.REDIRECT))
    if found is None or found[0] != run.tist:
        return None
    if found[1] is not None:
        return found[0], found[1]
    for one in read_rows(store, run):
        if isinstance(one, Version) and one.key == name:
            return run.tist, one.id
        if isinstance(one, Redirect) and one.key == name:
            return run.tist, one.origin
    return None


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """All log rows that name an object, each with the tist of its run, in order."""

    id: str
    rows: tuple[tuple[int, Row], ...]

    @property
    def known(self) -> bool:
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
        found = [(t, r) for t, r in self.rows if isinstance(r, Refipo)]
        own = [(t, r) for t, r in found if r.handle == self.id]
        if own:
            last = max(t for t, _ in own)
            newest = max((t for t, v in self.versions() if v.kind == TEMPLATE), default=0)
            return [(t, r) for t, r in own if t == last >= newest]
        return found

    def at(self, tist: int) -> tuple[int, Version] | None:
        """Return the version of the object at a time, and the tist that recorded it.

        None before the first version, and while the object was lost.
        """
        before = [one for one in self.versions() if one[0] <= tist]
        happened = [r for t, r in self.rows if isinstance(r, Incidence) and t <= tist]
        if not before or (happened and happened[-1].what == DELETION):
            return None
        return before[-1]


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
    found = connection.execute("SELECT * FROM logged ORDER BY tist")
    names = [column[0] for column in found.description]
    logged = (dict(zip(names, row, strict=True)) for row in found.fetchall())
    rows = [(int(row["tist"]), _build_row(row)) for row in logged]
    rows.sort(key=lambda one: (one[0], _RANK.get(type(one[1]), 2), repr(one[1])))
    return ItemHistory(identifier, tuple(rows))


def read_held(store: Reader, runs: Sequence[Committed], tist: int) -> set[str]:
    """Return the archives of which losses were held in the state of a time.

    Raises DamagedStore and StoreError.
    """
    with (
        tempfile.TemporaryDirectory(prefix="sheaf-log-") as folder,
        closing(engine.connect()) as connection,
    ):
        condition = f"row = 'archive' AND held > 0 AND tist = {tist}"
        replay.read(connection, store, runs, Path(folder), (condition,))
        return {str(home) for (home,) in connection.execute("SELECT home FROM logged").fetchall()}


def _build_row(found: Mapping[str, Any]) -> Row:
    kind = ROWS[str(found["row"])]
    # NULL stands for a member's default, if it has one.
    held = {
        member.name: found[member.name]
        for member in fields(kind)
        if found.get(member.name) is not None or member.default is MISSING
    }
    row: Row = documents.build(kind, held)
    return row
