"""Parsing of a segment into rows of files, templates and faults, and a file of texts.

A process parses one segment at a time. Rows stay small, because heads of documents go into one file
beside them. Each row has the place of its head.
"""

import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from builder.http.url import normalise
from builder.sources.redif.form import template
from builder.sources.redif.form.document import (
    ARCHIVE,
    NOTHING,
    SERIES,
    Inheritable,
    document_head,
    document_sets,
)
from builder.sources.redif.form.specification import Diagnostic, guess_type
from builder.sources.redif.form.template import Template, file_blocks
from builder.sources.redif.form.template_text import LIMIT
from builder.sources.redif.spool import ALONE, KEPT, Segment, Spooled
from builder.store.durable import writing
from builder.store.parquet.writer import RowWriter, parse_columns
from functions.archive.redif_text import make_text

_REPORT_EVERY = 1000  # templates
_STATES = {code: code for code in ("html", "empty-file", "no-template")} | {
    "start-with-template-type": "file-incomplete"
}


TABLES = {
    name: parse_columns(types)
    for name, types in {
        "file": (
            "ordinal BIGINT, source INTEGER, path VARCHAR, modified BIGINT, segment INTEGER, "
            "start BIGINT, bytes BIGINT, md5 VARCHAR, sha256 VARCHAR, templates BIGINT, "
            "nameless BIGINT, invalid BIGINT, archives BIGINT, state VARCHAR"
        ),
        "template": (
            "ordinal BIGINT, place BIGINT, line BIGINT, length BIGINT, encoding VARCHAR, "
            "type VARCHAR, type_written VARCHAR, valid BOOLEAN, handle VARCHAR, "
            "handle_written VARCHAR, text_md5 VARCHAR, text_sha256 VARCHAR, md5 VARCHAR, "
            "sha256 VARCHAR, segment INTEGER, bytes BIGINT, head BIGINT, size BIGINT, own BOOLEAN, "
            "sets VARCHAR[], name VARCHAR, restriction VARCHAR[], provider VARCHAR[], "
            "content VARCHAR"
        ),
        "refipo": (
            "ordinal BIGINT, place BIGINT, position BIGINT, url VARCHAR, id VARCHAR, "
            "format VARCHAR, function VARCHAR, size VARCHAR, restriction VARCHAR, fault VARCHAR"
        ),
        "fault": "ordinal BIGINT, place BIGINT, code VARCHAR, detail VARCHAR, done VARCHAR",
    }.items()
}
"""Tables of a segment.

`state` is a fault code if the file is not ReDIF or not whole, else NULL. `nameless` counts
templates without a handle, `invalid` those with errors, and `archives` those of archives.
The text of a template has `bytes` bytes. Of one with a handle, the head of its document lies in the
segment's texts at `head` and has `size` bytes. If `own`, its bytes in the file do not give its text
again, and the text follows the head. `name`, `restriction` and `provider` are what others inherit;
`content` is the type of templates in a series.
"""


def parse(segment: Segment, advance: Callable[[int, int], None]) -> Segment:
    """Parse a segment, write its tables and texts beside it, and return it.

    `advance` is called with new bytes and templates. Raises StoreError.
    """
    with writing(segment.folder):
        parsing = _Parsing(segment, advance)
        with segment.path.open("rb") as data:
            for file in segment.files():
                parsing.file(file, data)
        parsing.close()
    return segment


def path(folder: Path, table: str, number: int) -> Path:
    """Return the path of a table of a segment."""
    return folder / f"{table}-{number:06}.parquet"


class _Parsing:
    def __init__(self, segment: Segment, advance: Callable[[int, int], None]) -> None:
        self._segment, self._advance = segment, advance
        self._writers = {
            name: RowWriter(path(segment.folder, name, segment.number), TABLES[name])
            for name in TABLES
        }
        self._texts: BinaryIO = (segment.folder / f"texts-{segment.number:06}").open("wb")
        self._at = self._templates = 0
        self._reported = (0, 0)
        self._read = 0

    def file(self, file: Spooled, data: BinaryIO) -> None:
        """Parse one file."""
        data.seek(file.start)
        small = file.bytes < ALONE or file.bytes != self._segment.bytes
        stream = io.BytesIO(data.read(file.bytes)) if small else data
        templates = nameless = invalid = archives = 0
        state: str | None = None
        for event in template.read_templates(stream, file.path, LIMIT, file.encoding):
            if isinstance(event, Template):
                templates += 1
                nameless += event.handle is None
                if (
                    event.handle is None
                    or "\0" in event.text
                    or len(event.structure.get("handle", ())) > 1
                ):
                    state = state or "file-incomplete"
                invalid += not event.valid
                likely = event.type or getattr(guess_type(event.type_written), "type", None)
                archives += likely == ARCHIVE
                self._template(file, event, data)
            else:
                state = _STATES.get(event.code, state)
                self._fault(file, event, None)
        self._read += file.bytes
        self._tell()
        self._writers["file"].append(
            (
                *(file.ordinal, file.source, file.path, file.modified, self._segment.number),
                *(file.start, file.bytes, file.md5, file.sha256),
                *(templates, nameless, invalid, archives, state),
            )
        )

    def close(self) -> None:
        """Close the files."""
        self._texts.close()
        for writer in self._writers.values():
            writer.close()
        self._tell(end=True)

    def _template(self, file: Spooled, template: Template, data: BinaryIO) -> None:
        text = template.text.encode("utf-8", "replace") + b"\n"
        raw = os.pread(data.fileno(), template.length, file.start + template.offset)
        own = make_text(raw, template.encoding) != text
        at, head = self._at, b""
        sets: tuple[str, ...] = ()
        if template.handle is not None:
            head, sets = document_head(template), document_sets(template)
            self._texts.write(head)
            self._texts.write(text if own else b"")
            self._at += len(head) + own * len(text)
        parent, content = NOTHING, None
        if template.type in (ARCHIVE, SERIES):
            parent = Inheritable.from_fields(template.structure)
        if template.type == SERIES:
            content = template.structure.get("type", ["ReDIF-Paper"])[0]
        self._writers["template"].append(
            (
                *(file.ordinal, template.offset, template.line, template.length, template.encoding),
                *(template.type, template.type_written, template.valid),
                *(template.handle, template.handle_written, template.md5, template.sha256),
                hashlib.md5(text, usedforsecurity=False).hexdigest(),
                hashlib.sha256(text).hexdigest(),
                *(self._segment.number, len(text), at, len(head), own, sets),
                *(parent.name, parent.restriction, parent.provider, content),
            )
        )
        self._templates += 1
        for block in file_blocks(template) if template.handle is not None else ():
            url = normalise(block.url)
            self._writers["refipo"].append(
                (
                    file.ordinal,
                    template.offset,
                    block.position,
                    block.url,
                    url.id,
                    *block[2:],
                    url.fault,
                )
            )
        for diagnostic in template.diagnostics:
            self._fault(file, diagnostic, template.offset)
        self._tell()

    def _fault(self, file: Spooled, diagnostic: Diagnostic, place: int | None) -> None:
        detail = (
            f"line {diagnostic.line:,}: {diagnostic.message}"
            if diagnostic.line
            else diagnostic.message
        )
        if diagnostic.suggestion:
            detail += f" (perhaps {diagnostic.suggestion})"
        self._writers["fault"].append((file.ordinal, place, diagnostic.code, detail, KEPT))

    def _tell(self, *, end: bool = False) -> None:
        read, templates = self._reported
        if end or self._templates - templates >= _REPORT_EVERY:
            self._advance(self._read - read, self._templates - templates)
            self._reported = (self._read, self._templates)
