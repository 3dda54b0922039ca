"""Small tables of a run, as JSON lines compressed with gzip.

They are written without pyarrow, which takes much memory, and read by DuckDB.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from functions.snapshot.errors import DamagedStore
from functions.snapshot.item_tables import Column

SUFFIX = ".jsonl.gz"
_BUFFER = 1 << 16  # compressed bytes
_LEAST = 1 << 22  # bytes of the longest line; DuckDB holds two lines for each thread


class LineWriter:
    """Writes rows one by one; a line is an object of the columns and `line`, its number from 0.

    Columns are of the types BOOLEAN, INTEGER, BIGINT, TIMESTAMP, VARCHAR and VARCHAR[]. Raises
    OSError if the file cannot be written, and UnicodeEncodeError for text with lone surrogates.
    """

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        self._names = [column.name for column in columns]
        self._count = 0
        self._packer = zlib.compressobj(wbits=31)
        self._pending = bytearray()
        self._ended = False
        # Unbuffered: after an error, `_pending` holds exactly the bytes that are not written.
        self._file = path.open("wb", buffering=0)

    def append(self, row: Sequence[Any]) -> None:
        """Add a row: one value for each column, in order. A time without a zone is UTC."""
        fields = dict(zip(self._names, row, strict=True)) | {"line": self._count}
        text = json.dumps(fields, ensure_ascii=False, default=_instant)
        self._pending += self._packer.compress(text.encode() + b"\n")
        self._count += 1
        if len(self._pending) >= _BUFFER:
            self._flush()

    def close(self) -> None:
        """Write the remaining bytes. After an error it may be called again."""
        if not self._ended:
            self._pending += self._packer.flush()
            self._ended = True
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        while self._pending:
            del self._pending[: self._file.write(self._pending)]


def line_table(files: Iterable[str], columns: Sequence[Column]) -> str:
    """Return the table expression over `files`, which are also the parameter $files.

    It has the columns, `part` (the file) and `line`. Raises DamagedStore.
    """
    types = ", ".join(f"{column.name}: '{column.type}'" for column in columns)
    longest = max(map(_longest_line, files), default=0)
    return (
        f"read_json($files, columns = {{{types}, line: 'BIGINT'}}, format = 'newline_delimited', "
        "compression = 'gzip', filename = 'part', hive_partitioning = false, "
        f"maximum_object_size = {max(longest, _LEAST)})"
    )


def _longest_line(file: str) -> int:
    try:
        with gzip.open(file) as lines:
            return max(map(len, lines), default=0)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedStore(f"the intake is damaged: {file}: {error}") from error


def _instant(time: datetime) -> str:
    naive = time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
    return naive.isoformat()
