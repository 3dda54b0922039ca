"""A capture, as what looks for its bytes, lists it or restores it needs it."""

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
"""The columns of schema.CAPTURE that are read of it."""


@dataclass(frozen=True, slots=True)
class CaptureRow:
    """A listed capture: what schema.CAPTURE says of it under the same names, and its sets.

    `digest` is the SHA-1 of the payload as stored, base32, or `label:value`; `date` is W3CDTF, as
    exact as the file has it, and `time` the same in UTC where it is exact to the second. `original`
    is the identifier of a revisit's original, where it is known. `damaged` says what failed in the
    compressed member that holds the record. `method` is that of the request, None for GET or where
    it is not known; `body` is the query that stands for what it sent, and `request` the offset of
    its record.
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
        """Whether its payload is another capture's."""
        return self.type == "revisit"

    @property
    def stamp(self) -> str:
        """Its date in 14 digits, what is not known of it being the least; "" where nothing is."""
        digits = "".join(filter(str.isdigit, (self.date or "")[:19]))
        return digits + "00000101000000"[len(digits) :] if len(digits) >= 4 else ""

    def resolve(self) -> "CaptureRow":
        """Return a revisit with the media type of its original in place of its own; all else as is.

        A revisit of which the original's media type is not known stays as it is.
        """
        mime = self.mime or self.detected
        return replace(self, type="response", mime=mime) if self.is_revisit and mime else self

    @staticmethod
    def of(
        identifier: str, position: int, sets: tuple[str, ...], fields: Mapping[str, Any]
    ) -> "CaptureRow":
        """Return the capture of a record's fields, of which FIELDS have to be there."""
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
