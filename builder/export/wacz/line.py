"""Lines of CDXJ: sort key, date in 14 digits, and a JSON object in ASCII.

The fields and their spelling are those of cdxj-indexer and pywb, whose values are strings. Unknown
fields are omitted.
"""

import json
from dataclasses import dataclass

from builder.export.wacz.selection import Chosen
from functions.content.capture import CaptureRow

_REVISIT = "warc/revisit"
_LABEL = "sha1:"


@dataclass(frozen=True, slots=True)
class Lying:
    """Position of a record: file name, offset, length, and the digest of these bytes."""

    filename: str | None
    offset: int | None
    length: int | None
    digest: str | None = None


def of(capture: CaptureRow) -> Lying:
    """Return the position of a capture in the archive itself."""
    return Lying(capture.filename, capture.offset, capture.stored)


def line(one: Chosen, lying: Lying) -> bytes:
    """Return the line, with its newline, of a capture that has a date (Capture.stamp)."""
    capture = one.capture
    told = {
        "url": _url(one),
        "mime": _REVISIT if capture.is_revisit else capture.mime or capture.detected,
        "status": capture.status,
        "digest": label(capture.digest),
        "redirect": capture.redirect,
        "length": lying.length,
        "offset": lying.offset,
        "filename": lying.filename,
        "method": capture.method,
        "requestBody": capture.body,
        "recordDigest": lying.digest,
    }
    known = {name: str(value) for name, value in told.items() if value is not None}
    return f"{capture.surt} {capture.stamp} {json.dumps(known)}\n".encode("ascii")


def _url(one: Chosen) -> str:
    """Return the URL as archived if it is text, so that an ingest finds the same item."""
    try:
        return one.raw.decode() if one.raw else one.capture.url
    except UnicodeDecodeError:
        return one.capture.url


def label(digest: str | None) -> str | None:
    """Return a digest with its label, which snapshots omit for SHA-1."""
    return digest if digest is None or ":" in digest else _LABEL + digest
