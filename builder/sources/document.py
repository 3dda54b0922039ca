"""Documents: which records of an archive are published, by their HTTP status and media type."""

from builder.sources.event import DocumentRules
from functions.archive.message import HttpHead
from functions.archive.record import RecordHeader, skip_reason_by_type

REDIRECTS = frozenset({300, 301, 302, 303, 305, 307, 308})
"""HTTP statuses that lead elsewhere."""

SETTINGS = {"redirect": "redirects", "error": "errors"}
"""What `documents.include` names to publish what `refused` leaves out, by the reason."""


def refusal_reason(record: RecordHeader, status: int | None, rules: DocumentRules) -> str | None:
    """Return why a document is left out by its HTTP status, None if it is published.

    One that has no status, and is no revisit, is left out if its media type is that of no document.
    """
    if status is None:
        return None if record.type == "revisit" else skip_reason_by_type(record.mime)
    if 200 <= status < 300 or (status == 304 and record.type == "revisit"):
        return None
    if status in REDIRECTS:
        return None if rules.redirects else "redirect"
    return None if rules.errors else "error"


def http_status(record: RecordHeader, message: HttpHead | None) -> int | None:
    """Return a document's HTTP status: its message's, else that of an ARC version 2 header."""
    return message.status if message and message.status is not None else record.status
