"""The world of a run: a store, the builder's operations on it, its readers and its chronicle.

PROTOCOL_RUNS names a file to which each run is added for `make prove-protocol`.
"""

import json
import os
import tempfile
from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import cast

from builder.intake import intake
from builder.intake.rows import IntakeWriter
from builder.publish.publish import NothingToPublish
from builder.snapshot.transaction import NothingSelectedError
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, DamagedStore, NothingPublished, StoreError
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Writer
from tests.interleaving.change import AnyChange, Expiration, Publication, Withdrawal
from tests.interleaving.chronicle import Chronicle
from tests.interleaving.hours import Hours
from tests.interleaving.item import NAMES, Given, Item
from tests.interleaving.operation import Operation
from tests.interleaving.reader import Reader
from tests.interleaving.stores import Dated, Maker
from tests.protocol.recorder import Recorded, Recording, Rows

_WORDS = {
    "Publication": "publish",
    "Withdrawal": "withdraw",
    "Restoration": "reinstate",
    "Expiration": "expire",
}
NOTHING = (NothingToPublish, NothingSelectedError, NothingPublished)
"""What an operation may say that has nothing to do."""


class World:
    """Everything that there is but the harvesters."""

    def __init__(self, maker: Maker, tally: Counter[str]) -> None:
        self._tally = tally
        self._stack = ExitStack()
        self.hours = Hours()
        self.recording = Recording(self.hours)
        self.folder = self._stack.enter_context(maker())
        self._dated = Dated(self.folder, self.hours)
        self._recorded = Recorded(
            cast(Writer, self._dated), self.recording, self.hours.clock(0), self._rows
        )
        self.store = cast(Writer, self._recorded)
        self.chronicle = Chronicle(self.store, self.hours)
        self._stack.callback(self.chronicle.close)
        self.readers: list[Reader] = []
        self.operations: list[Operation] = []
        self._versions: dict[tuple[object, ...], int] = {}

    def resume(self, other: "World") -> None:
        """Go on where another world stands, of whose store this one has a copy."""
        assert not other.operations
        self.hours.now = other.hours.now
        self.recording.resume(other.recording)
        self._dated.resume(other._dated)
        self.chronicle.resume(other.chronicle)
        self._versions = dict(other._versions)

    def close(self) -> None:
        """End what is going on, and clear the store away."""
        with self._stack:
            for operation in self.operations:
                operation.die()
        if place := os.environ.get("PROTOCOL_RUNS"):
            with Path(place).open("a") as file:
                file.write(json.dumps(self.recording.events) + "\n")

    def add_reader(self, skew: float, keep: int, page: int) -> None:
        number = len(self.readers) + 1
        reader = Reader(self.store, self.hours, skew, keep, page, self.recording, number)
        self._stack.callback(reader.close)
        self.readers.append(reader)

    def ingest(self, given: list[Given]) -> None:
        """Put items into the intake as a finished run."""
        name = f"run-{len(self.chronicle.runs) + 1:04}"
        with tempfile.TemporaryDirectory(prefix="sheaf-intake-") as folder:
            part = IntakeWriter(Path(folder), "000000")
            for one in given:
                part.capture(one.capture(), one.sets)
            part.close()
            source = intake.IntakeSource(name, name, name, "warc.gz", 1, len(given), 0, 0, {}, {})
            intake.commit(self.store, intake.IntakeRun(name, (source,)), Path(folder))
        self.chronicle.runs[name] = {one.name: one for one in given}

    def begin(self, change: AnyChange, skew: float) -> Operation:
        operation = Operation(change, self.store, self.hours, skew, self.chronicle.moved)
        self.chronicle.begin(operation)
        for one in self.operations:
            one.accompanied = True
        operation.accompanied = bool(self.operations)
        self.operations.append(operation)
        return operation

    def advance(self, operation: Operation, stop: str, count: int = 1) -> None:
        """Let an operation go on up to a stop, or to where time must pass."""
        self._turn(operation)
        operation.advance(stop, count)
        self._settle()

    def finish(self, operation: Operation) -> None:
        """Let an operation go on to its end; time passes where it waits."""
        while not operation.over:
            self._turn(operation)
            operation.advance("end")
            if operation.waits():
                assert operation.wake is not None
                self.wait((operation.wake - self.hours.now).total_seconds())
        self._settle()

    def die(self, operation: Operation) -> None:
        """End an operation where it is."""
        operation.die()
        self._settle()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.hours.now += timedelta(seconds=seconds)
        for operation in self.operations:
            if operation.overdue():
                operation.die()
        self._settle()

    def settle(self) -> None:
        """End what is going on and publish what waits, alone; then nothing may be in the way."""
        for operation in list(self.operations):
            self.finish(operation)
        last = self.begin(Publication(), 0)
        self.finish(last)
        assert last.refusal is None or isinstance(last.refusal, NOTHING), last.refusal
        assert not list(self.store.keys(layout.INTAKE))
        assert self.chronicle.published == self.chronicle.runs.keys()
        self.chronicle.whole()
        self.wait(120)

    def clean(self) -> None:
        """Expire all but the newest, days later: nothing else is left."""
        self.wait(3 * 86400)
        self.finish(self.begin(Expiration(1, timedelta(0)), 0))
        self.chronicle.whole()
        newest = self.chronicle.newest
        assert self.chronicle.kept() <= {newest}
        there = set(self.store.keys(""))
        own = {layout.POINTER, layout.WITNESS, layout.IDENTITY}
        assert there <= {*own, *layout.snapshot_keys(newest), *self.chronicle.named()}

    def _turn(self, operation: Operation) -> None:
        """Record what is written next as the operation's."""
        self._recorded.clock = operation.clock
        self._recorded.change = _WORDS[type(operation.change).__name__]

    def _rows(self, manifest: Manifest) -> Rows:
        """Return the rows of a snapshot that nothing names yet; {} if its files are gone again."""
        try:
            found = self.chronicle.read(manifest.snapshot)
        except StoreError:
            return {}
        return {
            NAMES.index(row.name) + 1: {
                "place": row.position,
                "at": row.stamp,
                "version": 0 if row.item.deleted else self._version(row.item),
                "gone": row.item.withdrawn,
            }
            for row in found.rows
        }

    def _version(self, item: Item) -> int:
        return self._versions.setdefault((item.title, item.sets), len(self._versions) + 1)

    def _settle(self) -> None:
        """Take note of the operations that are over."""
        ended = [operation for operation in self.operations if operation.over]
        self.operations = [operation for operation in self.operations if not operation.over]
        for operation in ended:
            refusal = operation.refusal
            self._tally[f"{type(operation.change).__name__}: {operation.outcome()}"] += 1
            if refusal is not None and not isinstance(refusal, NOTHING):
                assert operation.accompanied, f"{operation.change}: {refusal!r}"
                # Two that remove things may be in each other's way; what publishes starts over.
                removes = isinstance(operation.change, Expiration) or _purges(operation)
                assert isinstance(refusal, StoreError if removes else Conflict), refusal
                assert not isinstance(refusal, DamagedStore), refusal
            if _purges(operation) and operation.result is not None:
                self.chronicle.forget(operation, operation.result)
        if any(isinstance(operation.change, Expiration | Withdrawal) for operation in ended):
            self.chronicle.whole()


def _purges(operation: Operation) -> bool:
    return isinstance(operation.change, Withdrawal) and operation.change.purge
