"""Captures: the columns of a capture from a record's header, message and payload."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from builder.intake.captures import Capture, Fault
from builder.sources.webarchives import html
from builder.sources.webarchives import identity as instant
from builder.sources.webarchives.events import Ordinals
from builder.sources.webarchives.identity import parse_address, text
from builder.sources.webarchives.payload import Payload, detect_type, essence
from builder.sources.webarchives.rules import REDIRECTS, DocumentRules, http_status
from functions.archive import charset
from functions.archive.charset import Charset
from functions.archive.declared_digest import DeclaredDigest
from functions.archive.message import HttpHead, charset_of
from functions.archive.record import CUT, RecordBlock, RecordFault, RecordHeader
from functions.snapshot.oai_name import capture_identity

_XHTML = "application/xhtml+xml"
_HTML = frozenset({"text/html", _XHTML})
_TEXT = re.compile(r"text/.+|application/(?:.+\+)?xml|image/svg\+xml")
_XML = re.compile(r"(?:text|application)/xml|.+\+xml")
_CHARSET_WITHIN = 1000  # bytes of a Content-Type
_TOKEN = re.compile(r"[a-z][a-z0-9\-]{0,30}")


@dataclass(slots=True)
class DocumentRecord:
    """One document as read: header, HTTP head, payload and offset."""

    record: RecordHeader
    message: HttpHead | None
    payload: Payload | None
    declared: DeclaredDigest | None
    offset: int | None
    missing: int = 0
    """Declared bytes that the record does not hold."""


@dataclass(slots=True)
class CaptureDraft:
    """A capture without identity, which needs `url`, `second` and the damage of its bytes.

    `proven`: the payload has the `declared` digest. `short`: bytes of the record are missing.
    """

    capture: Capture
    url: bytes
    second: str | None
    declared: str | None
    proven: bool
    short: bool


@dataclass(slots=True)
class _PayloadFacts:
    declared: str | None = None
    detected: str | None = None
    charset: Charset | None = None
    languages: str | None = None
    title: str | None = None


def trim_to_next_record(
    swallowed: int, block: RecordBlock, document: DocumentRecord | None, faults: list[RecordFault]
) -> None:
    """Give back the bytes that a wrong length took of the next record."""
    missing = block.missing + swallowed
    faults[:] = [fault for fault in faults if fault[0] not in ("payload-short", "digest-mismatch")]
    detail = f"declared {block.length} bytes, found {block.length - missing}, then another record"
    done = "published as truncated, without digest" if document else "left out"
    faults.append(("payload-short", None, detail, done))
    if document is not None:
        document.missing = missing
        if document.payload:
            document.payload.length = max(document.payload.length - swallowed, 0)
            document.payload.digest = ""


class Captures:
    """Builds the captures of one file, with ordinals for equal ones."""

    def __init__(self, name: str, rules: DocumentRules) -> None:
        """`name` is the file's name without its folder."""
        self._name = name
        self._rules = rules
        self._ordinals = Ordinals()

    def build(
        self,
        document: DocumentRecord,
        length: int | None,
        faults: list[RecordFault],
        damage: str | None = None,
    ) -> Capture:
        """Return the capture of one document and add its faults to `faults`.

        `length` is that of the stored record, `damage` the fault of its gzip member.
        """
        draft = self.draft(document, length, faults)
        if damage:
            faults[:] = [(*fault[:3], action_if_damaged(fault[0], fault[3])) for fault in faults]
        return self.finish(draft, damage)

    def finish(self, draft: CaptureDraft, damage: str | None) -> Capture:
        """Return the capture of a draft once the damage of its gzip member is known.

        Damaged bytes are not hashed: the digest is the declared one, or missing.
        """
        capture = draft.capture
        if damage == CUT and draft.short:
            damage = None  # its bytes are sound, and it is marked as truncated
        if damage:
            capture.content_damaged = damage
            if not draft.proven:
                capture.content_digest = draft.declared
                capture.content_digest_declared = None
        # An index has no status of a revisit, and must give the same items.
        status = None if capture.warc_record_type == "revisit" else capture.fetch_status
        identity = capture_identity(draft.url, draft.second, status, capture.content_digest)
        ordinal = self._ordinals.next(identity)
        capture.identity = (
            capture_identity(draft.url, draft.second, status, capture.content_digest, ordinal)
            if ordinal
            else identity
        )
        return capture

    def draft(
        self, document: DocumentRecord, length: int | None, faults: list[RecordFault]
    ) -> CaptureDraft:
        """Return the capture of one document without its identity; see `build`."""
        record, payload = document.record, document.payload
        when, bad_date = (instant.parse_arc_date if record.is_arc else instant.parse_warc_date)(
            record.date
        )
        where = parse_address(record.url)
        host = where.host.name if where.host else None
        content, bad_title = _inspect_content(document, host, self._rules.titles)
        faults += [fault for fault in (bad_date, bad_title) if fault]
        status = http_status(record, document.message)
        location = (
            document.message and document.message.fields.get(b"location")
        ) or record.location
        redirect = text(location) or None if status in REDIRECTS else None
        declared = document.declared.text() if document.declared else None
        digest = (payload.digest or None) if payload else declared
        # Revisits may name the declared digest of an original. It differs where a crawler hashed
        # other bytes, such as the de-chunked ones.
        other_digest = declared if payload and declared != digest else None
        refers_to, refers_to_date = _reference(record)
        capture = Capture(
            identity="",
            url=where.url,
            url_surtkey=where.surt,
            sets=self._rules.sets(where, content.declared or content.detected, content.languages),
            url_bytes=where.raw,
            url_host_name=host,
            url_host_registered_domain=where.host.registered if where.host else None,
            fetch_date=when.text,
            fetch_time=when.time,
            fetch_status=status,
            fetch_redirect=redirect,
            content_digest=digest,
            content_length=payload.length if payload else 0,
            content_mime_type=content.declared,
            content_mime_detected=content.detected,
            content_charset=content.charset.name if content.charset else None,
            content_charset_source=content.charset.source if content.charset else None,
            content_languages=content.languages,
            content_truncated=_truncation(document),
            title=content.title,
            refers_to_url=text(refers_to.strip(b"<>")) or None if refers_to else None,
            refers_to_date=refers_to_date,
            warc_record_type=record.type,
            warc_filename=self._name,
            warc_record_offset=document.offset,
            warc_record_length=length,
            content_digest_declared=other_digest,
        )
        proven = payload is not None and payload.matches_declared
        return CaptureDraft(
            capture, record.url, when.second, declared, proven, document.missing > 0
        )

    def faults(self, place: int | None, faults: list[RecordFault]) -> Iterator[Fault]:
        """Return a record's faults as faults of this file at the offset `place`."""
        for code, field, detail, done in faults:
            yield Fault(self._name, place, code, field, detail, done)


def action_if_damaged(code: str, done: str) -> str:
    """Return the action taken for a fault of a record in a damaged gzip member."""
    return "published with the declared one" if code == "digest-mismatch" else done


@lru_cache(maxsize=1 << 10)
def _declared_charset(content_type: bytes) -> str | None:
    return charset.whatwg_name(charset_of(content_type))


def _truncation(document: DocumentRecord) -> str | None:
    """Return why the payload is incomplete (ISO 28500, 5.13)."""
    declared = document.record.fields.get(b"warc-truncated")
    if declared and _TOKEN.fullmatch(reason := declared.decode("latin-1").lower()):
        return reason
    cut = document.missing or b"warc-segment-number" in document.record.fields
    return "unspecified" if cut else None


def _reference(record: RecordHeader) -> tuple[bytes | None, str | None]:
    """Return the URL that a revisit refers to, and the date, or else the record's id (6.3, 6.7).

    That of an original is its own id, by which a publish finds it (see
    builder.kinds.captures.references).
    """
    fields = record.fields
    if record.type != "revisit":
        return None, _record_id(fields.get(b"warc-record-id"))
    url = fields.get(b"warc-refers-to-target-uri")
    date = instant.parse_refers_to(fields.get(b"warc-refers-to-date", b""))
    if date or fields.get(b"warc-profile", b"").endswith(b"/server-not-modified"):
        url = url or record.url  # neither needs to repeat its own URL
    return url, date or _record_id(fields.get(b"warc-refers-to"))


def _record_id(name: bytes | None) -> str | None:
    return f"<{text(name.strip(b'<>'))}" if name else None


def _inspect_content(
    document: DocumentRecord, host: str | None, titles: bool
) -> tuple[_PayloadFacts, RecordFault | None]:
    """Return the facts in a payload's first bytes and header fields, and a fault."""
    fields = document.message.fields if document.message else {}
    head = document.payload.head if document.payload else b""
    declared = essence(fields.get(b"content-type", b""))
    if declared is None and (document.record.is_arc or document.record.type == "resource"):
        declared = essence(document.record.mime)
    content = _PayloadFacts(declared, detect_type(head))
    shown = content.detected
    kind = content.declared if shown in (None, "text/plain") else shown
    is_html = kind in _HTML
    is_text = is_html or (kind is not None and _TEXT.fullmatch(kind) is not None)
    if is_text or shown in (None, "text/plain"):
        named = _declared_charset(fields.get(b"content-type", b"")[:_CHARSET_WITHIN])
        marked = charset.detect_bom(head) if is_text or shown else None
        if marked:
            content.charset = Charset(marked, "marked")
        elif named is None and titles and head and is_html:
            content.charset = charset.html_charset(head, host)
        elif named is None and titles and kind is not None and _XML.fullmatch(kind):
            named = charset.xml_declaration(head)
        if named and not marked:
            content.charset = Charset(named, "declared")
    fault: RecordFault | None = None
    language: str | None = None
    if titles and is_html and content.charset and head:
        is_xml = (content.declared or shown) == _XHTML
        content.title, language, illegal = html.title_and_language(
            head, content.charset.name, is_xml=is_xml
        )
        if illegal:
            fault = ("xml-illegal-character", "title", "", "removed")
    header = fields.get(b"content-language")
    if language or header:
        in_header = header.decode("latin-1") if header else None
        content.languages = html.languages(language) or html.languages(in_header)
    return content, fault
