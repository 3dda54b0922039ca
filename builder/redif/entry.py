"""Objects, log rows and documents of a run, from the tables of the comparison.

Their order depends only on what was read and on the content of the store.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from builder.http.url import normalise
from builder.obi import key
from builder.obi.row import (
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
from builder.redif.comparison import BACK, BACK_CHANGED, CHANGED, NEW, SAME, STORED
from builder.redif.fault import KEPT, LEFT_OUT
from builder.redif.parent import Parents
from builder.redif.spool import ALONE
from builder.redif.texts import Stretches
from builder.sources.redif.document import DocumentReport
from builder.sources.redif.template import FileBlock
from functions.database import engine

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
