"""Audit of the obi store: reads it and checks it against the logs of its runs.

Logs and listings of all runs are checked first, which is quick. Then every object that a log names
is read, several in parallel. Objects of open and abandoned runs are ignored.
"""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial

from builder.kinds.kind import KindAudit
from builder.kinds.templates.obi_history import Chain, check_tables
from builder.obi import key, log, replay
from builder.obi.content import Redirect, Version
from builder.obi.history import Committed, history
from builder.obi.publishes import PUBLISHES
from builder.runtime import Advance
from builder.snapshot.audit import StoreAudit
from builder.sources.fulltexts import file_table
from builder.store import durable
from builder.store.findings import Finding
from builder.store.key_set import KeySet
from builder.threads import map_in_order
from functions.snapshot.errors import DamagedStore, MissingObject, StoreError
from functions.snapshot.store import Writer
from functions.store import engine

_THREADS = 8
_AHEAD = 64
_STORED = "row IN ('version', 'redirect')"
_OTHERS = (key.RUNS, key.PACKS, key.FILES, PUBLISHES)  # folders without content of runs
_PACKED = (
    "SELECT pack, start + coalesce(length, bytes) AS last FROM ({}) "
    "WHERE row = 'version' AND pack IS NOT NULL"
)
_ENDS = "SELECT pack, max(last) FROM ({}) GROUP BY pack ORDER BY pack"
_Stored = Version | Redirect | str
"""What has an object of its own: a row of a log, or a pack by its key."""


@dataclass
class ObiAudit(KindAudit):
    """Report: runs of the obi store, and the objects that their logs name."""

    nouns = ("run of the obi store", "runs of the obi store")
    keys = ("runs", "objects", "objects_read")
    chain: Chain = field(default_factory=Chain)
    _sound: list[Committed] = field(default_factory=list)
    _broken: set[str] = field(default_factory=set)
    _packs: list[str] = field(default_factory=list)
    """Those to be read, which are named by the SHA-256 of their bytes."""

    @staticmethod
    def begin(audit: StoreAudit) -> "ObiAudit":
        """Check all but the bytes of objects."""
        check = ObiAudit(audit)
        if not audit.listed:
            return check
        chain = check.chain = Chain.of(audit.store)
        check.count, check.findings = len(chain.runs), list(chain.findings)
        places = {key.ROOT + key.folder(tist): tist for tist in chain.members}
        for run in chain.runs:
            check._check(run)
        for place in check._places():
            if place not in places:
                check._check_unopened(place)
        check._list_packs()
        return check

    def finish(self, advance: Advance) -> None:
        """Read the chosen objects; add findings on their content, and on derived tables."""
        rows = itertools.chain.from_iterable(map(self._list_stored, self._sound))
        keyed = ((str(row.key), row) for row in rows)
        stored = (row for k, row in keyed if k not in self._broken and self.audit.is_read(k))
        objects = itertools.chain(stored, self._packs)
        digest = partial(self._digest, advance)
        for each, data in map_in_order(digest, objects, _THREADS, _AHEAD):
            self._check_object(each, data)
        if self.chain.runs:
            self.findings += file_table_findings(self.store)
        self.findings[:0] = check_tables(self.audit)

    def _digest(
        self, advance: Advance, each: _Stored
    ) -> tuple[_Stored, tuple[str, int] | StoreError]:
        count = (lambda n: None) if isinstance(each, Redirect) else advance  # a log has no sizes
        try:
            return each, durable.digest_object(self.store, _key_of(each), count)
        except (MissingObject, DamagedStore) as error:
            return each, error

    def _list_packs(self) -> None:
        """Compare the listing of packs with the logs; those of damaged logs may be any other."""
        there = {entry.key: entry.bytes for entry in self.store.entries(key.PACKS)}
        ends: dict[str, int] = {}
        if self._sound:
            with (
                self.audit.open_database() as (connection, scratch),
                replay.logs(connection, self.store, self._sound, scratch) as logs,
            ):
                named = connection.execute(_ENDS.format(_PACKED.format(logs))).fetchall()
            ends = {key.pack(name): end for name, end in named}
        self.objects += len(ends)
        for where, end in ends.items():
            if where not in there:
                self._find("obi-missing", where, "a log names this pack, but it does not exist")
            elif there[where] < end:
                self._find("obi-altered", where, f"a log names its byte {end - 1:,}")
            elif self.audit.is_read(where):
                self._packs.append(where)
                self.bytes += there[where]
        is_whole = len(self._sound) == len(self.chain.runs)
        for where in sorted(there.keys() - ends.keys() if is_whole else ()):
            self._find("obi-pack-orphan", where, "no log names this pack")

    def _check(self, run: Committed) -> None:
        """Check the listing of a run's objects against its log."""
        if not self._matches_commit(run.log_key, run.log, "obi-log-edited"):
            return
        for where, digest in run.files.items():
            if where != run.log_key:
                self._matches_commit(where, digest, "obi-documents-edited")
        self._sound.append(run)
        place = key.ROOT + key.folder(run.tist)
        there, sized, named = KeySet(), KeySet(), KeySet()
        for entry in self.store.entries(place):
            there.add(entry.key)
            sized.add(f"{entry.key} {entry.bytes}")
        for where, size in self._named_keys(run):
            named.add(where)
            self.objects += 1
            if where not in there:
                self._find(
                    "obi-missing", where, "the log of its run names it, but it does not exist"
                )
            elif size is not None and f"{where} {size}" not in sized:
                self._find(
                    "obi-altered", where, f"its size differs from the {size:,} bytes in its log"
                )
            elif self.audit.is_read(where):
                self.bytes += size or 0
        if not named.same(there):
            for where in self.store.keys(place):
                if where not in named:
                    self._find("obi-stray", where, "no log names it")

    def _matches_commit(self, where: str, digest: str, code: str) -> bool:
        try:
            if durable.digest_object(self.store, where)[0] == digest:
                return True
            self._find(code, where, "it differs from the committed one")
        except MissingObject:
            pass  # reported by the chain
        except DamagedStore as error:
            self._find(code, where, str(error))
        return False

    def _named_keys(self, run: Committed) -> Iterator[tuple[str, int | None]]:
        """Yield the keys of the objects that a log names, with the sizes of versions."""
        try:
            for row in self._list_stored(run):
                yield str(row.key), row.bytes if isinstance(row, Version) else None
        except DamagedStore as error:
            self._find("obi-log-edited", run.log_key, str(error))

    def _list_stored(self, run: Committed) -> Iterator[Version | Redirect]:
        """Yield the rows of a run's log that have an object of their own."""
        for tist, row in log.read_dated_rows(self.store, run, _STORED):
            if isinstance(row, Version) and row.pack is None and row.key:
                yield row
            elif isinstance(row, Redirect) and row.key:
                parsed = key.parse(row.key.removesuffix(key.REDIRECT))
                if parsed is None or parsed[0] >= tist:  # else an earlier run's is meant
                    yield row

    def _places(self) -> Iterator[str]:
        """Yield the folders with content; report objects elsewhere as strays."""
        above = [key.ROOT]
        for _ in range(3):
            below = [where for place in above for where in self.store.folders(place)]
            above = [w for w in below if w.endswith("/") and w not in _OTHERS]
            for where in below:
                if not where.endswith("/"):
                    self._find("obi-stray", where, "it belongs to no run")
        yield from above

    def _check_unopened(self, place: str) -> None:
        """Add findings on the folder of a run that was never opened or that was removed."""
        tist = key.tist_of(place + "x")
        keys = list(self.store.keys(place))
        if tist is not None and any(self.store.keys(key.run(tist))):
            return  # opened meanwhile
        if tist is not None and keys:
            problem = f"the run {tist} has {len(keys):,} objects, but no beginning"
            self._find("obi-run-removed", place, problem)
        elif tist is None:
            for where in keys:
                self._find("obi-stray", where, "it belongs to no run")

    def _check_object(self, each: _Stored, data: tuple[str, int] | StoreError) -> None:
        """Check an object against its row, or a pack against its name."""
        where = _key_of(each)
        if isinstance(data, MissingObject):
            self._find("obi-missing", where, "it was removed during the check")
            return
        if isinstance(data, StoreError):
            self._find("obi-altered", where, str(data))
            return
        digest, _ = data
        self.read += 1
        if isinstance(each, Redirect):
            parsed = key.parse(where.removesuffix(key.REDIRECT))
            document = each.document(parsed[0] if parsed else 0)
            if digest != hashlib.sha256(document).hexdigest():
                self._find("obi-altered", where, "it differs from its log")
            return
        if isinstance(each, str) and where != key.pack(digest):
            self._find("obi-altered", where, "its bytes differ from its name")
        elif isinstance(each, Version) and digest != each.sha256:
            self._find("obi-altered", where, "its bytes differ from those stored")

    def _find(self, code: str, where: str, problem: str) -> None:
        self._broken.add(where)
        self.findings.append(Finding(code, where, problem))


def _key_of(each: _Stored) -> str:
    return each if isinstance(each, str) else str(each.key)


def file_table_findings(store: Writer) -> Iterator[Finding]:
    """Yield findings on all tables of files. Raises StoreError."""
    runs: Sequence[Committed] | None = None
    with suppress(DamagedStore):  # reported with the runs
        runs = history(store)
    with closing(engine.connect()) as connection:
        for where in store.keys(key.FILES):
            if key.parse_file_table(where) is None:
                yield Finding("obi-stray", where, "it is no table of files")
                continue
            problem = "its bytes or its run differ from its name"
            try:
                if runs is None or file_table.read(store, where, runs, connection) is not None:
                    continue
            except DamagedStore as error:
                problem = str(error)
            yield Finding("files-table-wrong", where, problem)
