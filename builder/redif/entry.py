"""Objects, log rows and documents of a run, from the tables of the comparison.

Their order depends only on what was read and on the content of the store. Templates inherit from
those of their archive and series. A parent that was read comes from the files, any other from the
store.
"""

import io
import json
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from builder.http.url import normalise
from builder.obi import content, key
from builder.obi.content import (
    APPEARANCE,
    CHANGE,
    DELETION,
    SOURCE,
    TEMPLATE,
    ArchiveRow,
    FaultRow,
    Incidence,
    Refipo,
    Row,
    SeenRow,
    Version,
)
from builder.redif.spool import ALONE, KEPT, LEFT_OUT
from builder.redif.staging import BACK, BACK_CHANGED, CHANGED, NEW, SAME, STORED
from builder.sources.redif.document import (
    ARCHIVE,
    NOTHING,
    SERIES,
    DocumentReport,
    Inheritable,
    archive_and_series,
)
from builder.sources.redif.template import FileBlock, Template, read_templates
from functions.database import engine
from functions.snapshot.store import Reader

_MOST_OPEN = 64  # most files open at a time
_READ_PARENTS = (
    "SELECT handle, segment, start, bytes, more FROM winner WHERE type IN ($archive, $series)"
)
_STORED_PARENTS = f"""
SELECT v.id, v.key, v.bytes, v.md5, v.sha256
FROM obi o JOIN version v ON v.id = o.id AND v.kind = o.kind AND v.tist = o.noted
WHERE o.kind = '{TEMPLATE}' AND o.lost IS NULL AND v.type IN ($archive, $series)
    AND o.id NOT IN (SELECT handle FROM winner)
"""
_STORED = "became IN ({})".format(", ".join(f"'{became}'" for became in STORED))
_WHAT = {NEW: APPEARANCE, BACK: APPEARANCE, BACK_CHANGED: APPEARANCE, CHANGED: CHANGE}
_AGAIN = frozenset({BACK, BACK_CHANGED})

_ARCHIVES = """
SELECT home, complete, files, templates, if(held, missing, 0) FROM folder
LEFT JOIN vanished USING (home) ORDER BY home
"""
# Faults of a file are reported once, and again only when the file changes.
_FAULTS = f"""
SELECT * FROM (
    SELECT rel, place, code, NULL, detail, done FROM staged_fault JOIN fresh USING (ordinal)
    UNION ALL
    SELECT rel, NULL, code, NULL, detail, '{LEFT_OUT}' FROM flaw
    UNION ALL
    SELECT rel, NULL, 'repeated-member', NULL, '', '{LEFT_OUT}' FROM staged_file WHERE NOT counts
    UNION ALL
    SELECT t.rel, t.place, 'duplicate-handle', 'Handle',
        t.handle || ' is also in ' || w.rel || ', line ' || w.line, '{LEFT_OUT}'
    FROM staged_template t JOIN fresh USING (ordinal) JOIN winner w ON w.handle = t.handle
    WHERE (t.ordinal, t.place) != (w.ordinal, w.place)
    UNION ALL
    SELECT t.rel, t.place, 'no-handle', 'Handle', 'line ' || t.line, '{LEFT_OUT}'
    FROM staged_template t JOIN fresh USING (ordinal) WHERE t.handle IS NULL
    UNION ALL
    SELECT home, NULL, 'loss-held', NULL, missing || ' templates vanished', '{KEPT}'
    FROM vanished WHERE proven AND held
    UNION ALL
    SELECT home, NULL, 'archive-incomplete', NULL,
        if(proven, hidden, missing) || ' templates vanished', '{KEPT}'
    FROM vanished WHERE there AND (NOT proven OR hidden > 0 AND NOT held)
) ORDER BY ALL NULLS FIRST
"""
_FILES = "SELECT id, home, bytes, md5, sha256, modified FROM fresh ORDER BY id"
_SMALL = f"""
SELECT id, 'segment-' || lpad(segment::VARCHAR, 6, '0') AS name, start, bytes
FROM fresh WHERE bytes < {ALONE}
UNION ALL
SELECT handle, 'texts-' || lpad(segment::VARCHAR, 6, '0'), start, bytes FROM step WHERE {_STORED}
ORDER BY name, start, id
"""
_LARGE = f"SELECT id, segment, start, bytes FROM fresh WHERE bytes >= {ALONE} ORDER BY id"
_STEP = (
    "became", "moved", "handle", "handle_written", "type", "valid", "encoding", "rel", "home",
    "place", "length", "modified", "text_md5", "text_sha256", "md5", "sha256", "bytes", "old_key",
    "segment", "start", "more",
)  # fmt: skip
_STEPS = f"SELECT {', '.join(_STEP)} FROM step WHERE moved OR became != '{SAME}' ORDER BY handle"
_DOCUMENTS = f"""
SELECT handle, handle_written, type, type_written, valid, rel, segment, start, bytes, more
FROM step WHERE {_STORED} ORDER BY handle
"""


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
        return os.pread(number, size, start)

    def close(self) -> None:
        """Close the open files."""
        while self._open:
            os.close(self._open.popitem()[1])


@contextmanager
def stretches(folder: Path) -> Iterator[Stretches]:
    """Give a reader of the files in a folder, and close it at the end of the context."""
    found = Stretches(folder)
    try:
        yield found
    finally:
        found.close()


class Parents:
    """What templates inherit, by the handles of archives and series.

    Only some hundred bytes are held of each parent, however many other templates there are.
    """

    def __init__(self, connection: engine.Connection, texts: Stretches, store: Reader) -> None:
        values = {"archive": ARCHIVE, "series": SERIES}
        with engine.reading("archives and series"):
            self._read = {
                row[0]: row[1:] for row in connection.execute(_READ_PARENTS, values).fetchall()
            }
            self._stored = {
                row[0]: Version(
                    id=row[0], kind=TEMPLATE, key=row[1], bytes=row[2], md5=row[3], sha256=row[4]
                )
                for row in connection.execute(_STORED_PARENTS, values).fetchall()
            }
        self._texts, self._store = texts, store
        self._of = lru_cache(1 << 12)(self._find)

    def of(self, handle: str) -> tuple[Inheritable, Inheritable]:
        """Return what a template inherits from its series and its archive; nothing from itself.

        Raises DamagedStore and StoreError.
        """
        archive, series = archive_and_series(handle)
        return (
            self._of(series) if series not in (None, handle) else NOTHING,
            self._of(archive) if archive not in (None, handle) else NOTHING,
        )

    def _find(self, handle: str) -> Inheritable:
        if handle in self._read:
            segment, start, size, more = self._read[handle]
            data = self._texts.read(f"texts-{segment:06}", start + size, more)
            return Inheritable.from_fields(json.loads(data.partition(b"\n")[2]))
        version = self._stored.get(handle)
        if version is None:
            return NOTHING
        text = io.BytesIO(content.read_version(self._store, version))
        fields = [event.structure for event in read_templates(text) if isinstance(event, Template)]
        return Inheritable.from_fields(fields[0]) if fields else NOTHING


class LogEntries:
    """Objects, log rows and documents of the run `tist`, from the tables of comparison.compare.

    Each iterator needs the connection for itself until it is exhausted. All raise StoreError.
    """

    def __init__(self, connection: engine.Connection, texts: Stretches, tist: int) -> None:
        self._connection, self._texts, self._tist = connection, texts, tist

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """Yield id and bytes of each object to store, except large files."""
        for identifier, name, start, size in self._rows(_SMALL):
            yield identifier, self._texts.read(name, start, size)

    def large(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield the id of each large file to store, with its segment, place and length."""
        yield from self._rows(_LARGE)

    def rows(self) -> Iterator[Row]:
        """Yield the log rows of archives, faults, files, templates and losses, in this order."""
        for home, complete, files, templates, held in self._rows(_ARCHIVES):
            yield ArchiveRow(
                home=home, complete=complete, files=files, templates=templates, held=held
            )
        for source, place, code, field, detail, done in self._rows(_FAULTS):
            yield FaultRow(
                source=source, place=place, code=code, field=field, detail=detail, done=done
            )
        for identifier, home, size, md5, sha256, modified in self._rows(_FILES):
            yield Version(
                id=identifier, kind=SOURCE, key=key.key(self._tist, identifier), bytes=size,
                md5=md5, sha256=sha256, modified=modified, home=home,
            )  # fmt: skip
        for row in self._rows(_STEPS):
            yield from self._template(dict(zip(_STEP, row, strict=True)))
        for identifier, last in self._rows("SELECT id, key FROM lost ORDER BY id"):
            yield Incidence(id=identifier, kind=TEMPLATE, what=DELETION, key=last)

    def documents(self, parents: Parents) -> Iterator[tuple[str, tuple[str, ...], dict[str, Any]]]:
        """Yield handle, sets and document of each version of a template."""
        for row in self._rows(_DOCUMENTS):
            handle, written, kind, kind_written, valid, source, segment, start, size, more = row
            data = self._texts.read(f"texts-{segment:06}", start, size + more)
            fields = json.loads(data[size:].partition(b"\n")[2])
            text = data[: size - 1].decode()
            account = DocumentReport(handle, written, kind, kind_written, valid, text, fields)
            document = account.document(self._tist, source, *parents.of(handle))
            yield handle, account.sets(), document

    def _rows(self, sql: str) -> Iterator[Any]:
        with engine.reading("the entries to store"):
            yield from chain.from_iterable(engine.batches(self._connection, sql))

    def _template(self, of: Mapping[str, Any]) -> Iterator[Row]:
        handle, became = of["handle"], of["became"]
        own = key.key(self._tist, handle)
        if became in STORED:
            yield Version(
                id=handle, kind=TEMPLATE, key=own, bytes=of["bytes"], md5=of["md5"],
                sha256=of["sha256"], text_md5=of["text_md5"], text_sha256=of["text_sha256"],
                modified=of["modified"], home=of["home"], source=of["rel"], place=of["place"],
                length=of["length"], encoding=of["encoding"], type=of["type"], valid=of["valid"],
                handle=of["handle_written"],
            )  # fmt: skip
        elif of["moved"]:
            yield SeenRow(
                id=handle, kind=TEMPLATE, home=of["home"], source=of["rel"], place=of["place"]
            )
        if became != SAME:
            yield Incidence(
                id=handle,
                kind=TEMPLATE,
                what=_WHAT[became],
                key=own if became in STORED else of["old_key"],
                again=became in _AGAIN,
            )
        if became in STORED:
            yield from self._files(of)

    def _files(self, of: Mapping[str, Any]) -> Iterator[Row]:
        data = self._texts.read(f"texts-{of['segment']:06}", of["start"] + of["bytes"], of["more"])
        for block in map(FileBlock._make, json.loads(data.partition(b"\n")[0])):
            url = normalise(block.url)
            yield Refipo(
                handle=of["handle"], position=block.position, url=block.url, id=url.id,
                format=block.format, function=block.function, size=block.size,
                restriction=block.restriction,
            )  # fmt: skip
            if url.fault is not None:
                yield FaultRow(
                    source=of["rel"], place=of["place"], code=url.fault, field="File-URL",
                    detail=block.url[:200], done=KEPT,
                )  # fmt: skip
