"""The kind of captures: what was archived of a URL at a time."""

import re

from functions.kinds.kind import CitedWork, Fields, ItemKind, source_url
from functions.snapshot import schema

WARC = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
"""The namespace for the source format of a capture's metadata."""

_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:(T[0-9]{2}:[0-9]{2}:[0-9]{2})?.*Z)?")


def find_origin(fields: Fields, place: str) -> tuple[str, str] | None:
    """Return the position of a capture in an archive file below `place`, and its date."""
    name, offset = fields["warc_filename"], fields["warc_record_offset"]
    match = _DATE.fullmatch(fields["fetch_date"] or "")
    if not name or offset is None or match is None:  # also a date that is not exact to the day
        return None
    day, second = match.groups()
    return f"{source_url(place, name)}#{offset}", f"{day}{second}Z" if second else day


CAPTURE = ItemKind(
    "capture",
    schema.CAPTURE,
    is_documented=False,
    is_capture=True,
    has_bytes=lambda fields: True,
    source="warc_filename",
    origin_key="provenance.origin",
    origin_namespace=WARC,
    origin_columns=("warc_filename", "warc_record_offset", "fetch_date"),
    origin=find_origin,
    view="captures",
    table="captures",
    in_sitemap=False,
    type="WebPage",
    work=lambda fields: CitedWork(
        date=fields.get("fetch_date") or "",
        type=fields.get("content_mime_type") or fields.get("content_mime_detected") or "",
        language=(fields.get("content_languages") or "").partition(",")[0],
        url=fields.get("url") or "",
    ),
    carded=frozenset({"title", "fetch_date", "url"}),
)
