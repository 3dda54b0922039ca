"""Later runs: what they would have recorded, had an older state been ingested before them.

What a run read is known from the store: the ReDIF files, the faults for which others were left out,
and what was accepted. Each later run is compared again, with the state that it would have found.
The new run records the differences, each with the time of the later run. So the logs give what they
would give if all states had been ingested in the order of their times.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from builder.ingest import pool
from builder.intake.intake import writing
from builder.obi import log_table, replay
from builder.obi.claim import show_tist
from builder.obi.content import SOURCE, TEMPLATE
from builder.obi.history import DOCUMENTS, LOG, Committed
from builder.obi.log_table import DATED_DOCUMENT, MEMBERS, SUBJECT, WrittenLog
from builder.obi.run import ObiRun
from builder.redif.acceptance import Acceptance
from builder.redif.account import HELD
from builder.redif.entry import LogEntries, Parents
from builder.redif.job import KIND, Bar
from builder.redif.packing import PackStorage
from builder.redif.parse import parse
from builder.redif.spool import (
    FLAW_CODES,
    LEFT_OUT,
    FileOrigin,
    Flaw,
    RedifFile,
    Segment,
    Spool,
    hides,
)
from builder.redif.staging import PREFIX, compare, stage
from builder.redif.stored_state import open_stored, read_state
from builder.redif.stretches import stretches
from builder.snapshot.sql import Statements
from functions.database import engine
from functions.snapshot.errors import StoreError
from functions.snapshot.store import Writer

_SQL = Statements(__file__)
_LARGEST = 1 << 62  # bytes: all files were taken once
_READING = (
    f"row IN ('version', 'seen', 'absent') AND kind = '{SOURCE}'",
    "row IN ('archive', 'reading')",
    f"row = 'fault' AND code IN {engine.texts(sorted(FLAW_CODES))}",
)
"""The rows that tell what a run read."""
_ORIGINS = (FileOrigin(Path(), "", is_tree=False),) * 2
_NO_DOCUMENTS = (
    "SELECT ''::VARCHAR AS id, 0::BIGINT AS tist, 0::BIGINT AS run, []::VARCHAR[] AS sets, "
    "''::VARCHAR AS document WHERE false"
)
_NOT_COMPARED = ("row", "own_tist", "pack", "start", "modified")
_COMPARED = ", ".join(f'"{name}"' for name in MEMBERS if name not in _NOT_COMPARED)


@dataclass(frozen=True, slots=True)
class Revision:
    """Log and documents of a run in a folder, with what they revise.

    `runs` counts the later runs with differences. `held` has the templates that vanished at once
    and are not deleted now, by the time of a later run and by archive.
    """

    folder: Path
    log: WrittenLog
    documents: WrittenLog
    runs: int
    held: Mapping[int, Mapping[str, int]]


class Means(Protocol):
    """What is needed of the settings of an ingest."""

    @property
    def bar(self) -> Bar:
        """Opens a progress bar."""
        ...

    @property
    def jobs(self) -> int:
        """Number of processes."""
        ...


def check_later(runs: Sequence[Committed], time: int) -> None:
    """Raise StoreError if a later run does not tell what it read."""
    for run in runs:
        if run.kind == KIND and run.time > time and "reading" not in run.counts:
            raise StoreError(
                f"the run of {show_tist(run.time)} was made by an earlier Sheaf, which did not "
                f"record what it read: a state of {show_tist(time)} cannot be added before it; "
                "ingest all tarballs into another store, in any order"
            )


def name_encodings(encodings: Mapping[str, str]) -> list[str]:
    """Return encodings by archive as a log has them."""
    return sorted(f"{archive}={encoding}" for archive, encoding in encodings.items())


class LaterRuns:
    """The ingests of states that are later than that of `run`.

    `connect` opens a database in a folder. Methods raise StoreError and DamagedStore.
    """

    def __init__(
        self,
        store: Writer,
        run: ObiRun,
        folder: Path,
        means: Means,
        connect: Callable[[Path], engine.Connection],
    ) -> None:
        self._store, self._run, self._means, self._connect = store, run, means, connect
        self._before = run.turn()
        self._folder = folder / "later"
        self._segments: list[Segment] = []
        check_later(self._before, run.time)
        times = {one.time for one in self._before if one.kind == KIND and one.time > run.time}
        self._times = sorted(times)
        with closing(self._open("read")) as connection, engine.reading("the logs of the runs"):
            replay.read(connection, store, self._before, self._folder, _READING)
            self._list_files(connection)
            self._read_files(connection)
            self._flaws = _find_flaws(connection)
            told = connection.execute(_SQL.get("readings")).fetchall()
            self._readings = {tist: (accepted, named) for tist, accepted, named in told}
            self._held = dict(connection.execute(_SQL.get("held")).fetchall())
        self._held_now: dict[int, dict[str, int]] = {}

    def _open(self, name: str) -> engine.Connection:
        place = self._folder / name
        with writing(place):
            place.mkdir(parents=True)
        return self._connect(place)

    def _list_files(self, connection: engine.Connection) -> None:
        """Make `needed`: each file of a later run once; `list_packed` and `_choose` read others."""
        connection.execute("CREATE TABLE state (tist BIGINT)")
        if self._times:
            connection.executemany("INSERT INTO state VALUES ($1)", [[one] for one in self._times])
        connection.execute(_SQL.get("file", prefix=str(len(PREFIX)), kind=SOURCE))
        connection.execute(_SQL.get("listed"))
        for name, sql in (("packed", _SQL.get("packed")), ("chosen", _SQL.get("chosen"))):
            target = engine.quote(str(self._folder / f"{name}.parquet"))
            connection.execute(f"COPY ({sql}) TO {target} (FORMAT parquet)")

    def _read_files(self, connection: engine.Connection) -> None:
        """Copy the files to this machine and parse them."""
        spool, named = None, None
        with self._means.bar("reading later runs", None, " files") as bar:
            for rows in engine.batches(connection.cursor(), _SQL.get("needed")):
                for ordinal, encodings, path, modified, *stored in rows:
                    if spool is None or encodings != named:
                        named, spool = encodings, self._spool(spool, encodings)
                    opened = partial(open_stored, self._store, stored)
                    flaw = spool.take(0, RedifFile(path, stored[0], modified or 0, opened), ordinal)
                    if flaw is not None:
                        raise StoreError(f"{stored[-1]} cannot be read again: {flaw.detail}")
                    bar(1)
            self._spool(spool, [])
        size = sum(segment.bytes for segment in self._segments)
        with self._means.bar("parsing", size, "B") as bar:
            told: Callable[[int, int], None] = lambda read, templates: bar(read)  # noqa: E731
            self._segments = list(pool.map_tasks(parse, self._segments, self._means.jobs, told))

    def _spool(self, last: Spool | None, encodings: Sequence[str]) -> Spool:
        """Finish a spool, and return one for files of other encodings."""
        if last is not None:
            last.close()
            self._segments += last.segments
        named = dict(one.split("=", 1) for one in encodings)
        return Spool(self._folder, _LARGEST, named, len(self._segments))

    def list_packed(self, connection: engine.Connection) -> None:
        """Make the table `packed`, for builder.redif.packing."""
        path = self._folder / "packed.parquet"
        with engine.reading("the packed files"):
            file = engine.table(f"[{engine.quote(str(path))}]")
            connection.execute(f"CREATE TABLE packed AS FROM {file}")

    def revise(self, own: Path) -> Revision:
        """Write the whole log and documents of the run; `own` has those of the older state."""
        places = {self._run.time: own}
        with self._means.bar("comparing later runs", len(self._times), " runs") as bar:
            for time in self._times:
                with closing(self._open(f"run-{time}")) as connection:
                    self._record(connection, time, places)
                places[time] = self._folder / f"run-{time}"
                bar(1)
        with closing(self._open("revised")) as connection:
            return self._join(connection, places)

    def _record(self, connection: engine.Connection, time: int, places: Mapping[int, Path]) -> None:
        """Write log and documents of a later run, as it finds the states of `places` before it."""
        place = self._folder / f"run-{time}"
        accepted, encodings = self._readings[time]
        chosen = engine.quote(str(self._folder / "chosen.parquet"))
        table = engine.table(f"[{chosen}]")
        statements = (
            _SQL.get("tree_file", chosen=table, time=str(time)),
            _SQL.get("tree_template"),
        )
        flaws, revised = self._flaws.get(time, []), {t: p / LOG for t, p in places.items()}
        with stretches(self._folder) as texts, writing(place):
            stage(connection, self._segments, _ORIGINS, flaws, statements, rooted=True)
            read_state(connection, self._store, self._before, place, time, revised)
            compare(connection, Acceptance.parse(accepted or []), encodings or [])
            self._note_held(connection, time)
            self.list_packed(connection)
            packs = PackStorage(connection, self._run, self._folder, texts)
            packs.store(self._segments, PREFIX, lambda count: None)
            entries = LogEntries(connection, texts, time)
            entries.write_log(place / LOG)
            parents = Parents(connection, self._store)
            entries.write_documents(place / DOCUMENTS, parents, lambda count: None)

    def _note_held(self, connection: engine.Connection, time: int) -> None:
        before = self._held.get(time) or {}
        found = dict(connection.execute(HELD).fetchall())
        if more := {home: many for home, many in found.items() if many != before.get(home)}:
            self._held_now[time] = more

    def _join(self, connection: engine.Connection, places: Mapping[int, Path]) -> Revision:
        """Write the log and the documents of all `places` with their times."""
        place, own = self._folder / "revised", self._run.time
        times = ", ".join(map(str, self._times)) or "NULL"
        condition = (f"tist IN ({times}) AND row != 'reading'",)
        replay.read(connection, self._store, self._before, place, condition)
        new, documents = (
            " UNION ALL ".join(
                f"SELECT {time}::BIGINT AS tist, * FROM "
                + engine.table(f"[{engine.quote(str(places[time] / name))}]")
                for time in places
            )
            for name in (LOG, DOCUMENTS)
        )
        with engine.reading("the logs of later runs"), writing(place):
            for sql in (
                _SQL.get("old", subject=SUBJECT),
                _SQL.get("new", new=new, own=str(own), subject=SUBJECT),
                _SQL.get("own", new=new, own=str(own)),
                _SQL.get("differing", columns=_COMPARED),
                _SQL.get("document", new=documents),
                _SQL.get("inheriting", old=self._old_documents(connection), kind=TEMPLATE),
            ):
                connection.execute(sql)
            whole = _SQL.get("log", own=str(own))
            connection.execute(f"CREATE TABLE revised AS {whole}")
            log_table.copy_log(connection, "FROM revised", place / LOG)
            log_table.copy_documents(
                connection, _SQL.get("told", own=str(own)), place / DOCUMENTS, DATED_DOCUMENT
            )
            rows = f"FROM {engine.table('$files')}"
            files = {"files": [str(place / LOG)]}
            sql = f"SELECT row, count(*) {rows} GROUP BY row ORDER BY row"
            counts = dict(connection.execute(sql, files).fetchall())
            sql = "SELECT count(DISTINCT tist) FROM differing"
            ((revised,),) = connection.execute(sql).fetchall()
        said, told = WrittenLog.of(place / LOG, counts), WrittenLog.of(place / DOCUMENTS, {})
        return Revision(place, said, told, int(revised), self._held_now)

    def _old_documents(self, connection: engine.Connection) -> str:
        """Return the query of the documents that the runs recorded of the compared states."""
        found = [_NO_DOCUMENTS]
        sql = f"SELECT DISTINCT run FROM logged WHERE row = 'version' AND kind = '{TEMPLATE}'"
        runs = {run for (run,) in connection.execute(sql).fetchall()}
        for run in (one for one in self._before if one.tist in runs):
            copy = self._folder / "revised" / f"documents-{run.tist}"
            path = log_table.local_file(self._store, run.documents_key, run.documents, copy)
            file = engine.table(f"[{engine.quote(str(path))}]")
            tist = run.tist if run.as_of is None else "own_tist"
            found.append(f"SELECT id, {tist}, {run.tist}, sets, document FROM {file}")
        return " UNION ALL ".join(found)


def _find_flaws(connection: engine.Connection) -> Mapping[int, list[tuple[int, Flaw]]]:
    """Return the faults for which files were left out, by the time of the state.

    Each has the number of a source. One that may hide any file of its source gets a source of its
    own if an archive was complete nevertheless: that one was of another source.
    """
    found: dict[int, list[tuple[int, Flaw]]] = {}
    for tist, path, code, detail, apart in connection.execute(
        _SQL.get("flaws", done=LEFT_OUT)
    ).fetchall():
        flaw = Flaw(path, code, detail or "", hides(code, path))
        found.setdefault(tist, []).append((int(apart), flaw))
    return found
