"""Log and documents of a run, from the tables of the comparison.

Both depend only on what was read and on the content of the store. Templates inherit from those of
their archive and series. A parent that was read comes from the files, any other from the store.
"""

import io
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from builder.obi import content, key, log_table
from builder.obi.content import APPEARANCE, CHANGE, DELETION, SOURCE, TEMPLATE, Version
from builder.obi.log_table import WrittenLog
from builder.snapshot.sql import Statements
from builder.sources.redif.form.document import (
    ARCHIVE,
    ARTICLE,
    NOTHING,
    SERIES,
    Inheritable,
    archive_and_series,
    inherit,
    tail,
)
from builder.sources.redif.form.template import Template, read_templates
from builder.sources.redif.packing import STORED_STEPS, Stretches, list_rows
from builder.sources.redif.spool import KEPT, LEFT_OUT
from builder.sources.redif.staging import BACK, BACK_CHANGED, CHANGED, SAME
from builder.store.parquet.writer import RowWriter
from functions.snapshot.store import Reader
from functions.store import engine

_PARENT = ("id", "key", "bytes", "md5", "sha256", "length", "encoding", "pack", "start")
_STORED_PARENTS = f"""
SELECT {", ".join(f"v.{name}" for name in _PARENT)}
FROM obi o JOIN version v ON v.id = o.id AND v.kind = o.kind AND v.tist = o.noted
WHERE o.kind = '{TEMPLATE}' AND o.lost IS NULL AND v.type IN ($archive, $series)
    AND o.id NOT IN (SELECT handle FROM winner)
"""
# As builder.obi.key.name: escaped, and shortened with a digest.
_NAME = f"""
CASE WHEN length(escaped) <= {key.LONGEST} THEN escaped
     ELSE regexp_replace(left(escaped, {key.SHORTENED}), '%.?$', '') || ';' || sha256(id) END
"""
_KEYED = f"SELECT *, $folder || {_NAME} AS own_key FROM (SELECT *, url_encode(id) AS escaped FROM "

# Faults of a file are reported once, and again only when the file changes.
_SQL = Statements(__file__)
_FAULTS = f"""
SELECT rel AS source, place, code, NULL::VARCHAR AS field, detail, done
    FROM staged_fault JOIN fresh USING (ordinal)
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
    SELECT home, NULL, 'loss-held', NULL, 'not deleted: upload them again, or --accept-loss '
        || home || ' (templates: ' || missing || ')', '{KEPT}'
    FROM vanished WHERE proven AND held
    UNION ALL
    SELECT home, NULL, 'archive-incomplete', NULL, 'not deleted: mend ' || home
        || 'arch.rdf and what other faults name (templates: '
        || if(proven, hidden, missing) || ')', '{KEPT}'
    FROM vanished WHERE there AND (NOT proven OR hidden > 0 AND NOT held)
    UNION ALL
    SELECT hider, NULL, 'file-incomplete', NULL, 'mend the file, or --accept-loss '
        || coalesce(home, '') || ' (templates: ' || count(*) || ')', '{KEPT}'
    FROM missing WHERE hidden GROUP BY hider, home
    UNION ALL
    {_SQL.get("crossed", kept=KEPT)}
"""

_LOG = f"""
SELECT 'archive' AS row, home, complete, files, templates, if(held, missing, NULL) AS held
FROM folder LEFT JOIN vanished USING (home)
UNION ALL BY NAME
SELECT 'fault' AS row, * FROM ({_FAULTS}
    UNION ALL
    SELECT s.rel, s.place, r.fault, 'File-URL', left(r.url, 200), '{KEPT}'
    FROM parsed_refipo r JOIN step s USING (ordinal, place)
    WHERE r.fault IS NOT NULL AND {STORED_STEPS})
UNION ALL BY NAME
SELECT 'version' AS row, id, '{SOURCE}' AS kind, own_key AS key, f.bytes, f.md5, f.sha256,
    f.modified, f.home, o.pack, o.start
FROM keyed_file f JOIN origin o USING (ordinal)
UNION ALL BY NAME
SELECT 'version' AS row, id, '{TEMPLATE}' AS kind, own_key AS key, s.bytes, s.md5, s.sha256,
    text_md5, text_sha256, modified, home, rel AS source, s.place, s.length, s.encoding, s.type,
    s.valid, s.handle_written AS handle, coalesce(w.pack, o.pack) AS pack,
    coalesce(w.start, o.start + s.place) AS start
FROM keyed_step s LEFT JOIN origin o USING (ordinal) LEFT JOIN owned w USING (ordinal, place)
WHERE {STORED_STEPS}
UNION ALL BY NAME
SELECT 'seen' AS row, handle AS id, '{TEMPLATE}' AS kind, home, rel AS source, place
FROM step WHERE moved AND NOT ({STORED_STEPS})
UNION ALL BY NAME
SELECT 'incidence' AS row, id, '{TEMPLATE}' AS kind,
    if(became = '{CHANGED}', '{CHANGE}', '{APPEARANCE}') AS what,
    if({STORED_STEPS}, own_key, old_key) AS key,
    if(became IN ('{BACK}', '{BACK_CHANGED}'), true, NULL) AS again
FROM keyed_step WHERE became != '{SAME}'
UNION ALL BY NAME
SELECT 'incidence' AS row, id, '{TEMPLATE}' AS kind, '{DELETION}' AS what, key FROM lost
UNION ALL BY NAME
SELECT 'refipo' AS row, s.handle, r.position, r.url, r.id, r.format, r.function, r.size,
    r.restriction
FROM parsed_refipo r JOIN step s USING (ordinal, place) WHERE {STORED_STEPS}
"""
_COUNTS = f"SELECT row, count(*) FROM {engine.table('$files')} GROUP BY row"
_CODES = f"SELECT code, count(*) FROM {engine.table('$files')} WHERE row = 'fault' GROUP BY code"
_DOCUMENTS = f"""
SELECT handle, type, rel, segment, head, size, sets FROM step WHERE {STORED_STEPS} ORDER BY handle
"""


class Parents:
    """What templates inherit, by the handles of archives and series.

    Only some hundred bytes are held of each parent, however many other templates there are.
    """

    def __init__(self, connection: engine.Connection, store: Reader) -> None:
        values = {"archive": ARCHIVE, "series": SERIES}
        with engine.reading("archives and series"):
            self._read = {
                handle: Inheritable(name, tuple(restriction), tuple(provider))
                for handle, name, restriction, provider in connection.execute(
                    "SELECT handle, name, restriction, provider FROM winner "
                    "WHERE type IN ($archive, $series)",
                    values,
                ).fetchall()
            }
            stored = connection.execute(_STORED_PARENTS, values).fetchall()
        rows = (dict(zip(_PARENT, row, strict=True)) for row in stored)
        self._stored = {row["id"]: Version(kind=TEMPLATE, **row) for row in rows}
        self._store = store
        self._of = lru_cache(1 << 12)(self._find)
        self._inherit = lru_cache(1 << 12)(self._join)

    def inherit(self, handle: str, *, is_article: bool) -> bytes:
        """Return the members that a template inherits, as document.inherit does.

        Raises DamagedStore and StoreError.
        """
        archive, series = archive_and_series(handle)
        own = (None if parent == handle else parent for parent in (series, archive))
        return self._inherit(*own, is_article)

    def _join(self, series: str | None, archive: str | None, is_article: bool) -> bytes:
        parents = (NOTHING if parent is None else self._of(parent) for parent in (series, archive))
        return inherit(*parents, is_article=is_article)

    def _find(self, handle: str) -> Inheritable:
        if handle in self._read:
            return self._read[handle]
        version = self._stored.get(handle)
        if version is None:
            return NOTHING
        text = io.BytesIO(content.read_version(self._store, version))
        fields = [event.structure for event in read_templates(text) if isinstance(event, Template)]
        return Inheritable.from_fields(fields[0]) if fields else NOTHING


class LogEntries:
    """Writes log and documents of the run `tist`, from the tables of compare and of packing.

    Its methods raise StoreError and OSError.
    """

    def __init__(self, connection: engine.Connection, texts: Stretches, tist: int) -> None:
        self._connection, self._texts, self._tist = connection, texts, tist

    def write_log(self, path: Path) -> tuple[WrittenLog, Mapping[str, int]]:
        """Write the log, and return it and the number of its faults by code."""
        folder = engine.quote(key.ROOT + key.folder(self._tist))
        with engine.reading("the entries to store"):
            self._connection.execute(_SQL.get("belonging"))
            for name, source in (
                ("keyed_file", "fresh"),
                ("keyed_step", "(SELECT *, handle AS id FROM step)"),
            ):
                keyed = f"{_KEYED.replace('$folder', folder)}{source})"
                self._connection.execute(f"CREATE VIEW {name} AS {keyed}")
        log_table.copy_log(self._connection, _LOG, path)
        written = {"files": [str(path)]}
        with engine.reading("the log of the run"):
            counts = dict(self._connection.execute(_COUNTS, written).fetchall())
            codes = dict(self._connection.execute(_CODES, written).fetchall())
        return WrittenLog.of(path, counts), codes

    def write_documents(
        self, path: Path, parents: Parents, advance: Callable[[int], None]
    ) -> WrittenLog:
        """Write the document of each version of a template, in the order of handles."""
        writer, many = RowWriter(path, log_table.DOCUMENT, unlike=("document",)), 0
        rows = list_rows(self._connection, _DOCUMENTS)
        for handle, kind, source, segment, head, size, sets in rows:
            inherited = parents.inherit(handle, is_article=kind == ARTICLE)
            end = tail(self._tist, source, handle, inherited)
            data = self._texts.read(f"texts-{segment:06}", head, size) + end
            writer.append((handle, sets, data.decode()))
            many += 1
            advance(1)
        writer.close()
        return WrittenLog.of(path, {"document": many})
