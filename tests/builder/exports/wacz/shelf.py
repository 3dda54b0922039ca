"""Archive files in memory, and the captures that an ingest finds in them."""

import io
from collections.abc import Sequence
from typing import BinaryIO

from builder.intake.captures import Capture
from functions.content.capture_row import FIELDS, CaptureRow
from functions.content.protocols import ContentError
from tests.builder.sources.webarchives.containers import captures


class Shelf:
    """Implements functions.content.protocols.Archives over bytes by name."""

    def __init__(self, **files: bytes) -> None:
        self.files = {name.replace("_", "."): data for name, data in files.items()}

    def candidates(self, filename: str) -> Sequence[str]:
        return [f"nowhere/{filename}", filename]

    def open(self, address: str, offset: int, length: int | None) -> BinaryIO:
        if address not in self.files:
            raise ContentError("not-at-hand", f"{address} is not there")
        data = self.files[address]
        return io.BytesIO(data[offset : len(data) if length is None else offset + length])

    def captures(self, name: str) -> list[CaptureRow]:
        """Return the captures of a file."""
        return [listed(found) for found in captures(self.files[name], name=name)]


def listed(capture: Capture) -> CaptureRow:
    """Return a capture as a snapshot lists it."""
    fields = {name: getattr(capture, name, None) for name in FIELDS}
    return CaptureRow.of(f"oai:b.cz:{capture.identity}", 1, capture.sets, fields)
