"""The manifest of a dump: its selection of records, and its parts with their digests."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from builder.outputs.dumps.selection import DumpSelection
from functions.snapshot import instant
from functions.snapshot.dumps import SCHEMA, DumpPart
from functions.snapshot.seal import to_values

FILE = "manifest.json"
"""Its name beside the parts of an export."""


@dataclass(frozen=True, slots=True)
class DumpManifest:
    """A dump as of `snapshot`, with its parts in order; other members are those of `selection`.

    `kind` is the only kind of items in it, or None.
    """

    repository: str
    format: str
    compression: str
    selection: DumpSelection
    snapshot: int
    datestamp: datetime
    parts: Sequence[DumpPart]
    kind: str | None = None

    def to_json(self) -> bytes:
        """Return the document, the same for the same dump."""
        selection, manifest = self.selection, self.selection.manifest
        since = selection.since
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "repository": self.repository,
            "namespace": manifest.namespace,
            "store": manifest.store,
            "snapshot": self.snapshot,
            "datestamp": instant.to_text(self.datestamp),
            "since": since and since.snapshot,
            "from": since and instant.to_text(since.start),
            "set": selection.set,
            "kind": self.kind,
            "format": self.format,
            "compression": self.compression,
            "records": sum(part.records for part in self.parts),
            "deleted": sum(part.deleted for part in self.parts),
            "bytes": sum(part.bytes for part in self.parts),
            "parts": to_values(self.parts),
        }
        return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"
