"""Rows of a row group as they are signed: in blocks, whose hashes are the leaves of a tree.

A row of `lookup` is signed as its key and its position, in eight bytes each. A row of `records` is
signed as the SHA-256 of its JSON: so a proof shows digests of its neighbours, and not their
content.
"""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from builder.outputs.log.merkle import hash_leaf, prove_leaf, root_of
from functions.snapshot import schema
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Reader
from functions.store import engine
from functions.store.checked_files import open_cut

BLOCK_ROWS = 64
LOOKUP, RECORDS = "lookup", "records"
WIDTHS = {LOOKUP: 16, RECORDS: 32}
"""Bytes of a signed row of each table."""
LOOKUP_ROW = struct.Struct(">qq")
COLUMNS = schema.names(RECORDS)
"""The columns of a record that are signed."""
_SOURCE = "read_parquet($files, file_row_number = true, hive_partitioning = false)"
_BINARY = frozenset(c.name for c in schema.TABLES[RECORDS] if c.type == "BLOB")


@dataclass(frozen=True, slots=True)
class GroupRows:
    """The signed bytes of a row group's rows, one after the other, and the bytes of one."""

    data: bytes
    width: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.data) // self.width

    def blocks(self) -> list[bytes]:
        """Return the blocks."""
        size = self.width * BLOCK_ROWS
        return [self.data[at : at + size] for at in range(0, len(self.data), size)]

    def find_root(self) -> bytes:
        """Return the root of the tree of the blocks."""
        return root_of([hash_leaf(block) for block in self.blocks()])

    def prove(self, block: int) -> tuple[bytes, ...]:
        """Return the path from a block to the root."""
        return prove_leaf(block, [hash_leaf(data) for data in self.blocks()])


def hash_group(rows: int, root: bytes) -> bytes:
    """Return the leaf of a row group in the tree of its run."""
    return hash_leaf(rows.to_bytes(8, "big") + root)


@contextmanager
def open_group(store: Reader, key: str, size: int, span: tuple[int, int]) -> Iterator[Path]:
    """Give the path of a file in memory that has a row group of a data file of `size` bytes.

    `span` is the offset and length of its bytes, its own footer included. Raises MissingObject,
    StoreError.
    """
    with store.local(key, [span], size).open("rb") as source:
        source.seek(span[0])
        data = source.read(span[1])
    with open_cut(data, span[0]) as path:
        yield Path(path)


def read_groups(
    connection: engine.Connection,
    path: Path,
    table: str,
    counts: Sequence[int],
    names: Sequence[str] = COLUMNS,
) -> Iterator[GroupRows]:
    """Yield the row groups of a data file, which have that many rows each.

    `names` are the columns of records. Raises DamagedStore, StoreError.
    """
    values = {"files": [str(path)]}
    columns = "key, position" if table == LOOKUP else _json(names)
    sql = f"SELECT {columns} FROM {engine.table('$files')}"
    with engine.reading(str(path)), closing(engine.batches(connection, sql, values)) as batches:
        rows = chain.from_iterable(batches)
        for count in counts:
            if table == LOOKUP:
                signed = (LOOKUP_ROW.pack(*row) for row in islice(rows, count))
            else:  # DuckDB takes ten times as long for SHA-256
                signed = (hashlib.sha256(t.encode()).digest() for t in islice(rows, count))
            yield GroupRows(b"".join(signed), WIDTHS[table])


def read_record(
    connection: engine.Connection, path: Path, position: int, names: Sequence[str]
) -> tuple[int, int, str, str]:
    """Return the record at a position: its row in the file, sequence, identifier and JSON.

    Raises DamagedStore if the file does not have it, and StoreError.
    """
    sql = (
        f"SELECT file_row_number, sequence, identifier, {_json(names)} "
        f"FROM {_SOURCE} WHERE position = $position"
    )
    with engine.reading(str(path)):
        rows = connection.execute(sql, {"files": [str(path)], "position": position}).fetchall()
    if len(rows) != 1:
        raise DamagedStore(f"{path.name} has no record at position {position}")
    number, sequence, identifier, text = rows[0]
    return int(number), int(sequence), str(identifier), str(text)


def _json(names: Sequence[str]) -> str:
    """Return the SQL of a record's JSON: its columns in order but for NULL; bytes as hexadecimal.

    A struct would have the NULLs too, and take twice as long.
    """
    members = (
        f"',\"{name}\":' || to_json({f'hex({name})' if name in _BINARY else name})::VARCHAR"
        for name in names
    )
    return f"'{{' || substr(concat({', '.join(members)}), 2) || '}}'"
