"""Archive files in memory, and the captures that an ingest finds in them."""

import io
from collections.abc import Sequence
from typing import BinaryIO

from builder.sources.webarchives import events
from functions.content.capture_row import CaptureRow
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


def listed(found: events.Capture) -> CaptureRow:
    """Return a capture as a snapshot lists it."""
    fields = {
        name: getattr(found, name, None)
        for name in (
            "url",
            "url_surtkey",
            "fetch_date",
            "fetch_time",
            "fetch_status",
            "fetch_method",
            "fetch_body",
            "fetch_redirect",
            "content_digest",
            "content_length",
            "content_mime_type",
            "content_mime_detected",
            "content_truncated",
            "content_damaged",
            "refers_to",
            "warc_record_type",
            "warc_filename",
            "warc_record_offset",
            "warc_record_length",
            "warc_request_offset",
        )
    }
    return CaptureRow.of(f"oai:b.cz:{found.identity}", 1, found.sets, fields)
