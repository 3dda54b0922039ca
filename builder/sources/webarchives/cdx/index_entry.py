"""An entry of an index: the values of one line, and its capture.

An index and its archive must give the same items. So SURT, host, sets and digest are computed by
the functions that read archives, and not copied from the index. The length of the payload, its
detected type, its title and its language are left to the archive. Common Crawl's `mime-detected`,
`charset` and `languages` are ignored, since they follow other rules.

URLs are taken byte for byte. Where an index has an escaped space, its archive may have a space or
the escape. Escapes are far more frequent, so they stay, as do bytes beyond ASCII.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime

from builder.intake.captures import Capture
from builder.sources.webarchives import identity, payload
from builder.sources.webarchives.events import Skipped
from builder.sources.webarchives.identity import Instant
from builder.sources.webarchives.rules import DocumentRules, refusal_reason
from builder.sources.webarchives.side_records import MAX_QUERY, METHOD, escape_illegal
from functions.archive import declared_digest
from functions.archive.record import RecordFault, RecordHeader, show, skip_reason
from functions.snapshot import surt
from functions.snapshot.oai_name import capture_identity

SHA1 = 32
"""Characters of a SHA-1 in base32; no other digest that is stored has as many."""

_KINDS = {
    # media type in an index: the record's type; others are responses
    b"warc/revisit": "revisit",
    b"warc/request": "request",
    b"warc/metadata": "metadata",
    b"warc/warcinfo": "warcinfo",
    b"warc-info": "warcinfo",
    b"warc/filedesc": "filedesc",
    b"warc/conversion": "conversion",
    b"warc/continuation": "continuation",
}
_DATE = re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{1,3})")
_UNIX = re.compile(rb"[1-3]\d{9}")
_STATUS = re.compile(rb"\d{3}")
_NUMBER = re.compile(rb"\d{1,18}")
_TOKEN = re.compile(rb"[a-z][a-z0-9\-]{0,30}")
_MD5 = re.compile(rb"[0-9a-f]{32}")
_FTP_REPLIES = frozenset({b"150", b"226", b"250"})
"""Replies of FTP servers (RFC 959) that some indexes give as the status."""
_METHOD = surt.METHOD.encode("ascii") + b"="
_POST_DATA = (b"__wb_post_data=", b"__warc_post_data=")
"""Arguments that hold the body of a POST; older indexes name no method beside them."""
_METHOD_ARGUMENT = re.compile(rb"[?&](?:%b)" % b"|".join((_METHOD, *_POST_DATA)))
_METHOD_NAME = re.compile(METHOD)
_UNLABELLED = {32: b"sha1:", 40: b"sha1:", 64: b"sha256:", 128: b"sha512:"}
_NOTHING = frozenset(
    declared_digest.DeclaredDigest(name, hashlib.new(name, usedforsecurity=False).digest()).text()
    for name in ("md5", "sha1", "sha256", "sha512")
)
"""Digests of empty payloads."""
_ALL_BUT_REDIRECTS = DocumentRules(errors=True)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """The values of an index line for one record, as bytes; empty if absent."""

    url: bytes = b""
    date: bytes = b""
    mime: bytes = b""
    status: bytes = b""
    digest: bytes = b""
    redirect: bytes = b""
    length: bytes = b""
    offset: bytes = b""
    filename: bytes = b""
    truncated: bytes = b""
    method: bytes = b""
    body: bytes = b""
    key: bytes = b""
    """The sort key; it has the method if the line has no field for it."""
    kind: bytes = b""
    """The record's type, in the form that has one."""
    refers_to: bytes = b""
    refers_date: bytes = b""


def build_capture(
    entry: IndexEntry, rules: DocumentRules
) -> tuple[Capture | Skipped, list[RecordFault]]:
    """Return the capture of an entry, or why it is skipped, and its faults.

    Its ordinal is 0: only the whole index shows which captures of a file are equal.
    """
    if not entry.url:
        return Skipped("no-target-uri"), [("no-target-uri", None, "", "left out")]
    faults: list[RecordFault] = []
    kind = record_type(entry.mime, entry.kind)
    if entry.url[:9].lower() == b"warcinfo:":
        kind = "warcinfo"
    record = RecordHeader(kind, entry.url, entry.date, None, mime=entry.mime)
    is_ftp = entry.url[:4].lower() == b"ftp:" and entry.status in _FTP_REPLIES
    status = None if is_ftp else _parse_status(entry.status, faults)
    reason = skip_reason(record) or refusal_reason(record, status, rules)
    # cdxj-indexer lists requests among all other records, with the digest of an empty body.
    is_bare = not (entry.mime or entry.status or entry.kind) and kind == "response"
    if reason is None and is_bare and parse_digest(entry.digest, []) in _NOTHING:
        reason = "request"
    if reason:
        return Skipped(reason), []
    when, fault = _parse_date(entry.date)
    faults += [fault] if fault else []
    where = identity.parse_address(entry.url)
    media_type = payload.essence(entry.mime) if kind != "revisit" else None
    digest = parse_digest(entry.digest, faults)
    is_redirect = refusal_reason(record, status, _ALL_BUT_REDIRECTS) == "redirect"
    truncated = entry.truncated.lower()
    method, body, key = _parse_request(entry, where.surt, faults)
    capture = Capture(
        identity=capture_identity(
            entry.url, when.second, None if kind == "revisit" else status, digest
        ),
        url=where.url,
        url_surtkey=key,
        sets=rules.sets(where, media_type, None),
        url_bytes=where.raw,
        url_host_name=where.host.name if where.host else None,
        url_host_registered_domain=where.host.registered if where.host else None,
        fetch_date=when.text,
        fetch_time=when.time,
        fetch_status=status,
        fetch_method=method,
        fetch_body=body,
        fetch_redirect=(identity.text(entry.redirect) or None) if is_redirect else None,
        content_digest=digest,
        content_mime_type=media_type,
        content_truncated=truncated.decode() if _TOKEN.fullmatch(truncated) else None,
        refers_to_url=(identity.text(entry.refers_to) or None) if kind == "revisit" else None,
        refers_to_date=identity.parse_refers_to(entry.refers_date) if kind == "revisit" else None,
        warc_record_type=kind,
        warc_filename=filename(entry.filename),
        warc_record_offset=_parse_number(entry.offset, "offset", faults),
        warc_record_length=_parse_number(entry.length, "length", faults),
    )
    return capture, faults


def _parse_request(
    entry: IndexEntry, own: str, faults: list[RecordFault]
) -> tuple[str | None, str | None, str]:
    """Return method and query of the request, None for a GET, and the SURT with both.

    `own` is the SURT of the URL. If the line has no fields for them, the sort key has the method
    and the query, but changed.
    """
    method, body, added = entry.method, entry.body, entry.body
    if not method and _METHOD_ARGUMENT.search(entry.key):
        before = Counter(own.partition("?")[2].encode("ascii").split(b"&"))
        more = (Counter(entry.key.partition(b"?")[2].split(b"&")) - before).elements()
        arguments = [argument for argument in more if argument]
        named = [argument for argument in arguments if argument.startswith(_METHOD)]
        method = named[0].removeprefix(_METHOD) if named else b""
        if not named and any(argument.startswith(_POST_DATA) for argument in arguments):
            method = b"POST"
        added = b"&".join(argument for argument in arguments if argument not in named)
    if not method or method.upper() == b"GET":
        return None, None, own
    if not _METHOD_NAME.fullmatch(method):
        faults.append(("index-value-invalid", "method", show(method), "published without it"))
        return None, None, own
    name = method.decode("ascii").upper()
    text, more_text = (
        escape_illegal(query.decode("utf-8", "replace")[:MAX_QUERY]) for query in (body, added)
    )
    return name, text or None, surt.of_request(entry.url, name, more_text)


def record_type(media_type: bytes, value: bytes = b"") -> str:
    """Return a record's type, by its name or its media type in an index."""
    if value:
        text = value.decode("ascii", "replace").lower()
        return text if text.isalpha() else "unknown-type"
    return _KINDS.get(media_type.lower(), "response")


def filename(path: bytes) -> str:
    """Return an archive file's name without its folder, as text that is legal in XML."""
    name = re.split(rb"[/\\]", path)[-1].decode("utf-8", "replace")
    return name if name.isprintable() else "".join(c if c.isprintable() else "?" for c in name)


def parse_digest(value: bytes, faults: list[RecordFault]) -> str | None:
    """Return a digest in the form of archives; it may have any label, case and alphabet."""
    if not value:
        return None
    bare = b":" not in value and b"=" not in value.rstrip(b"=")
    label = b"md5:" if bare and _MD5.fullmatch(value) else _UNLABELLED.get(len(value), b"")
    declared = declared_digest.parse_digest(label + value if bare else value)
    if declared is None:
        faults.append(("digest-unreadable", "digest", show(value), "published without it"))
        return None
    return declared.text()


def _parse_date(date: bytes) -> tuple[Instant, RecordFault | None]:
    exact = _DATE.fullmatch(date)
    if exact:
        text = b"%s-%s-%sT%s:%s:%s.%sZ" % exact.groups()
        when, fault = identity.parse_warc_date(text)
        return when, fault and (fault[0], "date", show(date), fault[3])
    when, fault = identity.parse_warc_date(date) if b"-" in date else identity.parse_arc_date(date)
    if when is identity.NO_DATE and _UNIX.fullmatch(date):  # as wpull writes it
        moment = datetime.fromtimestamp(int(date), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        when, _ = identity.parse_warc_date(moment.encode("ascii"))
        return when, ("date-unix", "date", show(date), f"taken as {moment}")
    return when, fault and (fault[0], "date", *fault[2:])


def _parse_status(value: bytes, faults: list[RecordFault]) -> int | None:
    if _STATUS.fullmatch(value):
        return int(value) or None
    if value not in (b"", b"0"):
        faults.append(("index-value-invalid", "status", show(value), "published without it"))
    return None


def _parse_number(value: bytes, field: str, faults: list[RecordFault]) -> int | None:
    if _NUMBER.fullmatch(value):
        return int(value)
    if value:
        faults.append(("index-value-invalid", field, show(value), "published without it"))
    return None
