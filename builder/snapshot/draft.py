"""Draft of a snapshot: reads the last snapshot's files, and writes data files and leaves.

Data files and leaves are named by their content.
"""

import copy
import hashlib
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from builder.snapshot import sort
from builder.snapshot.compaction import LeafRun, leaf_runs
from builder.store.parquet.data_file import Written
from builder.store.parquet.ranges import join_ranges
from builder.store.parquet.reader import add_texts
from builder.store.parquet.writer import batches, segments, write_table
from builder.threads import map_requests
from functions.snapshot import layout
from functions.snapshot.manifest import DataFile, Leaf, LeafReference, RowGroup, Span
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue
from functions.store.checked_files import CheckedFiles, write_cut

Query = tuple[str, Mapping[str, Any]]
"""A statement and the values of its parameters."""
SortedRows = Query | Iterator[Any]
"""Sorted rows: a query of them, or their batches."""
_RECORDS = ("records", "copies")
_WIDE = (*_RECORDS, layout.SINGLES)
_WIDE_ROWS = 4096
"""Rows of a batch of tables whose documents may be long."""
_RECORD_BYTES, _KEY_BYTES = 450, 50
"""Bytes that a row of records or copies, and of a table of keys, takes while it is sorted."""

_WIDTH = (
    "SELECT sum(total_uncompressed_size) / (SELECT sum(num_rows) "
    "FROM parquet_file_metadata($files)) FROM parquet_metadata($files)"
)
"""Bytes of a row in files."""


class Draft:
    """Collects the tables of a snapshot; `tables` begins with the leaves of the last one.

    `folder` is for local files that are only needed meanwhile. `written` are the keys of the
    objects written to the store so far. `threads` is the number of threads that compress.
    """

    def __init__(
        self,
        store: Writer,
        connection: engine.Connection,
        folder: Path,
        catalogue: Catalogue,
        tables: Mapping[str, tuple[LeafReference, ...]],
        threads: int = 1,
    ) -> None:
        self._store = store
        self._connection = connection
        self.folder = folder
        self._catalogue = catalogue
        self.tables = dict(tables)
        self.written: list[str] = []
        self._threads = threads
        self._checked = CheckedFiles(store)

    def over(self, tables: Mapping[str, tuple[LeafReference, ...]]) -> "Draft":
        """Return a draft over another snapshot's tables, with the same store and database."""
        draft = copy.copy(self)
        draft.tables, draft.written = dict(tables), []
        return draft

    def write(
        self,
        table: str,
        queries: Iterable[SortedRows],
        constants: Mapping[str, int] | None = None,
        advance: Callable[[int], None] = lambda rows: None,
    ) -> list[DataFile]:
        """Write the rows of the queries, one query after the other, as data files of `table`.

        The rows are sorted as a whole. `constants` are those of parquet.write_table. `advance` is
        called with the number of rows written.
        """
        files = []
        with engine.reading(f"the table {table}"):
            rows = self._rows(queries, _WIDE_ROWS if table in _WIDE else None)
            if table == layout.WORDS:
                rows = join_ranges(rows)
            for written in write_table(rows, table, self.folder, constants, self._threads):
                files.append(self._put(table, written))
                advance(files[-1].rows)
        return files

    def sort(
        self,
        table: str,
        rows: Query,
        order: str,
        expected: int,
        united: bool,
        sources: Sequence[str] = (),
    ) -> Iterator[Query]:
        """Yield queries that give rows of `table` in that order; see sort.sort.

        About `expected` rows are sorted. If they may be wide, `sources` are the local files that
        they come from.
        """
        width = _RECORD_BYTES if table in _RECORDS else _KEY_BYTES
        if sources:
            ((own,),) = self._connection.execute(_WIDTH, {"files": list(sources)}).fetchall()
            width = max(width, int(own or 0))
        size = expected * width
        return sort.sort(self._connection, self.folder, rows, order, size, united, width)

    def write_segments(
        self, table: str, queries: Iterable[Query], column: str
    ) -> dict[int, list[DataFile]]:
        """Write the rows of the queries; a new file begins where the value of `column` changes.

        `column` is not part of the table. Returns the files by the column's value.
        """
        files: dict[int, list[DataFile]] = {}
        with engine.reading(f"the table {table}"):
            for value, rows in segments(self._rows(queries), column):
                for written in write_table(rows, table, self.folder):
                    files.setdefault(value, []).append(self._put(table, written))
        return files

    def add_documents(self, rows: Query, paths: Sequence[str]) -> Iterator[Any]:
        """Yield batches of the rows with their documents, which stand in files; see add_texts."""
        return add_texts(self._rows([rows], _WIDE_ROWS), paths, "document")

    def _rows(self, queries: Iterable[SortedRows], size: int | None = None) -> Iterator[Any]:
        """Yield the rows of the queries in batches, of `size` rows if it is given."""
        options = {} if size is None else {"rows": size}
        for rows in queries:
            if isinstance(rows, tuple):
                sql, values = rows
                rows = batches(engine.stream(self._connection, sql, values, **options))
            yield from rows

    def leaves(
        self, files: Sequence[DataFile], span: Span | None = None, *, ranked: bool = False
    ) -> tuple[LeafReference, ...]:
        """Write the leaves that describe files of one table; `span` is that of their run."""
        return tuple(self._leaves(files, None if span is None else (span.first, span.last), ranked))

    def substitute(self, table: str, files: Mapping[str, Sequence[DataFile]]) -> None:
        """Replace the files with those keys by other files, or remove them."""
        leaves: list[LeafReference] = []
        for reference in self.tables.get(table, ()):
            described = self._catalogue.leaf(reference).files
            if any(file.key in files for file in described):
                changed = [new for file in described for new in files.get(file.key, (file,))]
                leaves += self._leaves(changed, reference.span, reference.ranked)
            else:
                leaves.append(reference)
        self.tables[table] = tuple(leaves)

    def renew(
        self,
        table: str,
        spans: Collection[Span] | None,
        write: Callable[[LeafRun, Sequence[str]], Sequence[DataFile]],
    ) -> None:
        """Make a table whose runs are those of the records: those with these spans (None: all).

        `write` writes the files of a run; it also gets the paths of its records.
        """
        earlier = {run.span: run.leaves for run in leaf_runs(self.tables.get(table, ()))}
        leaves: list[LeafReference] = []
        for run in leaf_runs(self.tables.get("records", ())):
            if spans is not None and run.span not in spans:
                leaves += earlier.get(run.span, ())
            else:
                files = write(run, self.paths(self.files(run.leaves)))
                leaves += self.leaves(files, run.span, ranked=table == layout.WORDS)
        self.tables[table] = tuple(leaves)

    def files(self, leaves: Iterable[LeafReference]) -> list[DataFile]:
        """Return the data files that the leaves describe."""
        return [file for files in self.leaf_files(list(leaves)) for file in files]

    def leaf_files(self, leaves: Sequence[LeafReference]) -> list[tuple[DataFile, ...]]:
        """Return the data files of each leaf. Leaves are read in parallel."""
        return [leaf.files for leaf in map_requests(self._catalogue.leaf, leaves)]

    def paths(self, files: Iterable[DataFile]) -> list[str]:
        """Return the local paths of the files, which are read in parallel.

        Each file is read once in full, so that damage is not copied under a new name. Raises
        DamagedStore if a file's content does not match its name. Also raises MissingObject and
        StoreError.
        """
        return map_requests(lambda file: str(self._checked.whole(file.key)), list(files))

    def group_paths(self, groups: Sequence[tuple[DataFile, Sequence[RowGroup]]]) -> list[str]:
        """Return local paths of files that hold those row groups of data files.

        If these are most of a file, it is read as a whole. Raises as `paths` does.
        """
        return [path for paths in map_requests(self._cut, groups) for path in paths]

    def _cut(self, part: tuple[DataFile, Sequence[RowGroup]]) -> list[str]:
        file, groups = part
        if 2 * len(groups) > len(file.groups) > 1:  # most of a file costs less as a whole
            return [str(self._checked.whole(file.key))]
        paths = []
        for group, data in zip(groups, self._checked.cut(file, groups), strict=True):
            path = self.folder / f"{layout.digest_of(file.key)}-{group.offset}.parquet"
            if not path.exists():  # a statement may be reading it
                with path.open("wb") as target:
                    write_cut(target, data, group.offset)
            paths.append(str(path))
        return paths

    def _put(self, table: str, written: Written) -> DataFile:
        key = layout.data_key(table, written.digest)
        with written.path.open("rb") as source:
            self._store.put(key, source)
        written.path.unlink()
        self.written.append(key)
        return DataFile(key, written.bytes, written.footer, written.groups)

    def _leaves(
        self, files: Sequence[DataFile], span: tuple[int, int] | None, ranked: bool
    ) -> Iterator[LeafReference]:
        parts = -(-len(files) // layout.LEAF_FILES)
        for number in range(parts):
            start, end = (len(files) * n // parts for n in (number, number + 1))
            described = tuple(files[start:end])
            leaf = Leaf(described)
            data = leaf.to_json()
            key = layout.leaf_key(hashlib.sha256(data).hexdigest()[:32])
            self._store.put(key, io.BytesIO(data))
            self._catalogue.remember(key, leaf)
            self.written.append(key)
            yield LeafReference(
                key=key,
                first=described[0].groups[0].first,
                last=described[-1].groups[-1].last,
                rows=sum(file.rows for file in described),
                files=len(described),
                bytes=sum(file.bytes for file in described),
                span=span,
                ranked=ranked,
            )
