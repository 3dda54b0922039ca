"""Rows that engines must not see, as position delete files of Iceberg.

A position delete names a data file and the number of a row in it. A data file of records never
changes, but versions in it become superseded later. So each data file has at most one file of
superseded rows, and a publish writes anew those of the data files in which it superseded a row.
A table of items of some kinds (captures, templates and so on) also hides the other rows. In a data
file that has such rows, both are in one file of the table's own.

Rows of a row group without gaps in its positions are found by arithmetic; of others, the group is
read.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, repeat
from pathlib import Path
from typing import Any

from builder.outputs.tables.index import DELETED, DeleteFile, FileDeletes
from builder.outputs.tables.table import OF_KINDS
from functions.snapshot.manifest import DataFile, RowGroup
from functions.snapshot.store import Reader
from functions.store import engine
from functions.store.checked_files import CheckedFiles

_FIELDS = "{file_path: 2147483546, pos: 2147483545}"
"""The reserved field ids of the columns of a position delete file."""
_NUMBERED = "read_parquet($path, file_row_number = true, hive_partitioning = false)"
_KINDS = (
    "SELECT kind, count(*) FILTER (NOT deleted) "
    f"FROM {engine.table('$path')} GROUP BY kind ORDER BY kind"
)
_OTHERS = f"SELECT file_row_number AS pos FROM {_NUMBERED} WHERE deleted OR kind NOT IN $kinds"
_COLUMNS = ("file", "number", "first", "last", "rows", "before")
_GROUPS = (
    "CREATE OR REPLACE TABLE row_groups AS SELECT unnest($file::INTEGER[]) AS file, "
    "unnest($number::INTEGER[]) AS number, unnest($first::BIGINT[]) AS first, "
    "unnest($last::BIGINT[]) AS last, unnest($rows::BIGINT[]) AS rows, "
    "unnest($before::BIGINT[]) AS before"
)
_MATCHES = (
    "CREATE OR REPLACE TABLE matches AS SELECT file, number, position, "
    "before + position - first AS pos, last - first + 1 = rows AS dense "
    "FROM candidates JOIN row_groups ON position BETWEEN first AND last"
)
_DENSE = "CREATE OR REPLACE TABLE deleted_rows AS SELECT file, pos FROM matches WHERE dense"
_SPARSE = "SELECT DISTINCT file, number FROM matches WHERE NOT dense ORDER BY ALL"
_READ = (
    f"INSERT INTO deleted_rows SELECT $file, $before + file_row_number FROM {_NUMBERED} "
    "WHERE position IN (SELECT position FROM matches WHERE file = $file AND NOT dense)"
)
_FILES = "SELECT DISTINCT file FROM deleted_rows ORDER BY file"
_OF_FILE = "SELECT pos FROM deleted_rows WHERE file = $file"
_EARLIER = f" UNION SELECT pos FROM {engine.table('$earlier')}"


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Finds deleted rows and writes their files: into `folder`, then to `objects` by key."""

    store: Reader
    checked: CheckedFiles
    connection: engine.Connection
    folder: Path
    location: str
    objects: dict[str, bytes]

    def find_superseded(
        self,
        files: Sequence[DataFile],
        candidates: Iterable[tuple[str, Mapping[str, Any]]],
        deletes: Mapping[str, FileDeletes],
    ) -> dict[str, FileDeletes]:
        """Return the deletes of the data files in which there are new superseded rows.

        `candidates` are statements that give positions; those that are in no file do not count.
        `deletes` are those of data files until now. Raises StoreError.
        """
        self.connection.execute("CREATE OR REPLACE TABLE candidates (position BIGINT)")
        with engine.reading("the superseded positions"):
            for sql, values in candidates:
                self.connection.execute(f"INSERT INTO candidates {sql}", dict(values))
            if not self.connection.execute("SELECT 1 FROM candidates LIMIT 1").fetchall():
                return {}
            self._match(files)
            changed = {}
            for (number,) in self.connection.execute(_FILES).fetchall():
                file = files[number]
                before = deletes[file.key]
                superseded = self._extend(number, file, before.superseded)
                others = {n: self._extend(number, file, rows) for n, rows in before.others.items()}
                changed[file.key] = FileDeletes(superseded, others, before.without)
            return changed

    def _extend(self, number: int, file: DataFile, earlier: DeleteFile | None) -> DeleteFile:
        if earlier is None:
            return self._write(file, _OF_FILE, {"file": number})
        fresh = self.objects.pop(earlier.key, None)  # nothing names it any more
        path = self.store.local(earlier.key) if fresh is None else self.folder / "earlier.parquet"
        if fresh is not None:
            path.write_bytes(fresh)
        return self._write(file, _OF_FILE + _EARLIER, {"file": number, "earlier": str(path)})

    def _match(self, files: Sequence[DataFile]) -> None:
        """Make `deleted_rows`, the rows of candidates; `file` is the number in `files`."""
        rows = [
            (number, place, group.first, group.last, group.rows, before)
            for number, file in enumerate(files)
            for place, (group, before) in enumerate(_number_rows(file))
        ]
        columns = map(list, zip(*rows, strict=True)) if rows else repeat([])
        self.connection.execute(_GROUPS, dict(zip(_COLUMNS, columns, strict=False)))
        self.connection.execute(_MATCHES)
        self.connection.execute(_DENSE)
        sparse = self.connection.execute(_SPARSE).fetchall()
        for number, pairs in groupby(sparse, key=lambda pair: pair[0]):
            numbered = list(_number_rows(files[number]))  # of row groups with gaps
            groups = [numbered[place] for _, place in pairs]
            with self.checked.open(files[number], [group for group, _ in groups]) as paths:
                for path, (_, before) in zip(paths, groups, strict=True):
                    self.connection.execute(_READ, {"file": number, "path": path, "before": before})

    def find_others(self, file: DataFile) -> FileDeletes:
        """Return which rows of a data file of records are not items of the tables of kinds."""
        path = str(self.checked.whole(file.key))
        others, without = {}, set()
        with engine.reading(file.key):
            live = dict(self.connection.execute(_KINDS, {"path": path}).fetchall())
            for table in OF_KINDS:
                count = sum(live.get(kind, 0) for kind in table.kinds)
                if count == 0:
                    without.add(table.name)
                elif count < file.rows:
                    values = {"path": path, "kinds": sorted(table.kinds)}
                    others[table.name] = self._write(file, _OTHERS, values)
        return FileDeletes(None, others, tuple(sorted(without)))

    def _write(self, file: DataFile, sql: str, values: Mapping[str, Any]) -> DeleteFile:
        path = self.folder / "deletes.parquet"
        named = engine.quote(f"{self.location}/{file.key}")
        (counted,) = self.connection.execute(
            f"COPY (SELECT {named} AS file_path, pos FROM ({sql}) ORDER BY pos) "
            f"TO {engine.quote(str(path))} "
            f"(FORMAT parquet, COMPRESSION zstd, FIELD_IDS {_FIELDS})",
            dict(values),
        ).fetchone() or (0,)
        data = path.read_bytes()
        path.unlink()
        key = f"{DELETED}{hashlib.sha256(data).hexdigest()[:32]}.parquet"
        self.objects[key] = data
        return DeleteFile(key, len(data), int(counted))


def _number_rows(file: DataFile) -> Iterable[tuple[RowGroup, int]]:
    """Return each row group with the number of rows before it."""
    counts = accumulate((group.rows for group in file.groups), initial=0)
    return zip(file.groups, counts, strict=False)
