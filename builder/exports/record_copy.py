"""Copies a capture's record out of its archive file, as a gzip member of its own.

A WARC record that is a gzip member of its own is copied unchanged. Other records are compressed
again: those of plain files or zstd, and those that share a member. An ARC record becomes a WARC
record. The result is read as an ingest would read it, and must be the requested capture.
"""

import os
import re
import tempfile
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from builder.intake.captures import Capture, Fault
from builder.sources.webarchives import events, side_records
from builder.sources.webarchives import identity as instant
from builder.sources.webarchives.recognise import read_head, recognise
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.webarchive import ArchiveReader
from functions.archive import record_header, record_reader
from functions.archive.message import read_message
from functions.archive.record import CUT, BufferedBlock, RecordBlock, RecordHeader
from functions.archive.stream import ARC_LINE, HEAD, RecordStream
from functions.content.archived_payload import read_dictionary, worst_error
from functions.content.capture_row import CaptureRow
from functions.content.protocols import Archives, ContentError
from functions.snapshot import authority

HELD = 8 << 20
"""Bytes of a record that are kept in memory; larger records are kept on disk."""

END = b"\r\n\r\n"
"""The end of a record, after its block."""

_LARGEST_REQUEST = 2 << 20
"""Bytes that are read for a request, whose length is unknown."""
_HEADER_END = re.compile(rb"\n\r?\n")
_ADDRESS = re.compile(rb"[0-9.]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*")
_STATUS_LINE = 64
_STEP = 1 << 18
_ALL = DocumentRules(redirects=True, errors=True, titles=False, domain_sets=False, mime_sets=False)
_GZIP = 31
_SECOND = len("2026-11-22T10:00:00")


@contextmanager
def cut(archives: Archives, capture: CaptureRow, scratch: Path) -> Iterator[BinaryIO]:
    """Open the gzip member with the record of a capture, at its beginning.

    `scratch` is a folder for large records. The candidate files are tried in turn. Raises
    ContentError (unplaced, not-at-hand, undecodable, or damaged if a file holds another record
    there), StoreError, and OSError for a full disk.
    """
    if capture.damaged:
        detail = f"its compressed member is damaged ({capture.damaged})"
        raise ContentError("damaged", f"{_name(capture)}: {detail}")
    if capture.offset is None or not capture.filename:
        raise ContentError("unplaced", f"{_name(capture)} has no offset of its own in a file")
    failures: list[ContentError] = []
    for address in archives.candidates(capture.filename):
        with _spool(scratch) as raw, _spool(scratch) as packed:
            try:
                member = _member(archives, address, capture, raw, packed)
            except ContentError as error:
                failures.append(error)
                continue
            member.seek(0)
            yield member
            return
    raise worst_error(failures, capture)


@contextmanager
def cut_request(
    archives: Archives, capture: CaptureRow, scratch: Path
) -> Iterator[BinaryIO | None]:
    """Open the gzip member with the request of a capture; None if it is not found.

    An index has no position of requests, and a request may exceed the limit. Raises StoreError,
    OSError.
    """
    if capture.request is None or not capture.filename:
        yield None
        return
    for address in archives.candidates(capture.filename):
        with _spool(scratch) as packed:
            if _copy_request(archives, address, capture, packed):
                packed.seek(0)
                yield packed
                return
    yield None


def _copy_request(archives: Archives, address: str, capture: CaptureRow, packed: BinaryIO) -> bool:
    """Write the gzip member of a capture's request; return False unless exactly it is there."""
    try:
        with archives.open(address, capture.request or 0, _LARGEST_REQUEST) as stream:
            tape, _ = record_reader.open_record(stream, lambda: read_dictionary(archives, address))
            for piece in _of_warc(tape):
                packed.write(piece)
    except (ContentError, record_reader.NoDocumentError, record_reader.UnreadableRecordError):
        return False
    packed.seek(0)
    tape, _ = record_reader.open_record(packed)
    record, _ = record_header.read_warc(tape)
    if record is None or record.type != "request" or authority.text(record.url) != capture.url:
        return False
    block = RecordBlock(tape, record.length or 0)
    request = side_records.read_request(block, None)
    block.drain()
    return request is not None and request.method == capture.method and not block.missing


def member(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the gzip member of a record: its header with the empty line, its block, and END."""
    packer = zlib.compressobj(wbits=_GZIP)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def header(fields: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the header of a record of WARC/1.1, with the empty line (ISO 28500, section 4)."""
    lines = b"".join(b"%b: %b\r\n" % (name.encode("ascii"), value) for name, value in fields)
    return b"WARC/1.1\r\n" + lines + b"\r\n"


def name(*of: object) -> bytes:
    """Return the id of a record, which depends only on the arguments."""
    identifier = uuid.uuid5(uuid.NAMESPACE_URL, " ".join(map(str, of)))
    return f"<urn:uuid:{identifier}>".encode("ascii")


def _spool(scratch: Path) -> BinaryIO:
    return cast(BinaryIO, tempfile.SpooledTemporaryFile(HELD, dir=os.fspath(scratch)))


def _name(capture: CaptureRow) -> str:
    return f"{capture.identifier} ({capture.url})"


def _member(
    archives: Archives, address: str, capture: CaptureRow, raw: BinaryIO, packed: BinaryIO
) -> BinaryIO:
    """Return the stream with the member: `raw` for an unchanged copy, or `packed` for a new one."""
    with archives.open(address, capture.offset or 0, capture.stored) as stream:
        while piece := stream.read(_STEP):
            raw.write(piece)
    if _is_alone(raw, capture):
        return raw
    of_warc = False
    raw.seek(0)
    try:
        tape, _ = record_reader.open_record(raw, lambda: read_dictionary(archives, address))
        of_warc = tape.peek(5).upper() == b"WARC/"
        first = tape.member()
        for piece in _of_warc(tape) if of_warc else _of_arc(tape, capture):
            packed.write(piece)
        tape.close_record(None)
        # A cut member yields a record that is marked as truncated, as in the archive.
        if tape.damage(first, tape.last_member) not in (None, CUT):
            raise record_reader.NoDocumentError("the record's compressed member is damaged")
    except record_reader.NoDocumentError as error:
        raise ContentError("damaged", f"{_name(capture)}: {address}: {error}") from error
    except record_reader.UnreadableRecordError as error:
        raise ContentError("undecodable", f"{_name(capture)}: {address}: {error}") from error
    if not _is_alone(packed, capture, declared=of_warc):
        raise ContentError("damaged", f"{_name(capture)}: {address} has another record there")
    return packed


def _is_alone(stream: BinaryIO, capture: CaptureRow, *, declared: bool = True) -> bool:
    """Return whether a gzip member of WARC has the record of this capture and nothing else.

    With `declared`, the digest that the record declares also identifies it, as in indexes.
    """
    stream.seek(0)
    if recognise(read_head(stream)) != "warc.gz":
        return False
    stream.seek(0)
    parsed = list(_events(stream))
    if len(parsed) != 1 or not isinstance(parsed[0], Capture):
        return False
    if parsed[0].content_damaged:
        return False
    return _agrees(parsed[0], capture, declared=declared)


def _events(stream: BinaryIO) -> Iterator[events.Event]:
    """Yield what an ingest reads from it: two events at most, without faults of single records."""
    count = 0
    for event in ArchiveReader(stream, "record.warc.gz", _ALL):
        if isinstance(event, Fault) and not event.code.startswith(("gzip-", "header-")):
            continue
        yield event
        count += 1
        if count == 2:
            return


def _agrees(record: Capture, capture: CaptureRow, *, declared: bool) -> bool:
    """Return whether a record agrees with the snapshot, as far as this can be compared."""
    dates = (record.fetch_date or "", capture.date or "")
    many = min(_SECOND, *map(len, dates))
    if record.url != capture.url or len({date[:many] for date in dates}) > 1:
        return False
    own = record.content_digest
    other = record.content_digest_declared if declared else None
    if capture.digest is None or capture.digest in (own, other):
        return True
    # An index may give a digest that neither the record nor an ingest has.
    labels = {(digest or "").rpartition(":")[0] for digest in (own, other)}
    return capture.digest.rpartition(":")[0] not in {"", *labels}


def _of_warc(tape: RecordStream) -> Iterator[bytes]:
    head, _ = tape.take_through(_HEADER_END, 1 << 20)
    declared = record_header.parse_fields(head).get(b"content-length", b"")
    block = RecordBlock(tape, int(declared) if declared.isdigit() and len(declared) < 19 else 0)
    # A short block has no end marker, which would fill it up.
    marker = (END for _ in range(1) if not block.missing)
    yield from member(chain((head,), iter(block.take, b""), marker))


def _of_arc(tape: RecordStream, capture: CaptureRow) -> Iterator[bytes]:
    line = ARC_LINE.match(tape.peek(HEAD))
    record, _ = record_header.read_arc(tape, 2)
    if record is None:
        raise record_reader.NoDocumentError("the header of the record there cannot be read")
    block = RecordBlock(tape, record.length or 0)
    with tempfile.SpooledTemporaryFile(HELD) as body:
        size = 0
        while piece := block.take():
            size += body.write(piece)
        body.seek(0)
        start = body.read(_STATUS_LINE)
        body.seek(0)
        fields = _fields(record, capture, size, start, short=bool(block.missing))
        peer = [("WARC-IP-Address", line[2])] if line and _ADDRESS.fullmatch(line[2]) else []
        head = header(chain(fields, peer))
        yield from member(chain((head,), iter(lambda: body.read(_STEP), b""), (END,)))


def _fields(
    record: RecordHeader, capture: CaptureRow, size: int, start: bytes, *, short: bool
) -> Iterator[tuple[str, bytes]]:
    """Yield the fields of the WARC record for an ARC record.

    If it is not an HTTP response, it becomes a resource with the media type that ARC gives.
    """
    answer = read_message(BufferedBlock(start, 0, len(start)))[0] is not None
    yield "WARC-Type", b"response" if answer else b"resource"
    yield "WARC-Target-URI", record.url
    yield "WARC-Date", (instant.parse_arc_date(record.date)[0].text or "").encode("ascii")
    yield "WARC-Record-ID", name(capture.filename, capture.offset)
    if capture.digest and ":" not in capture.digest:
        yield "WARC-Payload-Digest", b"sha1:" + capture.digest.encode("ascii")
    if short:
        yield "WARC-Truncated", b"unspecified"
    media_type = b"application/http; msgtype=response"
    yield "Content-Type", media_type if answer else record.mime or b"application/octet-stream"
    yield "Content-Length", b"%d" % size
