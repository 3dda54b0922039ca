"""What a source yields: captures, records that were left out, and faults."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from builder.sources.set_rule import SetRule


@dataclass(slots=True, unsafe_hash=True)
class Capture:
    """A capture: schema.CAPTURE less schema.RESOLVED, its identity, its sets by domain and type.

    `fetch_time` is an aware UTC datetime. Texts hold no character that XML 1.0 forbids. It is
    never changed; it is not frozen because that makes it three times as slow to make.
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


class Skipped(NamedTuple):
    """A record that is not published: `reason` is a record type, or the rule that left it out.

    Its place is given as a capture's is.
    """

    reason: str
    offset: int | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in the data: the columns of schema.FAULT. `code` is a key of fault.FAULT_CODES."""

    source: str
    place: int | None
    code: str
    field: str | None = None
    detail: str = ""
    done: str = ""


@dataclass(frozen=True, slots=True)
class Crawl:
    """What an archive file says of the crawl that made it; None where it says nothing.

    Texts hold no character that XML 1.0 forbids.
    """

    software: str | None = None
    operator: str | None = None
    part_of: str | None = None
    description: str | None = None

    def fill_from(self, more: "Crawl") -> "Crawl":
        """Return this with what it lacks from another: a file of several is that of its first."""
        return Crawl(
            self.software or more.software,
            self.operator or more.operator,
            self.part_of or more.part_of,
            self.description or more.description,
        )


@dataclass(frozen=True, slots=True)
class Edge:
    """Where a range of a file begins or ends: at the record at `offset`, None for the file's end.

    `version` is the one that the ARC records from there on were announced as. Two ranges leave
    nothing out and read nothing twice if the one ends at an edge equal to the other's beginning.
    Where it is `open`, a request near it has no document on this side of it.
    """

    offset: int | None
    version: int
    open: bool = False


Event = Capture | Skipped | Fault | Crawl


@dataclass(frozen=True, slots=True)
class DocumentRules:
    """What of an archive is published, in which sets, and what a reader may spend on one record.

    `collections` are the sets of the collections that all of it belongs to.
    """

    redirects: bool = False
    errors: bool = False
    titles: bool = True
    """Whether pages are read for their title, language and encoding, which takes the most time."""
    domain_sets: bool = True
    mime_sets: bool = True
    set_rules: tuple[SetRule, ...] = ()
    collections: tuple[str, ...] = ()
    head_bytes: int = field(default=1 << 18)
    """Bytes of a payload, before and after decoding, that are looked at for type and title."""


Events = Iterator[Event]
