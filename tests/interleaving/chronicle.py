"""The chronicle: what every snapshot must hold, by a model, and whether the store holds just that.

Rows are read out of the data files with plain DuckDB, past everything that serves them.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from builder.publish.withdraw import Withdrawn
from functions.snapshot.errors import DamagedStore
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.interleaving.change import AnyChange, Context
from tests.interleaving.hours import SKEW, Hours
from tests.interleaving.item import Given, Item, State, url_of
from tests.interleaving.operation import Operation


@dataclass(frozen=True)
class Row:
    """A listed version, as a snapshot holds it."""

    position: int
    name: str
    stamp: datetime
    item: Item


@dataclass(frozen=True)
class Snapshot:
    """A snapshot: its instant, when it was written in truth, its last position, its rows."""

    effective: datetime
    written: datetime
    last: int
    rows: tuple[Row, ...]

    def state(self) -> dict[str, Item]:
        return {row.name: row.item for row in self.rows}


class Chronicle:
    """Every snapshot that took effect, in order, and which of them were retired."""

    def __init__(self, store: Writer, hours: Hours) -> None:
        self._store = store
        self._hours = hours
        self._connection = engine.connect()
        self.snapshots: dict[int, Snapshot] = {}
        self.pointer = Pointer()
        self.runs: dict[str, Mapping[str, Given]] = {}
        self.published: set[str] = set()
        self.purged: set[str] = set()
        """Titles that no page may show any more."""
        self._kept: dict[Operation, set[int]] = {}
        self._titles: dict[int, set[str]] = {}
        self._newest: dict[Operation, int] = {}
        self._unsettled: dict[Operation, set[int]] = defaultdict(set)
        """Snapshots that an operation may have read in a pointer which was not settled yet."""

    def close(self) -> None:
        self._connection.close()

    def resume(self, other: "Chronicle") -> None:
        """Begin with what another one knows, of whose store this one has a copy."""
        self.pointer = other.pointer
        self.snapshots, self.runs = dict(other.snapshots), dict(other.runs)
        self.published, self.purged = set(other.published), set(other.purged)

    @property
    def newest(self) -> int:
        return max(self.snapshots, default=0)

    def state(self) -> State:
        return self.snapshots[self.newest].state() if self.snapshots else {}

    def kept(self) -> set[int]:
        return {n for n in self.snapshots if not self.pointer.is_retired(n)}

    def begin(self, operation: Operation) -> None:
        """Note what there is when an operation begins."""
        self._kept[operation] = self.kept()
        self._newest[operation] = self.newest
        self._note_unsettled()

    def moved(self, operation: Operation, pointer: Pointer) -> None:
        """Take down that an operation moved the pointer, and check what it published."""
        before, self.pointer = self.pointer, pointer
        self._note_unsettled()
        newest = pointer.newest()
        if newest is None or newest == before.newest():
            if newest is not None and pointer.settled and not before.settled:
                written = operation.skewed(self.snapshots[newest.snapshot].written)
                assert written < newest.effective, "what came too late for its instant kept it"
            return
        change: AnyChange = operation.change  # type: ignore[assignment]
        runs = [self.runs[name] for name in sorted(set(operation.captures))]
        past = _Past(self, self._kept[operation])
        allowed = change.allowed(Context(self.state(), runs, past))
        self.published.update(operation.captures)
        after = self.read(newest.snapshot)
        assert after.effective == newest.effective
        self._check(after, allowed, before, operation)
        self.snapshots[newest.snapshot] = after
        # What was purged may be ingested again.
        self.purged -= {row.item.title for row in after.rows if row.item.title is not None}

    def _note_unsettled(self) -> None:
        newest = self.pointer.newest()
        if newest is not None and not self.pointer.settled:
            for operation in self._kept:
                self._unsettled[operation].add(newest.snapshot)

    def _check(
        self,
        after: Snapshot,
        allowed: Mapping[str, tuple[Item, ...]],
        past: Pointer,
        operation: Operation,
    ) -> None:
        """The change is there, nothing else is, and datestamps say so.

        One that began before a pointer was settled may count its snapshot as late all the same:
        harvesters get those rows once more, which loses nothing.
        """
        old = {row.name: row for row in self.snapshots[self.newest].rows} if self.snapshots else {}
        new = {row.name: row for row in after.rows}
        assert len(new) == len(after.rows), "an item is listed twice"
        assert new.keys() == old.keys() | allowed.keys()
        late = past.newest()
        if late is not None and past.settled and late.snapshot not in self._unsettled[operation]:
            late = None
        for name, row in new.items():
            if name in allowed:
                assert row.item in allowed[name]
                assert row.stamp == after.effective
            else:
                assert row.item == old[name].item
                anew = late is not None and old[name].stamp == late.effective
                if not anew:
                    assert row.stamp == old[name].stamp
                elif late is not None and not past.settled and self._came_late(late.snapshot):
                    assert row.stamp == after.effective
                else:
                    assert row.stamp in (old[name].stamp, after.effective)

    def _came_late(self, number: int) -> bool:
        """Tell whether a pointer came after its instant by every clock."""
        snapshot = self.snapshots[number]
        return snapshot.written - timedelta(seconds=SKEW) > snapshot.effective

    def read(self, number: int) -> Snapshot:
        """Read a snapshot's rows out of the store's data files."""
        catalogue = Catalogue(self._store)
        manifest = catalogue.manifest(number)
        paths = {
            table: [str(self._store.local(file.key)) for file in catalogue.files(manifest, table)]
            for table in ("records", "dead")
        }
        sql = (
            "SELECT position, sequence, identifier, deleted, reason, sets, left_sets, title, url "
            f"FROM {engine.table('$records')} "
        )
        if paths["dead"]:
            sql += f"WHERE position NOT IN (SELECT position FROM {engine.table('$dead')}) "
        values = {table: files for table, files in paths.items() if files}
        found = self._connection.execute(f"{sql} ORDER BY position", values).fetchall()
        stamps = {s.number: s.effective for s in manifest.sequences}
        rows = []
        for position, sequence, name, deleted, reason, sets, left, title, url in found:
            assert url == (None if deleted else url_of(name))
            item = Item(title, tuple(sets), deleted, reason is not None, tuple(left))
            rows.append(Row(position, name, stamps[sequence], item))
        return Snapshot(manifest.effective, self._hours.now, manifest.last_position, tuple(rows))

    def whole(self) -> None:
        """Check that everything which kept snapshots name is there, and that purging purged."""
        catalogue = Catalogue(self._store)
        for number in self.kept():
            manifest = catalogue.manifest(number)
            for table in manifest.tables:
                for file in catalogue.files(manifest, table):
                    if self._store.tag(file.key) is None:
                        raise DamagedStore(f"snapshot {number} lacks {file.key}")
            assert self.read(number).rows == self.snapshots[number].rows
            assert not self.purged & self._held(number)
        # Of what is withdrawn not even the superseded versions are left in the files.
        for name, item in self.state().items():
            assert not item.withdrawn or not self.titles(name) & self._held(self.newest)

    def _held(self, number: int) -> set[str]:
        """Return every title that a snapshot's files hold, listed or not."""
        if number not in self._titles:
            catalogue = Catalogue(self._store)
            manifest = catalogue.manifest(number)
            files = [
                str(self._store.local(file.key))
                for table in ("records", "copies")
                for file in catalogue.files(manifest, table)
            ]
            sql = f"SELECT DISTINCT title FROM {engine.table('$files')} WHERE title IS NOT NULL"
            found = self._connection.execute(sql, {"files": files}).fetchall()
            self._titles[number] = {title for (title,) in found}
        return self._titles[number]

    def named(self) -> set[str]:
        """Return the keys of all that the newest snapshot names."""
        catalogue = Catalogue(self._store)
        tables = catalogue.manifest(self.newest).tables
        references = [reference for leaves in tables.values() for reference in leaves]
        files = [file.key for one in references for file in catalogue.leaf(one).files]
        return {*files, *(reference.key for reference in references)}

    def titles(self, name: str) -> set[str]:
        """Return every title that an item ever had."""
        every = (row for s in self.snapshots.values() for row in s.rows if row.name == name)
        return {row.item.title for row in every if row.item.title is not None}

    def forget(self, operation: Operation, done: Withdrawn) -> None:
        """Note what was purged: the items that are withdrawn in every snapshot since."""
        manifest = done.built.manifest
        since = manifest.snapshot if manifest else self._newest[operation]
        later = [s.state() for n, s in self.snapshots.items() if n >= since]
        for name in done.identifiers:
            if all(name in state and state[name].withdrawn for state in later):
                self.purged |= self.titles(name)


class _Past:
    """An item's live versions, as change.Past says."""

    def __init__(self, chronicle: Chronicle, kept: set[int]) -> None:
        now = chronicle.kept()
        self._versions: dict[str, list[tuple[int, Item]]] = defaultdict(list)
        for number in sorted(kept | now, reverse=True):
            for row in chronicle.snapshots[number].rows:
                if not row.item.deleted:
                    version = (number if number in now else 0, row.item)
                    self._versions[row.name].append(version)

    def __call__(self, name: str) -> list[tuple[int, Item]]:
        return self._versions[name]
