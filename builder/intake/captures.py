"""Captures and faults: what the readers of sources yield."""

from dataclasses import dataclass
from datetime import datetime

_LOSSES = {
    "not-an-archive": "the file is neither an archive (ARC, WARC, WACZ) nor one of records",
    "unreadable": "the file cannot be opened, or cannot be read to its end",
    "empty-file": "the file has no bytes",
    "unsupported-compression": "the file's compression is not supported",
    "wacz-damaged": "the WACZ's zip structure cannot be read, in whole or in part",
    "wacz-member": "a file of the WACZ is missing, differs from its manifest, or is not read",
    "gzip-corrupt": "a gzip member cannot be inflated, or its checksum is wrong",
    "gzip-truncated": "the file ends inside a gzip member",
    "gzip-garbage": "there are other bytes where a gzip member should begin",
    "zstd-corrupt": "a zstd frame cannot be decoded, or its checksum is wrong",
    "zstd-truncated": "the file ends inside a zstd frame",
    "zstd-garbage": "there are other bytes where a zstd frame should begin",
    "zstd-window": "a zstd frame needs more memory than the limit",
    "zstd-dictionary-missing": "zstd frames need a dictionary that the file does not begin with",
    "garbage": "there are other bytes where a record should begin",
    "header-invalid": "a record's header has no end, or exceeds the limit",
    "length-invalid": "a record's length is missing, not a number, or wrong",
    "unknown-type": "a record's type is missing, or WARC does not define it",
    "no-target-uri": "a record of a document has no URL",
    "index-header-invalid": "the header of a CDX index lacks a field, or has an unknown one",
    "index-line-invalid": "a line of an index does not have the index's form",
    "harvest-unreadable": "a harvested record is not XML, or is nested too deep",
    "harvest-namespace": "harvested metadata is not one element in its format's namespace",
    "harvest-emptied": "a harvested record came without metadata, and without a deletion",
    "harvest-damaged": "a part of a harvest cannot be read",
    "bad-record": "a record of a file of records cannot be read",
    "record-no-identifier": "a record has no identifier at the paths of its table",
    "record-repeated": "a record has the identifier of one that came before",
}
_HARMLESS = {
    "wacz-empty": "the WACZ holds no ARC or WARC file in its archive folder",
    "gzip-not-per-record": "a record does not begin a gzip member, so it has no offset",
    "zstd-not-per-record": "a record does not begin a zstd frame, so it has no offset",
    "header-transposed": "the fields of an ARC header are in another order",
    "payload-short": "a record holds fewer bytes than it declares",
    "segmented-record": "a record is one segment of several (WARC 1.1, section 8)",
    "date-invalid": "a date cannot be read, does not exist, or is not from 1970 to 2099",
    "date-partial": "a date is not exact to the second",
    "date-junk": "other characters follow a date",
    "date-unix": "a date of an index counts the seconds since 1970",
    "date-zone": "a date has a time zone other than UTC, or none",
    "digest-mismatch": "the payload's digest differs from the declared one",
    "digest-unreadable": "a declared digest has an unknown form",
    "http-head-invalid": "an HTTP message's head exceeds the limit",
    "content-encoding-undecoded": "the payload cannot be decoded by its Content-Encoding",
    "index-no-header": "a CDX index has no header, and was read by the form of its first line",
    "index-value-invalid": "a value in an index is invalid for its field",
    "index-digest": "digests of an index are not SHA-1, which identifies its archive's items",
    "faults-cut": "an index has more faults of one code than can be listed",
    "repaired-record": "a record of a file of records has a wrong field, and was mended",
    "record-invalid": "a record is not valid by the schema of its format, and is served",
    "record-lacks": "a record lacks what one of its formats needs, and is not in it",
    "xml-illegal-character": "a text has characters that XML 1.0 forbids",
}
FAULT_CODES: dict[str, str] = _LOSSES | _HARMLESS
HARMLESS_CODES = frozenset(_HARMLESS)
"""Codes of faults that lose no capture: a file with only these faults may have no captures."""


@dataclass(slots=True, unsafe_hash=True)
class Capture:
    """A capture: schema.CAPTURE without schema.RESOLVED, its identity, its sets by domain and type.

    `fetch_time` is an aware UTC datetime. Texts hold no character that XML 1.0 forbids. Do not
    change it; a frozen class takes three times as long to construct.
    """

    identity: str
    url: str
    url_surtkey: str
    sets: tuple[str, ...] = ()
    url_bytes: bytes | None = None
    url_host_name: str | None = None
    url_host_registered_domain: str | None = None
    fetch_date: str | None = None
    fetch_time: datetime | None = None
    fetch_status: int | None = None
    fetch_method: str | None = None
    fetch_body: str | None = None
    fetch_redirect: str | None = None
    content_digest: str | None = None
    content_length: int | None = None
    content_mime_type: str | None = None
    content_mime_detected: str | None = None
    content_charset: str | None = None
    content_charset_source: str | None = None
    content_languages: str | None = None
    content_truncated: str | None = None
    content_damaged: str | None = None
    title: str | None = None
    refers_to_url: str | None = None
    refers_to_date: str | None = None
    warc_record_type: str = "response"
    warc_filename: str = ""
    warc_record_offset: int | None = None
    warc_record_length: int | None = None
    warc_request_offset: int | None = None
    content_digest_declared: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in the data: the columns of schema.FAULT. `code` is a key of FAULT_CODES."""

    source: str
    place: int | None
    code: str
    field: str | None = None
    detail: str = ""
    done: str = ""
