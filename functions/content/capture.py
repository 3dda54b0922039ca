"""A capture's row, as delivery, listings and restores need it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

FIELDS = (
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
    "refers_to_url",
    "refers_to_date",
    "refers_to",
    "warc_record_type",
    "warc_filename",
    "warc_record_offset",
    "warc_record_length",
    "warc_request_offset",
)
"""The columns of schema.CAPTURE that a row reads."""


@dataclass(frozen=True, slots=True)
class CaptureRow:
    """A listed capture: its values from schema.CAPTURE under similar names, and its sets.

    `digest` is the SHA-1 of the payload as stored, base32, or `label:value`. `date` is W3CDTF, as
    exact as in the file. `time` is the same in UTC, if it is exact to the second. `original` is the
    identifier of a revisit's original, if known. `damaged` names the fault in the record's
    compressed member. `method` is the request's method, None for GET or if unknown. `body` is the
    query that stands for the request's body, and `request` the offset of the request's record.
    """

    identifier: str
    position: int
    sets: tuple[str, ...]
    url: str
    surt: str
    date: str | None
    time: datetime | None
    status: int | None
    method: str | None
    body: str | None
    redirect: str | None
    digest: str | None
    length: int | None
    mime: str | None
    detected: str | None
    truncated: str | None
    damaged: str | None
    type: str
    original: str | None
    filename: str | None
    offset: int | None
    stored: int | None
    request: int | None

    @property
    def is_revisit(self) -> bool:
        """True if its payload is in another capture."""
        return self.type == "revisit"

    @property
    def stamp(self) -> str:
        """Its date in 14 digits, missing parts at their minimum; "" if the date is unknown."""
        digits = "".join(filter(str.isdigit, (self.date or "")[:19]))
        return digits + "00000101000000"[len(digits) :] if len(digits) >= 4 else ""

    def resolve(self) -> "CaptureRow":
        """Return a revisit as a response with the media type of its original; others unchanged.

        A revisit also stays unchanged if that media type is unknown.
        """
        mime = self.mime or self.detected
        return replace(self, type="response", mime=mime) if self.is_revisit and mime else self

    @staticmethod
    def of(
        identifier: str, position: int, sets: tuple[str, ...], fields: Mapping[str, Any]
    ) -> "CaptureRow":
        """Return the capture from a record's fields, which must include FIELDS."""
        return CaptureRow(
            identifier=identifier,
            position=position,
            sets=sets,
            url=fields["url"],
            surt=fields["url_surtkey"] or "",
            date=fields["fetch_date"],
            time=fields["fetch_time"],
            status=fields["fetch_status"],
            method=fields["fetch_method"],
            body=fields["fetch_body"],
            redirect=fields["fetch_redirect"],
            digest=fields["content_digest"],
            length=fields["content_length"],
            mime=fields["content_mime_type"],
            detected=fields["content_mime_detected"],
            truncated=fields["content_truncated"],
            damaged=fields["content_damaged"],
            type=fields["warc_record_type"],
            original=fields["refers_to"],
            filename=fields["warc_filename"],
            offset=fields["warc_record_offset"],
            stored=fields["warc_record_length"],
            request=fields["warc_request_offset"],
        )
