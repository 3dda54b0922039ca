"""A snapshot in the making: data files and leaves go into the store, named by their content."""

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from builder.parquet import write_table
from functions.oai import engine
from functions.snapshot import layout
from functions.snapshot.manifest import DataFile, Leaf, LeafReference
from functions.snapshot.store import Writer


class Draft:
    """Collects the tables of a snapshot; `tables` begins with the leaves of the last one."""

    def __init__(
        self,
        store: Writer,
        connection: engine.Connection,
        folder: Path,
        tables: Mapping[str, tuple[LeafReference, ...]],
    ) -> None:
        self._store = store
        self._connection = connection
        self._folder = folder
        self.tables = dict(tables)

    def add(
        self,
        table: str,
        query: str,
        values: Mapping[str, Any] | None = None,
        *,
        constants: Mapping[str, int] | None = None,
        span: tuple[int, int] | None = None,
        instead: bool = False,
        advance: Callable[[int], None] = lambda rows: None,
    ) -> list[DataFile]:
        """Write what a query gives as a table's sorted rows, and return their files.

        `constants` are those of parquet.write_table, `span` that of the leaves' references.
        `instead` replaces what the table held before; else the new leaves follow the old ones.
        `advance` is told of rows written.
        """
        files: list[DataFile] = []
        with engine.reading(f"the table {table}"):
            stream = engine.stream(self._connection, query, values)
            for written in write_table(stream, table, self._folder, constants):
                key = layout.data_key(table, written.digest)
                with written.path.open("rb") as source:
                    self._store.put(key, source)
                written.path.unlink()
                files.append(DataFile(key, written.bytes, written.footer, written.groups))
                advance(files[-1].rows)
        leaves = tuple(self._leaves(files, span))
        self.tables[table] = leaves if instead else (*self.tables.get(table, ()), *leaves)
        return files

    def paths(self, files: Iterable[DataFile]) -> list[str]:
        """Return where the files can be read on this machine."""
        return [str(self._store.local(file.key)) for file in files]

    def _leaves(
        self, files: list[DataFile], span: tuple[int, int] | None
    ) -> Iterator[LeafReference]:
        for start in range(0, len(files), layout.LEAF_FILES):
            some = tuple(files[start : start + layout.LEAF_FILES])
            data = Leaf(some).to_json()
            key = layout.leaf_key(hashlib.sha256(data).hexdigest()[:32])
            self._store.put(key, io.BytesIO(data))
            yield LeafReference(
                key=key,
                first=some[0].groups[0].first,
                last=some[-1].groups[-1].last,
                rows=sum(file.rows for file in some),
                files=len(some),
                bytes=sum(file.bytes for file in some),
                span=span,
            )
