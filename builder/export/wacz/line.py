"""A line of CDXJ: sort key, date in 14 digits, and what there is to tell as JSON in ASCII.

The fields and their spelling are those of cdxj-indexer and pywb, whose values are texts: a field of
which nothing is known is not there.
"""

import json
from dataclasses import dataclass

from builder.export.wacz.selection import Chosen
from functions.content.capture import CaptureRow

_REVISIT = "warc/revisit"
_LABEL = "sha1:"


@dataclass(frozen=True, slots=True)
class Lying:
    """Where a record lies: the file's name, the first byte, how many, and the bytes' digest."""

    filename: str | None
    offset: int | None
    length: int | None
    digest: str | None = None


def of(capture: CaptureRow) -> Lying:
    """Return where a capture lies in the archive itself."""
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
    """Return a URL as archived, so that an ingest finds the same item, if it is text."""
    try:
        return one.raw.decode() if one.raw else one.capture.url
    except UnicodeDecodeError:
        return one.capture.url


def label(digest: str | None) -> str | None:
    """Return a digest with its label, which that of a SHA-1 has not in a snapshot."""
    return digest if digest is None or ":" in digest else _LABEL + digest
