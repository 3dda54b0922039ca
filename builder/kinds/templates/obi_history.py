"""Checks of the obi store's history: the hash chain of its runs, and their replay.

Each commit names the digest of the commit before it. The logs of the runs are replayed, and the
results are compared with the tables of the snapshot.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from builder.obi import key, replay
from builder.obi.history import (
    ALIVE,
    COMMIT,
    MEMBERS,
    OPEN,
    Committed,
    OpenedRun,
    group_by_run,
    history,
    is_open,
)
from builder.snapshot.audit import StoreAudit
from builder.store.findings import Finding
from builder.store.parquet.writer import batches, write_table
from builder.store.web_store import WebStore
from functions.snapshot import layout, obi
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.manifest import DataFile, Manifest
from functions.snapshot.store import Reader, Writer
from functions.store import engine


@dataclass
class Chain:
    """The runs of a store that are committed and readable, and findings on their chain.

    `members` has, by tist, the names of the run's own objects.
    """

    members: Mapping[int, frozenset[str]] = field(default_factory=dict)
    runs: list[Committed] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    _void: set[int] = field(default_factory=set)

    @staticmethod
    def of(store: Writer) -> "Chain":
        """Read the commits, and check each against the one before it. Raises StoreError."""
        keys = list(store.keys(key.RUNS))
        chain = Chain(group_by_run(keys))
        previous: dict[int, tuple[int, str] | None] = {}
        for tist, members in chain.members.items():
            if OPEN not in members:
                chain._find("obi-missing", tist, OPEN, "the run has no beginning")
            if is_open(members):
                chain._open(store, tist)
            else:
                chain._check_ended(store, tist, previous)
        chain._link(previous)
        own = {key.run(tist) + name for tist in chain.members for name in (*MEMBERS, ALIVE)}
        for where in keys:
            if where not in own:
                chain.findings.append(Finding("obi-stray", where, "it belongs to no run"))
        return chain

    def _open(self, store: Writer, tist: int) -> None:
        try:
            named = OpenedRun.read(store, tist).name()
        except DamagedStore as error:
            self._find("obi-run-edited", tist, OPEN, str(error))
        except MissingObject:
            return  # already reported
        else:
            problem = f"the run {named} is neither committed nor abandoned"
            self._find("obi-run-unfinished", tist, OPEN, problem)

    def _check_ended(
        self, store: Writer, tist: int, previous: dict[int, tuple[int, str] | None]
    ) -> None:
        try:
            data = store.read(key.run(tist) + COMMIT)
            run = Committed.of(tist, data)
            before = json.loads(data).get("previous")
            if run is None:
                self._void.add(tist)
            else:
                previous[tist] = before and (int(before["tist"]), str(before["sha256"]))
                self.runs.append(run)
        except (DamagedStore, ValueError, KeyError, TypeError) as error:
            self._find("obi-run-edited", tist, COMMIT, str(error))
            return
        if run is not None:
            self._check_begun(store, run)
            there = {key.run(tist) + name for name in self.members[tist]}
            for where in sorted(run.files.keys() - there):
                self.findings.append(Finding("obi-missing", where, "the run was committed with it"))

    def _check_begun(self, store: Writer, run: Committed) -> None:
        """Check a run's opening record against its commit."""
        try:
            opened = OpenedRun.read(store, run.tist)
            declared = (opened.tist, opened.kind, opened.source, opened.begun)
            if declared != (run.tist, run.kind, run.source, run.begun):
                self._find("obi-run-edited", run.tist, OPEN, "its commit does not match it")
        except DamagedStore as error:
            self._find("obi-run-edited", run.tist, OPEN, str(error))
        except MissingObject:
            pass  # already reported

    def _link(self, previous: Mapping[int, tuple[int, str] | None]) -> None:
        before: Committed | None = None
        for run in self.runs:
            named = previous[run.tist]
            number = named and named[0]
            if number is not None and number not in self.members:
                problem = f"the run {run.tist} follows on it, but it does not exist"
                self.findings.append(Finding("obi-run-removed", key.run(number), problem))
            elif number in self._void:
                problem = f"the run {run.tist} follows on it, but it is marked as abandoned"
                self._find("obi-run-edited", int(number or 0), COMMIT, problem)
            elif number is not None and number not in previous:
                # A commit that is there and cannot be read is already reported.
                if is_open(self.members[number]):
                    problem = f"the run {run.tist} follows on it"
                    self._find("obi-missing", number, COMMIT, problem)
            elif number != (before and before.tist):
                problem = f"it follows on {number or 'no run'}, not on the previous run"
                self._find("obi-run-edited", run.tist, COMMIT, problem)
            elif named is not None and before is not None and named[1] != before.digest:
                problem = f"the run {run.tist} follows on one of another content"
                self._find("obi-run-edited", before.tist, COMMIT, problem)
            before = run

    def _find(self, code: str, tist: int, name: str, problem: str) -> None:
        self.findings.append(Finding(code, key.run(tist) + name, problem))


def check_tables(audit: StoreAudit) -> Iterator[Finding]:
    """Check the tables of the newest snapshot against the logs of the runs, if `rows` are.

    A store at a web address may have no logs.
    """
    if not audit.rows or audit.newest is None or isinstance(audit.store, WebStore):
        return
    try:
        manifest = audit.read_snapshot(audit.newest).manifest
        if manifest.run:
            runs = history(audit.store)
            with audit.open_database() as (connection, scratch):
                yield from _compare_tables(audit, manifest, runs, connection, scratch)
    except (DamagedStore, MissingObject) as error:
        yield Finding("obi-tables", layout.manifest_key(audit.newest), str(error))


def _compare_tables(
    audit: StoreAudit,
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
    if manifest.run != (shown[-1].tist if shown else 0):
        problem = f"snapshot {manifest.snapshot} shows this run, which has no commit"
        yield Finding("obi-run-removed", key.run(manifest.run), problem)
        return
    replay.fold(connection, audit.store, shown, scratch)
    for table in obi.TABLES:
        files = [*audit.catalogue.files(manifest, table)]
        if [file.key for file in files] == table_keys(connection, table, scratch):
            continue
        differing = _differing(audit.store, connection, table, files)
        if differing:
            home = files[0].key if files else layout.manifest_key(manifest.snapshot)
            problem = f"{differing:,} rows of {table} differ from the runs' logs"
            yield Finding("obi-tables", home, problem)


def table_keys(connection: engine.Connection, table: str, scratch: Path) -> list[str]:
    """Return the keys of the files that a publish writes for a table of the replay."""
    keys = []
    with engine.reading(f"the table {table}"):
        stream = engine.stream(connection, replay.query(table))
        for written in write_table(batches(stream), table, scratch):
            keys.append(layout.data_key(table, written.digest))
            written.path.unlink()
    return keys


def _differing(
    store: Reader, connection: engine.Connection, table: str, files: Sequence[DataFile]
) -> int:
    """Return the number of rows in which the files differ from the replay."""
    values = {"files": [str(store.local(file.key)) for file in files]}
    shown = f"SELECT {', '.join(column.name for column in obi.TABLES[table])}"
    there, replayed = f"{shown} FROM {engine.table('$files')}", f"{shown} FROM {table}"
    if not files:
        there, values = f"{replayed} WHERE false", {}
    with engine.reading(f"the table {table}"):
        ((count,),) = connection.execute(
            f"SELECT (SELECT count(*) FROM ({there} EXCEPT ALL {replayed})) + "
            f"(SELECT count(*) FROM ({replayed} EXCEPT ALL {there}))",
            values,
        ).fetchall()
    return int(count)
