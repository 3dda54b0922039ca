"""Parents: the archive and series templates that other templates inherit from.

A parent that was read comes from the files, any other from the store.
"""

import io
import json
from functools import lru_cache

from builder.obi import content
from builder.obi.row import TEMPLATE, Version
from builder.redif.texts import Stretches
from builder.sources.redif.document import (
    ARCHIVE,
    NOTHING,
    SERIES,
    Inheritable,
    archive_and_series,
)
from builder.sources.redif.template import Template, read_templates
from functions.database import engine
from functions.snapshot.store import Reader

_READ = "SELECT handle, segment, start, bytes, more FROM winner WHERE type IN ($archive, $series)"
_STORED = f"""
SELECT v.id, v.key, v.bytes, v.md5, v.sha256
FROM obi o JOIN version v ON v.id = o.id AND v.kind = o.kind AND v.tist = o.noted
WHERE o.kind = '{TEMPLATE}' AND o.lost IS NULL AND v.type IN ($archive, $series)
    AND o.id NOT IN (SELECT handle FROM winner)
"""


class Parents:
    """What templates inherit, by the handles of archives and series.

    Only some hundred bytes are held of each parent, however many other templates there are.
    """

    def __init__(self, connection: engine.Connection, texts: Stretches, store: Reader) -> None:
        values = {"archive": ARCHIVE, "series": SERIES}
        with engine.reading("archives and series"):
            self._read = {row[0]: row[1:] for row in connection.execute(_READ, values).fetchall()}
            self._stored = {
                row[0]: Version(
                    id=row[0], kind=TEMPLATE, key=row[1], bytes=row[2], md5=row[3], sha256=row[4]
                )
                for row in connection.execute(_STORED, values).fetchall()
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
        text = io.BytesIO(content.read(self._store, version))
        fields = [event.structure for event in read_templates(text) if isinstance(event, Template)]
        return Inheritable.from_fields(fields[0]) if fields else NOTHING
