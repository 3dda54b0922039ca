"""Packs of a run: its new files, and the few texts that cannot be had again from them.

A segment of which all files are new is a pack as it is. Of others the new files are copied.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from builder.obi.content import SOURCE
from builder.obi.pack import PackWriter, WrittenPack, pad_text
from builder.obi.run import ObiRun
from builder.sources.redif.spool import Segment
from builder.sources.redif.staging import STORED
from builder.store.durable import digest_file
from builder.store.parquet.writer import RowWriter, parse_columns
from functions.archive.redif_text import make_text
from functions.store import engine

Advance = Callable[[int], None]
_MOST_OPEN = 64  # most files open at a time
STORED_STEPS = "became IN ({})".format(", ".join(f"'{became}'" for became in STORED))
"""The condition on `step` of templates that get a new version."""
_PLACES = parse_columns("ordinal BIGINT, place BIGINT, pack VARCHAR, start BIGINT")
_WHOLE = "SELECT segment, sum(bytes)::BIGINT FROM fresh GROUP BY segment ORDER BY segment"
_PARTS = """
SELECT ordinal, segment, start, bytes FROM fresh
WHERE segment NOT IN (SELECT segment FROM whole) ORDER BY ordinal
"""
# Files that are not new lie in the pack of an earlier run, if it had packs.
_ORIGIN = f"""
CREATE TABLE origin AS
SELECT f.ordinal, w.pack, f.start FROM fresh f JOIN whole w USING (segment)
UNION ALL SELECT ordinal, pack, start FROM {engine.table("$files")} WHERE place IS NULL
UNION ALL
SELECT f.ordinal, v.pack, v.start
FROM staged_file f JOIN obi o ON o.kind = '{SOURCE}' AND o.id = '{{prefix}}' || f.rel
JOIN version v ON v.id = o.id AND v.kind = o.kind AND v.tist = o.noted
WHERE f.counts AND o.digest = f.sha256 AND v.pack IS NOT NULL
    AND f.ordinal IN (SELECT ordinal FROM step WHERE {STORED_STEPS})
"""
_TEXTS = f"""
SELECT s.ordinal, s.place, s.own, s.segment, s.head + s.size, s.bytes, s.length, s.encoding,
    f.start + s.place
FROM step s JOIN staged_file f USING (ordinal)
WHERE {STORED_STEPS} AND (s.own OR s.ordinal NOT IN (SELECT ordinal FROM origin)) ORDER BY s.handle
"""
_OWNED = f"CREATE TABLE owned AS SELECT * FROM {engine.table('$files')} WHERE place IS NOT NULL"


class Stretches:
    """Reads byte ranges of the files in a folder; the latest files stay open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, int] = OrderedDict()

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return a byte range of the named file. Raises OSError."""
        number = self._open.pop(name, None)
        if number is None:
            number = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
        self._open[name] = number
        if len(self._open) > _MOST_OPEN:
            os.close(self._open.popitem(last=False)[1])
        data = os.pread(number, size, start)
        if len(data) != size:
            raise OSError(f"{name} ends {size - len(data)} bytes too early")
        return data

    def close(self) -> None:
        """Close the open files."""
        while self._open:
            os.close(self._open.popitem()[1])


class PackStorage:
    """Stores the packs of a run, and makes the tables `origin` and `owned` of the database.

    `origin` has pack and start of files, `owned` those of texts. Needs the tables of
    staging.compare.
    """

    def __init__(
        self, connection: engine.Connection, run: ObiRun, folder: Path, texts: Stretches
    ) -> None:
        self._connection, self._run, self._folder, self._texts = connection, run, folder, texts

    def store(self, segments: Sequence[Segment], prefix: str, advance: Advance) -> None:
        """Store all packs; `prefix` begins the ids of files. Raises StoreError, OSError."""
        self._store_whole(segments, advance)
        parts = (
            # A file that is larger than ALONE is a segment of its own, which is whole.
            ((ordinal, None), self._texts.read(f"segment-{segment:06}", start, size))
            for ordinal, segment, start, size in list_rows(self._connection, _PARTS)
        )
        files = self._write("files", parts, advance)
        with engine.reading("the packs"):
            self._connection.execute(_ORIGIN.format(prefix=prefix), {"files": files})
        texts = ((row[:2], self._text(row)) for row in list_rows(self._connection, _TEXTS))
        owned = self._write("texts", texts, advance)
        with engine.reading("the packs"):
            self._connection.execute(_OWNED, {"files": owned})

    def _store_whole(self, segments: Sequence[Segment], advance: Advance) -> None:
        self._connection.execute("CREATE TABLE whole (segment INTEGER, pack VARCHAR)")
        by_number = {segment.number: segment for segment in segments}
        for number, size in list(list_rows(self._connection, _WHOLE)):
            segment = by_number[number]
            if size == segment.bytes:
                digest = digest_file(segment.path)
                self._run.put_pack(digest, segment.path)
                self._connection.execute("INSERT INTO whole VALUES ($1, $2)", [number, digest])
                advance(size)

    def _write(
        self, name: str, parts: Iterator[tuple[tuple[Any, ...], bytes]], advance: Advance
    ) -> list[str]:
        path = self._folder / f"packed-{name}.parquet"
        places = RowWriter(path, _PLACES)
        pending: list[tuple[Any, ...]] = []

        def keep(pack: WrittenPack) -> None:
            self._run.put_pack(pack.sha256, pack.path)
            advance(pack.path.stat().st_size)
            for (ordinal, place), start in zip(pending, pack.starts, strict=True):
                places.append((ordinal, place, pack.sha256, start))
            pending.clear()

        writer = PackWriter(self._folder, keep)
        for named, data in parts:
            if writer.is_full:
                writer.close()
            pending.append(named)
            writer.add(data)
        writer.close()
        places.close()
        return [str(path)]

    def _text(self, row: tuple[Any, ...]) -> bytes:
        _, _, own, segment, behind, size, length, encoding, start = row
        if own:
            text = self._texts.read(f"texts-{segment:06}", behind, size)
        else:
            text = make_text(self._texts.read(f"segment-{segment:06}", start, length), encoding)
        return pad_text(text, length)


def list_rows(connection: engine.Connection, sql: str) -> Iterator[Any]:
    """Yield the rows of a query of what is to be stored. Raises StoreError."""
    with engine.reading("the entries to store"):
        for rows in engine.batches(connection.cursor(), sql):
            yield from rows
