"""Known files: what the last ingest of the same folders found in files that have not changed.

A file is known by its path, its size and its time. Its time must be older than the begin of the
ingest that read it, so that a later change of the file would have given it another time. Such a
file is read again only if the store lacks it, or if one of its templates gets a new version.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from builder.intake.intake import KNOWN_PREFIX, writing
from builder.obi.key import KeySet
from builder.parquet.writer import RowWriter
from builder.redif.spool import RedifFile
from builder.redif.staging import UNKNOWN
from functions import distribution
from functions.database import engine
from functions.snapshot.schema import Column

_SETTLED = 5  # seconds by which a file must be older than the begin of its ingest
_BEGUN = "begun"
_TEMPLATE = (
    "ordinal, place, line, length, encoding, type, valid, handle, text_sha256, name, restriction, "
    "provider"
)
_SKIPPED = (
    Column("ordinal", "BIGINT", "", ""), Column("source", "INTEGER", "", ""),
    Column("path", "VARCHAR", "", ""),
)  # fmt: skip
_FILE = "ordinal, source, path, modified, bytes, sha256, templates, archives, state"


class KnownFiles:
    """The known files of an ingest that is identified by `asked`; `home` holds their folder."""

    def __init__(self, home: Path, asked: str, *, trust: bool = True) -> None:
        """Without `trust`, no file is known, but those that are read now will be."""
        told = f"{distribution.version()} {asked}".encode("utf-8", "surrogateescape")
        self._folder = home / (KNOWN_PREFIX + hashlib.sha256(told).hexdigest()[:16])
        self._draft = self._folder.with_name(f"{self._folder.name}.{os.getpid()}")
        self._marks = KeySet()
        self.skipped = 0
        """Number of files that need not be read."""
        self.is_empty = True
        with writing(self._draft):
            shutil.rmtree(self._draft, ignore_errors=True)
            self._draft.mkdir(parents=True)
            (self._draft / _BEGUN).touch()
        self._skipped = RowWriter(self._draft / "skipped", _SKIPPED)
        if trust and self.table("file").is_file():
            self._load()

    def _load(self) -> None:
        begun = int((self._folder / _BEGUN).stat().st_mtime) - _SETTLED
        table = engine.table("$files")
        sql = f"SELECT source, path, bytes, modified FROM {table} WHERE modified < $at"
        with contextlib.closing(engine.connect()) as connection, engine.reading(str(self._folder)):
            given = {"files": [str(self.table("file"))], "at": begun}
            for rows in engine.batches(connection, sql, given):
                for row in rows:
                    self._marks.add(_mark(*row))
                    self.is_empty = False

    def has(self, source: int, file: RedifFile) -> bool:
        """Return whether a file of a folder need not be read."""
        if self.is_empty or "\\" in file.path:  # a path with bytes that are not UTF-8
            return False
        return _mark(source, file.path, file.bytes, file.modified) in self._marks

    def skip(self, ordinal: int, source: int, path: str) -> None:
        """Note that a file will not be read."""
        self._skipped.append((ordinal, source, path))
        self.skipped += 1

    def end_scan(self) -> None:
        """Finish the list of files that will not be read."""
        self._skipped.close()

    def statements(self, dropped: Collection[int]) -> Sequence[str]:
        """Return the statements that add the known files to the parsed ones, for staging.stage.

        Files that were read nevertheless are left out, and those with the ordinals `dropped`.
        """
        if not self.skipped:
            return UNKNOWN
        tables = {name: engine.quote(str(self.table(name))) for name in ("file", "template")}
        without = ", ".join(map(str, (-1, *dropped)))
        skipped = (
            f"CREATE TABLE skipped AS SELECT s.ordinal, k.ordinal AS known, k.* EXCLUDE (ordinal) "
            f"FROM read_parquet({engine.quote(str(self._draft / 'skipped'))}) s "
            f"JOIN read_parquet({tables['file']}) k USING (source, path) "
            f"WHERE s.ordinal NOT IN (SELECT ordinal FROM parsed_file UNION ALL "
            f"SELECT unnest([{without}]))"
        )
        return (
            skipped,
            "CREATE TABLE read_file AS FROM parsed_file UNION ALL BY NAME "
            "SELECT * EXCLUDE (known) FROM skipped",
            "CREATE TABLE read_template AS FROM parsed_template UNION ALL BY NAME "
            f"SELECT s.ordinal, t.* EXCLUDE (ordinal) FROM read_parquet({tables['template']}) t "
            "JOIN skipped s ON s.known = t.ordinal",
        )

    def table(self, name: str) -> Path:
        """Return the path of the table of files or templates."""
        return self._folder / f"{name}.parquet"

    def keep(self, connection: engine.Connection) -> None:
        """Keep what was read for the next ingest, from the tables of staging.stage."""
        with writing(self._draft), engine.reading(str(self._draft)):
            for name, columns in (("file", _FILE), ("template", _TEMPLATE)):
                path = engine.quote(str(self._draft / f"{name}.parquet"))
                connection.execute(
                    f"COPY (SELECT {columns} FROM read_{name}) TO {path} "
                    "(FORMAT parquet, COMPRESSION zstd)"
                )
            shutil.rmtree(self._folder, ignore_errors=True)
            self._draft.rename(self._folder)

    def close(self) -> None:
        """Remove what was not kept."""
        shutil.rmtree(self._draft, ignore_errors=True)


@contextlib.contextmanager
def open_known(home: Path | None, asked: str, *, trust: bool) -> Iterator[KnownFiles | None]:
    """Context of the known files of an ingest; None without a `home`."""
    if home is None:
        yield None
        return
    known = KnownFiles(home, asked, trust=trust)
    try:
        yield known
    finally:
        known.close()


def _mark(source: int, path: str, size: int, modified: int) -> str:
    return f"{source} {size} {modified} {path}"
