"""Draft of a snapshot: writes its data files and leaves, and plans which runs it merges.

Data files and leaves are named by their content. A run is a span of the log whose files are
sorted as a whole: one publish, or several that were merged. Each publish adds a run and merges
the preceding runs into it while they are not much larger. So small publishes end up in few
runs, and a row is rewritten about as often as its run doubles. If half of a run is superseded,
the run is rewritten without the superseded rows.
"""

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from builder.parquet.data_file import Written
from builder.parquet.writer import batches, segments, write_table
from functions.database import engine
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject, StoreError
from functions.snapshot.manifest import DataFile, Leaf, LeafReference, Span
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

Query = tuple[str, Mapping[str, Any]]
"""A statement and the values of its parameters."""
RECORDS_RATIO = 2
"""A run of records is merged if it has less than this many times the rows collected so far."""
LOOKUP_RATIO = 4
"""The same for the tables `lookup` and `dead`: their rows are short, and each run costs a read."""
MOST_ROWS = 1 << 22
"""Maximum number of rows of a merged run of records."""


class Draft:
    """Collects the tables of a snapshot; `tables` begins with the leaves of the last one.

    `written` are the keys of the objects written to the store so far. `threads` is the number of
    threads that compress.
    """

    def __init__(
        self,
        store: Writer,
        connection: engine.Connection,
        folder: Path,
        tables: Mapping[str, tuple[LeafReference, ...]],
        sound: dict[str, str] | None = None,
        threads: int = 1,
    ) -> None:
        self._store = store
        self._connection = connection
        self._folder = folder
        self._catalogue = Catalogue(store)
        self.tables = dict(tables)
        self.written: list[str] = []
        self._sound = {} if sound is None else sound
        self._threads = threads

    @property
    def folder(self) -> Path:
        """A local folder for files that are only needed while the snapshot is made."""
        return self._folder

    def over(self, tables: Mapping[str, tuple[LeafReference, ...]]) -> "Draft":
        """Return a draft over another snapshot's tables, with the same store and database."""
        return Draft(
            self._store, self._connection, self._folder, tables, self._sound, self._threads
        )

    def write(
        self,
        table: str,
        queries: Iterable[Query],
        constants: Mapping[str, int] | None = None,
        advance: Callable[[int], None] = lambda rows: None,
    ) -> list[DataFile]:
        """Write the rows of the queries, one query after the other, as data files of `table`.

        The rows are sorted as a whole. `constants` are those of parquet.write_table. `advance` is
        called with the number of rows written.
        """
        files = []
        with engine.reading(f"the table {table}"):
            rows = (
                batch
                for sql, values in queries
                for batch in batches(engine.stream(self._connection, sql, values))
            )
            for written in write_table(rows, table, self._folder, constants, self._threads):
                files.append(self._put(table, written))
                advance(files[-1].rows)
        return files

    def write_segments(self, table: str, query: Query, column: str) -> dict[int, list[DataFile]]:
        """Write the rows of a query; a new file begins where the value of `column` changes.

        `column` is not part of the table. Returns the files by the column's value.
        """
        found: dict[int, list[DataFile]] = {}
        with engine.reading(f"the table {table}"):
            stream = engine.stream(self._connection, *query)
            for value, rows in segments(stream, column):
                for written in write_table(rows, table, self._folder):
                    found.setdefault(value, []).append(self._put(table, written))
        return found

    def leaves(
        self, files: Sequence[DataFile], span: Span | None = None
    ) -> tuple[LeafReference, ...]:
        """Write the leaves that describe files of one table; `span` is that of their run."""
        return tuple(self._leaves(files, None if span is None else (span.first, span.last)))

    def substitute(self, table: str, files: Mapping[str, Sequence[DataFile]]) -> None:
        """Replace the files with those keys by other files, or remove them."""
        leaves: list[LeafReference] = []
        for reference in self.tables.get(table, ()):
            known = self._catalogue.leaf(reference).files
            if any(file.key in files for file in known):
                changed = [new for file in known for new in files.get(file.key, (file,))]
                leaves += self._leaves(changed, reference.span)
            else:
                leaves.append(reference)
        self.tables[table] = tuple(leaves)

    def files(self, leaves: Iterable[LeafReference]) -> list[DataFile]:
        """Return the data files that the leaves describe."""
        return [file for leaf in leaves for file in self._catalogue.leaf(leaf).files]

    def paths(self, files: Iterable[DataFile]) -> list[str]:
        """Return the local paths of the files.

        Each file is read once in full, so that damage is not copied under a new name. Raises
        DamagedStore if a file's content does not match its name. Also raises MissingObject and
        StoreError.
        """
        return [self._sound.get(file.key) or self._check(file.key) for file in files]

    def _check(self, key: str) -> str:
        path = self._store.local(key)
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError as error:
            raise MissingObject(f"{key} no longer exists") from error
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error
        if digest[:32] != layout.digest_of(key):
            raise DamagedStore(
                f"{key} is damaged: its content does not match its name; restore a copy of it "
                "(run `sheaf verify` to see what else is wrong)"
            )
        self._sound[key] = str(path)
        return self._sound[key]

    def _put(self, table: str, written: Written) -> DataFile:
        key = layout.data_key(table, written.digest)
        with written.path.open("rb") as source:
            self._store.put(key, source)
        written.path.unlink()
        self.written.append(key)
        return DataFile(key, written.bytes, written.footer, written.groups)

    def _leaves(
        self, files: Sequence[DataFile], span: tuple[int, int] | None
    ) -> Iterator[LeafReference]:
        parts = -(-len(files) // layout.LEAF_FILES)
        for number in range(parts):
            start, end = (len(files) * n // parts for n in (number, number + 1))
            some = tuple(files[start:end])
            data = Leaf(some).to_json()
            key = layout.leaf_key(hashlib.sha256(data).hexdigest()[:32])
            self._store.put(key, io.BytesIO(data))
            self.written.append(key)
            yield LeafReference(
                key=key,
                first=some[0].groups[0].first,
                last=some[-1].groups[-1].last,
                rows=sum(file.rows for file in some),
                files=len(some),
                bytes=sum(file.bytes for file in some),
                span=span,
            )


@dataclass(frozen=True, slots=True)
class LeafRun:
    """A run: its span of the log and its leaves."""

    span: Span
    leaves: tuple[LeafReference, ...]

    @property
    def rows(self) -> int:
        """Rows in the run's files, superseded ones included."""
        return sum(leaf.rows for leaf in self.leaves)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Adjacent runs that become one. If `fresh`, the rows of this publish are appended."""

    runs: tuple[LeafRun, ...]
    fresh: bool

    def span(self, fresh: Span) -> Span:
        """Return the span of the resulting run; `fresh` is the span of this publish."""
        first = self.runs[0].span.first if self.runs else fresh.first
        return Span(first, fresh.last if self.fresh else self.runs[-1].span.last)


def leaf_runs(leaves: Sequence[LeafReference]) -> list[LeafRun]:
    """Return a table's runs in the order of the log."""
    found = []
    for span, some in groupby(leaves, key=lambda leaf: leaf.span):
        assert span is not None
        found.append(LeafRun(Span(*span), tuple(some)))
    return found


def runs_to_merge(rows: Sequence[int], fresh: int, ratio: int, most: int | None = None) -> int:
    """Return how many of the last runs, of `rows` rows each, are merged with `fresh` new rows."""
    total, count = fresh, 0
    for size in reversed(rows):
        if size >= ratio * total or (most is not None and size + total > most):
            break
        total += size
        count += 1
    return count


def plan_rewrites(
    some: Sequence[LeafRun], fresh: int, live: Callable[[Span], int]
) -> list[Rewrite]:
    """Return the rewrites of the records in the order of the log; that of this publish is last.

    `live` gives the number of rows of a span that are listed after this publish of `fresh` rows.
    """
    listed = [live(run.span) for run in some]
    merged = runs_to_merge(listed, fresh, RECORDS_RATIO, MOST_ROWS)
    kept = len(some) - merged
    found = [
        Rewrite((run,), fresh=False)
        for run, count in zip(some[:kept], listed[:kept], strict=True)
        if count == 0 or run.rows > 2 * count + layout.GROUP_ROWS
    ]
    return [*found, Rewrite(tuple(some[kept:]), fresh=True)]
