"""Data files of earlier schemas: checked, and written anew where columns were added.

What a file became is noted in the store, so that an interrupted upgrade continues behind it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from builder.parquet.data_file import checksum
from builder.snapshot.draft import Draft
from builder.upgrade import documents
from functions.database import engine
from functions.snapshot import layout, schema
from functions.snapshot.errors import VERSION, DamagedStore, MissingObject
from functions.snapshot.manifest import DataFile, Leaf
from functions.snapshot.store import Writer

NOTES = f"upgrade/{VERSION}/"
"""Prefix of the notes. They are removed when the upgrade is complete."""

_FILES = engine.table("$files")
_COLUMNS = f"DESCRIBE SELECT * FROM {_FILES}"
_ROWS = "SELECT {columns} FROM read_parquet($files, file_row_number = true, {options})"
_DIFFERENT = (
    "SELECT count(*) FROM (({old} EXCEPT ALL {new}) UNION ALL ({new} EXCEPT ALL {old})) AS rows"
)


class FileConversion:
    """Converts data files of one store; `draft` writes them."""

    def __init__(self, store: Writer, connection: engine.Connection, draft: Draft) -> None:
        self._store = store
        self._connection = connection
        self._draft = draft
        self.written = 0
        """Data files that were written anew."""

    def convert(self, table: str, file: DataFile) -> tuple[DataFile, ...]:
        """Return the files that have the rows of `file` with all columns of the present schema.

        These are in the same order. Raises DamagedStore if the file is damaged, or if the new files
        have other rows.
        """
        note = f"{NOTES}{layout.digest_of(file.key)}.json"
        noted = self._read_note(note)
        if noted is not None:
            return noted
        (path,) = self._draft.paths([file])
        with engine.reading(file.key):
            rows = self._connection.execute(_COLUMNS, {"files": [path]}).fetchall()
        there, wanted = [row[0] for row in rows], schema.names(table)
        if strange := sorted({*there} - {*wanted}):
            raise DamagedStore(f"{file.key} has unknown columns: {', '.join(strange)}")
        if tuple(there) == wanted:
            found: tuple[DataFile, ...] = (_add_checks(file, path),)
        else:
            found = self._rewrite(table, file, path, there)
        self._store.replace(note, Leaf(found).to_json(), self._store.tag(note))
        return found

    def _rewrite(
        self, table: str, file: DataFile, path: str, there: Sequence[str]
    ) -> tuple[DataFile, ...]:
        columns = ", ".join(
            column.name if column.name in there else f"NULL::{column.type} AS {column.name}"
            for column in schema.TABLES[table]
        )
        sql = _ROWS.format(columns=columns, options="hive_partitioning = false")
        query = (f"{sql} ORDER BY file_row_number", {"files": [path]})
        found = tuple(self._draft.write(table, [query]))
        self.written += len(found)
        self._compare(file, path, found, there)
        return found

    def _compare(
        self, file: DataFile, path: str, found: Sequence[DataFile], there: Sequence[str]
    ) -> None:
        """Compare the new files, as the store has them, with the old one."""
        columns = ", ".join(there)
        old, new = (f"SELECT {columns} FROM {engine.table(name)}" for name in ("$old", "$new"))
        values = {"old": [path], "new": self._draft.paths(found)}
        with engine.reading(file.key):
            sql = _DIFFERENT.format(old=old, new=new)
            ((different,),) = self._connection.execute(sql, values).fetchall()
        bounds = (file.groups[0].first, file.groups[-1].last)
        if different or bounds != (found[0].groups[0].first, found[-1].groups[-1].last):
            raise DamagedStore(f"{file.key}: {different:,} rows cannot be converted")

    def _read_note(self, note: str) -> tuple[DataFile, ...] | None:
        """Return what was noted, if these files still exist."""
        try:
            data = self._store.read(note)
        except MissingObject:
            return None
        found = documents.convert_leaf(documents.parse(data, note)).files
        return found if all(self._store.size(f.key) == f.bytes for f in found) else None


def _add_checks(file: DataFile, path: str) -> DataFile:
    """Return the description of a file with a checksum for each row group."""
    with Path(path).open("rb") as source:
        groups = tuple(replace(g, check=checksum(source, *g.span)) for g in file.groups)
    return replace(file, groups=groups)
