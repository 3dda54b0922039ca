"""Finds the record of a capture in the archive files, and opens and verifies its payload.

The last piece of a payload is given only after verification.
"""

import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO, cast

from functions.archive import record_reader
from functions.archive.coding import ContentCodingError, Pieces
from functions.archive.declared_digest import DeclaredDigest, parse_digest
from functions.archive.message import ChunkedDecoder
from functions.archive.record_reader import Document, NoDocumentError, UnreadableRecordError
from functions.archive.zip_directory import UnpackedEntry
from functions.content.capture_row import CaptureRow
from functions.content.protocols import Archives, ContentError
from functions.snapshot import authority
from functions.store.window_stream import PieceStream

_SECOND = re.compile(rb"\d{14}")
_SKIPPABLE = b"\x5d\x2a\x4d\x18"  # frame of a zstd file's dictionary (iipc, WARC-zstd 1.0)
_DICTIONARY = 1 << 23  # bytes
_STEP = 1 << 16


@dataclass(frozen=True, slots=True)
class ArchivedRecord:
    """A capture's record, read up to its payload, and the address of its file."""

    address: str
    document: Document


@contextmanager
def open_record(archives: Archives, capture: CaptureRow) -> Iterator[ArchivedRecord]:
    """Open the record of a capture; its payload is readable inside the block.

    The candidate files are tried in order: two archives may have files of one name. A record of
    another date is not the capture's; one that declares another digest is read as a last resort.
    Raises ContentError, StoreError.
    """
    if capture.offset is None or not capture.filename:
        raise ContentError(
            "unplaced", f"{capture.identifier}: its offset in the archive file is unknown"
        )
    failures: list[ContentError] = []
    candidates = archives.candidates(capture.filename)
    attempts = [(address, len(candidates) > 1) for address in candidates]
    while attempts:
        address, is_strict = attempts.pop(0)
        try:
            stream = archives.open(address, capture.offset, capture.stored)
        except ContentError as error:
            failures.append(error)
            continue
        with stream:
            try:
                document = _read(archives, stream, address, capture)
            except ContentError as error:
                failures.append(error)
                continue
            if is_strict and _declares_other(document, capture):
                attempts.append((address, False))
                continue
            yield ArchivedRecord(address, document)
            return
    raise worst_error(failures, capture)


def show_place(capture: CaptureRow) -> str:
    """Return a record's file and offset without the folder, which must not be disclosed."""
    return f"{capture.filename}, byte {capture.offset}"


def _read(archives: Archives, stream: BinaryIO, address: str, capture: CaptureRow) -> Document:
    try:
        document = record_reader.read_record(
            stream, capture.offset or 0, lambda: read_dictionary(archives, address)
        )
    except NoDocumentError as error:
        raise ContentError("damaged", f"{show_place(capture)}: {error}") from error
    except UnreadableRecordError as error:
        raise ContentError("undecodable", f"{show_place(capture)}: {error}") from error
    url = document.record.url
    if url and authority.text(url) != capture.url:
        raise ContentError("damaged", f"{show_place(capture)}: the record there has another URL")
    date = document.record.date.removesuffix(b"Z")
    digits = re.sub(rb"[-:T]", b"", date.partition(b".")[0])
    if capture.time and _SECOND.fullmatch(digits) and digits.decode("ascii") != capture.stamp:
        raise ContentError("damaged", f"{show_place(capture)}: the record there has another date")
    return document


def _declares_other(document: Document, capture: CaptureRow) -> bool:
    """Return whether the record declares another SHA-1 than the capture's payload has."""
    declared = parse_digest(document.record.fields.get(b"warc-payload-digest", b""))
    digest = capture.digest
    if declared is None or declared.algorithm != "sha1" or not digest or ":" in digest:
        return False
    return declared.text() != digest


def read_dictionary(archives: Archives, address: str) -> bytes:
    """Return the first frame of a zstd file if it is a dictionary, else b""."""
    with archives.open(address, 0, 8) as stream:
        head = stream.read(8)
    size = 8 + int.from_bytes(head[4:], "little")
    if not head.startswith(_SKIPPABLE) or size > _DICTIONARY + 8:
        return b""
    with archives.open(address, 0, size) as stream:
        return b"".join(read_pieces(stream))


def worst_error(failures: Sequence[ContentError], capture: CaptureRow) -> ContentError:
    """Return the error to raise: a fault in a file is more useful than a missing file."""
    missing = ContentError("not-at-hand", f"{capture.filename} is not in any known place")
    faults = (error for error in failures if error.code != "not-at-hand")
    return next(chain(faults, failures), missing)


def read_pieces(stream: BinaryIO) -> Pieces:
    """Yield the bytes of a stream in pieces."""
    while piece := stream.read(_STEP):
        yield piece


def verify_pieces(
    pieces: Pieces,
    declared: DeclaredDigest | None,
    where: str,
    *,
    chunked: bool = False,
    head: bytes | None = None,
) -> Pieces:
    """Yield the pieces, and at the end raise ContentError damaged if the digest is not `declared`.

    Some crawlers compute the digest of a `chunked` payload after decoding, and some indexes compute
    it of the `head` and the payload. Both are accepted.
    """
    if declared is None:
        yield from pieces
        return
    stored = _hash(declared)
    plain = _hash(declared) if chunked else None
    block = _hash(declared, head) if head else None
    decoder = ChunkedDecoder()
    for piece in pieces:
        stored.update(piece)
        if plain is not None:
            plain.update(decoder.feed(piece))
        if block is not None:
            block.update(piece)
        yield piece
    if plain is not None:
        plain.update(decoder.flush())
    if any(hash_ and hash_.digest() == declared.value for hash_ in (stored, plain, block)):
        return
    actual = DeclaredDigest(declared.algorithm, stored.digest()).text()
    raise ContentError(
        "damaged", f"{where}: the bytes have the digest {actual}, not {declared.text()}"
    )


def _hash(declared: DeclaredDigest, first: bytes = b"") -> Any:
    return hashlib.new(declared.algorithm, first, usedforsecurity=False)


def read_verified(decoded: Pieces, source: Pieces) -> BinaryIO:
    """Return the decoded pieces as a stream; the last piece waits for the end of the source.

    Damaged content is therefore never given completely. The first piece is read at once. Raises
    ContentError, here and while reading.
    """
    pieces = _hold_last(decoded, source)
    first = next(pieces, b"")
    return cast(BinaryIO, io.BufferedReader(PieceStream(chain((first,), pieces)), _STEP))


def _hold_last(decoded: Pieces, source: Pieces) -> Iterator[bytes]:
    last = b""
    try:
        for piece in decoded:
            if last:
                yield last
            last = piece
    except ContentCodingError as error:
        raise ContentError("undecodable", str(error)) from error
    for _ in source:  # bytes behind the end of a coding
        pass
    if last:
        yield last


def cut_pieces(pieces: Pieces, first: int, length: int) -> Pieces:
    """Yield `length` bytes of the pieces from the byte `first`, and read no further."""
    for piece in pieces:
        part = piece[first : first + length]
        first = max(0, first - len(piece))
        length -= len(part)
        if part:
            yield part
        if not length:
            return


def inflate_pieces(pieces: Pieces, where: str) -> Pieces:
    """Yield the inflated bytes of a zip member; the data itself marks its end."""
    member = UnpackedEntry(pieces)
    yield from member.pieces()
    if member.damage:
        raise ContentError("damaged", f"{where}: {member.damage}")
