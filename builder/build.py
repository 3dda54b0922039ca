"""The build: the tables of the next snapshot, out of the intake and the last snapshot."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from builder import intake, listing, merge
from builder.snapshot import Draft
from functions.oai import engine
from functions.snapshot import identifier
from functions.snapshot.manifest import Manifest, Sequence
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_LOOKUP = (
    f"SELECT {identifier.LOOKUP_KEY} AS key, position FROM {engine.table('$files')} "
    "ORDER BY key, position"
)


Advance = Callable[[int], None]
"""Told of rows written since the last call."""
Progress = Callable[[int], AbstractContextManager[Advance]]
"""Given how many rows there are to write, shows how it goes."""


@dataclass(frozen=True, slots=True)
class Built:
    """What an intake comes to; `manifest` is None where it changes nothing at all."""

    manifest: Manifest | None
    records: int
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    copies: int = 0
    faults: int = 0


class Build:
    """One attempt to build on the snapshot `before`."""

    def __init__(
        self,
        store: Writer,
        connection: engine.Connection,
        draft: Draft,
        catalogue: Catalogue,
        before: Manifest,
    ) -> None:
        self._store = store
        self._connection = connection
        self._draft = draft
        self._catalogue = catalogue
        self._before = before

    def run(
        self,
        runs: list[intake.Run],
        libraries: Mapping[str, str],
        say: Callable[[str], None],
        progress: Progress,
    ) -> Built:
        """Write the tables and return the manifest; its snapshot's number and instant come later.

        A sequence that is new has the instant of the snapshot before it, until it is stamped.
        """
        previous = merge.Previous(
            self._files("lookup"), self._files("records"), self._files("dead")
        )
        captures = self._intake(runs, "captures")
        say("comparing the intake with the last snapshot")
        merged = merge.Merged(0, 0, 0, 0)
        if captures:
            merged = merge.merge(self._connection, captures, self._before.namespace, previous)
        after = self._before
        if merged.new or merged.changed:
            say(f"writing {merged.new:,} new and {merged.changed:,} changed records")
            with progress(merged.new + merged.changed) as advance:
                after = self._items(advance)
        all_of_it = tuple(column.name for column in intake.TABLES["faults"])
        faults = self._added("faults", runs, all_of_it)
        sources = self._added("sources", runs, ("source", "digest"))
        records = sum(after.kinds().values())
        counts = (
            records, merged.new, merged.changed, merged.unchanged, merged.copies, faults
        )  # fmt: skip
        if after is self._before and not faults and not sources:
            return Built(None, *counts)
        return Built(replace(after, tables=self._draft.tables, libraries=dict(libraries)), *counts)

    def _items(self, advance: Advance) -> Manifest:
        """Write what the new and changed items need; return the manifest with a new sequence."""
        number = len(self._before.sequences) + 1
        base = self._before.last_position + 1
        files = self._draft.add(
            "records",
            f"SELECT * FROM fresh ORDER BY {merge.NATURAL_ORDER}",
            constants={"position": base, "sequence": number},
            advance=advance,
        )
        last = base + sum(file.rows for file in files) - 1
        paths = {"files": self._draft.paths(files)}
        listing.index(self._connection, paths["files"], self._files("sets"), number, base)
        self._draft.add("copies", listing.COPIES, paths, span=(base, last))
        self._draft.add("lookup", _LOOKUP, paths)
        self._draft.add("dead", "SELECT position FROM superseded ORDER BY position")
        sets = self._draft.add("sets", listing.SETS, instead=True)
        return replace(
            self._before,
            sequences=(*self._sequences(), self._sequence(number, base, last)),
            sets=sum(file.rows for file in sets),
        )

    def _sequences(self) -> list[Sequence]:
        """Return the earlier sequences, less the versions that are superseded now."""
        rows = self._counted("SELECT sequence, kind, count(*) FROM superseded GROUP BY ALL")
        gone = {(sequence, kind): count for sequence, kind, count in rows}
        return [
            replace(s, records={k: n - gone.get((s.number, k), 0) for k, n in s.records.items()})
            for s in self._before.sequences
        ]

    def _sequence(self, number: int, first: int, last: int) -> Sequence:
        kinds = self._counted("SELECT kind, count(*) FROM fresh GROUP BY kind ORDER BY kind")
        return Sequence(number, self._before.effective, first, last, dict(kinds))

    def _counted(self, sql: str) -> list[Any]:
        with engine.reading("the merge"):
            return self._connection.execute(sql).fetchall()

    def _added(self, table: str, runs: list[intake.Run], key: tuple[str, ...]) -> int:
        """Add the intake's rows whose `key` the last snapshot lacks; return how many."""
        files = self._intake(runs, table)
        if not files:
            return 0
        order = ", ".join(f"{column.name} NULLS FIRST" for column in intake.TABLES[table])
        values = {"files": files}
        known = ""
        if earlier := self._files(table):
            values["earlier"] = earlier
            same = " AND ".join(f"e.{name} IS NOT DISTINCT FROM i.{name}" for name in key)
            known = f"WHERE NOT EXISTS (SELECT 1 FROM {engine.table('$earlier')} e WHERE {same})"
        sql = (
            f"SELECT DISTINCT ON ({', '.join(key)}) * FROM {engine.table('$files')} i {known} "
            f"ORDER BY {order}"
        )
        return sum(file.rows for file in self._draft.add(table, sql, values))

    def _files(self, table: str) -> list[str]:
        return self._draft.paths(self._catalogue.files(self._before, table))

    def _intake(self, runs: list[intake.Run], table: str) -> list[str]:
        return [path for run in runs for path in intake.files(self._store, run, table)]
