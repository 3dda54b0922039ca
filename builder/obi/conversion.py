"""Conversion of runs of format 1: their versions into packs, their logs into Parquet.

The new log and documents are written beside the old ones, and a record names them. The commit stays
as it is, and with it the chain. Nothing is removed: older snapshots name the objects by their keys.
A conversion that was interrupted is repeated for the run that it was at.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from builder.intake.intake import writing
from builder.obi import content, key, log_table, replay
from builder.obi.content import SOURCE, TEMPLATE, Version
from builder.obi.history import DOCUMENTS, FORMAT, LOG, PACKED, Committed, write_json
from builder.obi.log_table import WrittenLog
from builder.obi.pack import PackWriter, WrittenPack, pad_text
from builder.parquet.writer import RowWriter
from builder.runtime import Advance
from builder.threads import map_in_order
from functions.archive.redif_text import make_text
from functions.database import engine
from functions.snapshot.errors import Conflict, DamagedStore
from functions.snapshot.schema import Column
from functions.snapshot.store import Writer

_THREADS, _AHEAD = 16, 64
_MEMORY = 512  # megabytes
_PLACES = tuple(
    Column(name, kind, "", "")
    for name, kind in (
        ("id", "VARCHAR"),
        ("kind", "VARCHAR"),
        ("pack", "VARCHAR"),
        ("start", "BIGINT"),
    )
)
_OLD = "CREATE TABLE old AS SELECT * EXCLUDE (log, tist, run) FROM ({})"
_FIELDS = "id, kind, key, bytes, md5, sha256"
_FILES = f"""
SELECT {_FIELDS}, list(struct_pack(id := t.handle_id, place := t.place, length := t.length,
    encoding := t.encoding, sha256 := t.text) ORDER BY t.handle_id)
    FILTER (t.handle_id IS NOT NULL)
FROM (SELECT {_FIELDS} FROM old WHERE row = 'version' AND kind = '{SOURCE}' AND pack IS NULL) f
LEFT JOIN (SELECT id AS handle_id, source, place, length, encoding, sha256 AS text FROM old
           WHERE row = 'version' AND kind = '{TEMPLATE}' AND pack IS NULL) t
    ON f.id = 'RePEc-file:' || t.source
GROUP BY ALL ORDER BY f.id
"""
_TEXTS = f"""
SELECT {_FIELDS}, length FROM old
WHERE row = 'version' AND kind = '{TEMPLATE}' AND pack IS NULL
    AND id NOT IN (SELECT id FROM {engine.table("$files")} WHERE kind = '{TEMPLATE}')
ORDER BY id
"""
_NEW = """
SELECT o.* REPLACE (coalesce(o.pack, p.pack) AS pack, coalesce(o.start, p.start) AS start)
FROM old o LEFT JOIN {places} p ON o.row = 'version' AND p.id = o.id AND p.kind = o.kind
"""


def find_unpacked(runs: Sequence[Committed]) -> list[Committed]:
    """Return the runs that are still of format 1."""
    return [run for run in runs if run.format == 1]


def convert_run(store: Writer, run: Committed, advance: Advance) -> None:
    """Write packs, log and documents of format 2 for a run, and the record that names them.

    Every object is checked against the run's log; `advance` is called with bytes. Raises
    DamagedStore if an object is damaged or missing, and StoreError.
    """
    with tempfile.TemporaryDirectory(prefix="sheaf-pack-") as name:
        folder = Path(name)
        with (
            writing(folder),
            closing(engine.connect(memory_megabytes=_MEMORY, scratch=folder)) as connection,
        ):
            _Conversion(store, run, connection, folder, advance)()


def packed_record(run: Committed, log: tuple[str, int], documents: str | None) -> bytes:
    """Return the packed.json of a run: digest and size of its log, and digest of its documents."""
    return write_json(
        {
            "format": FORMAT,
            "tist": run.tist,
            "commit": run.digest,
            "log": log[0],
            "log_bytes": log[1],
            "documents": documents,
        }
    )


class _Conversion:
    def __init__(
        self,
        store: Writer,
        run: Committed,
        connection: engine.Connection,
        folder: Path,
        advance: Advance,
    ) -> None:
        self._store, self._run, self._connection = store, run, connection
        self._folder, self._advance = folder, advance
        self._made: list[list[tuple[str, str, int]]] = []  # of each part: id, kind, offset
        self._places: RowWriter

    def __call__(self) -> None:
        with replay.logs(self._connection, self._store, [self._run], self._folder) as (sql,):
            self._connection.execute(_OLD.format(sql))
        files = self._write("files", self._files())
        texts = self._write("texts", self._texts(files))
        said = self._write_log([files, texts])
        documents = None
        if self._run.documents is not None:
            copy = self._folder / "old-documents"
            where = self._run.documents_key
            path = log_table.local_file(self._store, where, self._run.documents, copy)
            query = log_table.documents_sql(1, str(path))
            log_table.copy_documents(self._connection, query, self._folder / DOCUMENTS)
            documents = WrittenLog.of(self._folder / DOCUMENTS, {}).digest
            self._put(DOCUMENTS)
        self._put(LOG)
        record = packed_record(self._run, (said.digest, said.bytes), documents)
        try:
            self._store.create(key.run(self._run.tist) + PACKED, record)
        except Conflict:
            if self._store.read(key.run(self._run.tist) + PACKED) != record:
                raise

    def _write_log(self, places: Sequence[str]) -> WrittenLog:
        """Write the new log, and compare it with the old one."""
        path, named = self._folder / LOG, ", ".join(map(engine.quote, places))
        new = _NEW.format(places=engine.table(f"[{named}]"))
        log_table.copy_log(self._connection, new, path)
        written = engine.table(f"[{engine.quote(str(path))}]")
        there = f"SELECT * EXCLUDE (pack, start) FROM {written}"
        old = "SELECT * EXCLUDE (pack, start) FROM old"
        with engine.reading("the log of the run"):
            ((lost, added),) = self._connection.execute(
                f"SELECT (SELECT count(*) FROM ({old} EXCEPT ALL {there})), "
                f"(SELECT count(*) FROM ({there} EXCEPT ALL {old}))"
            ).fetchall()
        if lost or added:
            raise DamagedStore(f"{self._run.log_key}: {lost:,} rows cannot be converted")
        return WrittenLog.of(path, {})

    def _put(self, name: str) -> None:
        """Store a file of the run; one that an interrupted conversion left is replaced."""
        where, path = key.run(self._run.tist) + name, self._folder / name
        try:
            self._store.create_file(where, path)
        except Conflict:
            if content.digest_object(self._store, where)[0] != WrittenLog.of(path, {}).digest:
                self._store.remove(where)  # no record names it
                self._store.create_file(where, path)

    def _write(self, name: str, parts: Iterator[tuple[list[tuple[str, str, int]], bytes]]) -> str:
        path = self._folder / f"{name}.parquet"
        self._places = RowWriter(path, _PLACES)
        writer = PackWriter(self._folder, self._keep)
        for made, data in parts:
            if writer.is_full:
                writer.close()
            self._made.append(made)
            writer.add(iter([data]))
            self._advance(len(data))
        writer.close()
        self._places.close()
        return str(path)

    def _keep(self, pack: WrittenPack) -> None:
        with suppress(Conflict):  # a name stands for the same bytes
            self._store.create_file(key.pack(pack.sha256), pack.path)
        for made, start in zip(self._made, pack.starts, strict=True):
            for identifier, kind, offset in made:
                self._places.append((identifier, kind, pack.sha256, start + offset))
        self._made.clear()

    def _files(self) -> Iterator[tuple[list[tuple[str, str, int]], bytes]]:
        """Yield each file of ReDIF with the versions that lie in it."""
        for row, data in self._read(_FILES):
            made = [(row[0], SOURCE, 0)]
            for one in row[6] or ():
                raw = data[one["place"] : one["place"] + one["length"]]
                text = make_text(raw, one["encoding"])
                if hashlib.sha256(text).hexdigest() == one["sha256"]:
                    made.append((one["id"], TEMPLATE, one["place"]))
            yield made, data

    def _texts(self, files: str) -> Iterator[tuple[list[tuple[str, str, int]], bytes]]:
        """Yield the texts of templates that no file gives again."""
        for row, data in self._read(_TEXTS, {"files": [files]}):
            yield [(row[0], TEMPLATE, 0)], pad_text(data, row[6] or 0)

    def _read(
        self, sql: str, values: dict[str, Any] | None = None
    ) -> Iterator[tuple[Sequence[Any], bytes]]:
        def rows() -> Iterator[Sequence[Any]]:
            with engine.reading("the log of the run"):
                for some in engine.batches(self._connection.cursor(), sql, values):
                    yield from some

        def read(row: Sequence[Any]) -> tuple[Sequence[Any], bytes]:
            return row, content.read_version(self._store, _version(row))

        yield from map_in_order(read, rows(), _THREADS, _AHEAD)


def _version(row: Sequence[Any]) -> Version:
    return Version(**dict(zip(_FIELDS.split(", "), row[:6], strict=True)))
