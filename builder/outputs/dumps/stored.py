"""Dumps in a store: writes their parts and manifests.

A part is named by the snapshot that it was read from and by its content, so it never changes.
"""

import hashlib
import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from builder.outputs.dumps.keys import pack_keys
from builder.outputs.dumps.manifest import DumpManifest
from builder.outputs.dumps.parts import PartLimits, WrittenPart, write_parts
from builder.outputs.dumps.selection import DumpSelection, Since, read_pages
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import dumps, seal
from functions.snapshot.dumps import (
    DumpPart,
    FormatDumps,
    FormatEntry,
    StoredDump,
)
from functions.snapshot.errors import Conflict
from functions.snapshot.manifest import Manifest, Span
from functions.snapshot.store import Writer

if TYPE_CHECKING:  # it loads the renderer
    from builder.outputs.dumps.formats import DumpFormats

COMPRESSION = "zstd"
LIMITS = PartLimits()
DIGITS = 16
"""Digits of a digest in a name."""


@dataclass(frozen=True, slots=True)
class DumpWriter:
    """Writes the records of one snapshot; `folder` is for local files, which are removed."""

    store: Writer
    repository: DuckRepository
    formats: "DumpFormats"
    manifest: Manifest
    folder: Path
    repository_name: str
    advance: Callable[[int], object]

    def write(self, name: str, span: Span, *, complete: bool) -> tuple[DumpPart, ...]:
        """Write the records at positions of `span` in a format. Raises StoreError."""
        since = None if complete else Since(self._find_start(span.first))
        selection = DumpSelection(self.manifest, self.formats.kinds(name), span, since=since)
        format_ = self.formats.open(name, selection)
        pages = read_pages(self.repository, selection, format_.fields)
        written = write_parts(
            pages, format_, self.folder, COMPRESSION, LIMITS, self.advance, keyed=True
        )
        return tuple(self._keep(name, part) for part in written)

    def describe(
        self,
        name: str,
        parts: Sequence[DumpPart],
        snapshot: int,
        datestamp: datetime,
        since: int | None,
    ) -> StoredDump:
        """Return the dump with these parts; if there are several, write its manifest."""
        first, last = (parts[0].positions[0], parts[-1].positions[1]) if parts else (1, 0)
        named, digest = (parts[0].name, parts[0].sha256) if parts else ("", "")
        if len(parts) > 1:
            selection = DumpSelection(
                self.manifest,
                self.formats.kinds(name),
                Span(first, last),
                since=None if since is None else Since(self._find_start(first), since),
            )
            document = DumpManifest(
                self.repository_name, name, COMPRESSION, selection, snapshot, datestamp, parts
            )
            named, digest = self._put(name, snapshot, document.to_json())
        return StoredDump(
            since=since,
            snapshot=snapshot,
            records=sum(part.records for part in parts),
            deleted=sum(part.deleted for part in parts),
            bytes=sum(part.bytes for part in parts),
            name=named,
            sha256=digest,
            datestamp=datestamp,
            positions=(first, last),
        )

    def list(self, name: str, stored: FormatDumps) -> FormatEntry:
        """Write the list of a format, and return what the index has of it."""
        named, _ = self._put(name, self.manifest.snapshot, stored.to_json())
        newest = stored.differences[-1].entry if stored.differences else None
        return FormatEntry(complete=stored.complete.entry, newest=newest, list=named)

    def _put(self, name: str, snapshot: int, data: bytes) -> tuple[str, str]:
        """Write a document, and return its name and SHA-256."""
        digest = hashlib.sha256(data).hexdigest()
        named = f"{name}/{snapshot}-{digest[:DIGITS]}{dumps.MANIFEST}"
        self.store.put(dumps.FOLDER + named, io.BytesIO(data))
        return named, digest

    def _find_start(self, position: int) -> datetime:
        """Return the datestamp of a position."""
        instants = (s.effective for s in self.manifest.sequences if s.last >= position)
        return next(instants, self.manifest.effective)

    def _keep(self, name: str, written: WrittenPart) -> DumpPart:
        part, path = written.part, written.path
        file = f"{name}/{self.manifest.snapshot}-{part.sha256[:DIGITS]}{''.join(path.suffixes)}"
        key = dumps.FOLDER + file
        with suppress(Conflict):  # written by an interrupted publish
            self.store.create_file(key, path)
        self.store.put(key + dumps.KEYS, io.BytesIO(pack_keys(written.keys)))
        path.unlink()
        return seal.replace(part, name=file)
