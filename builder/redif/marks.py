"""Marks: digests by which templates that the last ingest parsed are known, and not parsed again.

They are of the bytes of a template and of all else that its parsing depends on: its file's path and
encoding. A template with faults has none, because faults name lines. Nor has an archive or a
series, which others inherit from. A mark has 128 bits, of which half are enough to look it up.
"""

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from builder.intake.intake import writing
from builder.redif.spool import Spooled
from builder.sources.redif.document import ARCHIVE, SERIES
from builder.sources.redif.template import Template
from builder.sources.redif.template_text import EncodedLines, TemplateText
from functions.database import engine

Mark = tuple[int | None, int | None]
_NONE: Mark = None, None
_LIST = "SELECT mark FROM read_parquet($path) WHERE mark IS NOT NULL ORDER BY mark"


def known_marks(path: Path) -> "Sequence[int]":
    """Return the first halves of the marks of a table of templates, ascending.

    A process reads a table once. Raises StoreError.
    """
    with writing(path):
        return _list_marks(path, path.stat().st_mtime_ns)


@lru_cache(1)
def _list_marks(path: Path, modified: int) -> "Sequence[int]":
    found = array("q")
    with closing(engine.connect()) as connection, engine.reading(str(path)):
        for rows in engine.batches(connection, _LIST, {"path": str(path)}):
            found.extend(rows)
    return found


class FileMarks:
    """The marks of the templates of one file; `known` has the known ones, None if there are none.

    `reused` has place, line and marks of the known templates that were found.
    """

    def __init__(self, file: Spooled, known: "Sequence[int] | None") -> None:
        self._known = known
        self._path = f"{file.source} {file.path} {file.encoding}".encode("utf-8", "replace")
        self._last: tuple[int, Mark] = -1, _NONE
        self.reused: list[tuple[int, int, int | None, int | None]] = []

    def has(self, source: EncodedLines, part: TemplateText) -> bool:
        """Return whether a template is known; if not, its mark is noted."""
        if part.cut:
            return False
        digest = hashlib.blake2b(b"%s %d\0" % (self._path, len(source.mark or "")), digest_size=16)
        digest.update(part.data.rstrip())  # the last one of a file lacks a blank line
        text = digest.digest()
        mark = int.from_bytes(text[:8], "big", signed=True)
        second = int.from_bytes(text[8:], "big", signed=True)
        self._last = part.offset, (mark, second)
        if self._known is None:
            return False
        at = bisect_left(self._known, mark)
        if at == len(self._known) or self._known[at] != mark:
            return False
        self.reused.append((part.offset, part.line, mark, second))
        return True

    def of(self, found: Template) -> Mark:
        """Return the mark of the template that was parsed last."""
        offset, mark = self._last
        is_plain = found.handle is not None and found.type not in (None, ARCHIVE, SERIES)
        return mark if is_plain and not found.diagnostics and offset == found.offset else _NONE
