"""Reader of one record of an archive file, from its bytes alone.

It uses the reader of whole files, so both give the same bytes of a damaged record.
"""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from functions.archive import record_header
from functions.archive.gzip_members import GzipMembers
from functions.archive.message import HttpHead, prove_length, read_message
from functions.archive.record import DOCUMENT_TYPES, RecordBlock, RecordHeader
from functions.archive.stream import HEAD, RecordStream, begins_record

ZSTD_MAGIC = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")
"""Magic numbers of zstd frames and skippable frames (RFC 8878, 3.1)."""

_GZIP = b"\x1f\x8b"
_HTTP = b"application/http"
_FIELD = re.compile(rb"([!#-'*+\-.^_`|~0-9A-Za-z]+)[ \t]*:[ \t]*(.*?)[ \t\r]*")


class NoDocumentError(ValueError):
    """The bytes are no record of a document; the text says what they are."""


class UnreadableRecordError(ValueError):
    """The record needs a library or a dictionary that is missing."""


@dataclass(slots=True)
class Document:
    """A record: its header, its HTTP message if it has one, and its unread payload.

    `head` has the bytes of the message's head; `fields` are its fields in order, as written,
    decoded as Latin-1. `place` is the payload's offset in the file, None if it is compressed.
    """

    record: RecordHeader
    message: HttpHead | None
    head: bytes
    fields: tuple[tuple[str, str], ...]
    place: int | None
    _block: RecordBlock
    _first: bytes

    def start(self, size: int) -> bytes:
        """Return the payload's first bytes: `size` or more, or all of a shorter one."""
        while len(self._first) < size and (piece := self._block.take()):
            self._first += piece
        return self._first

    def payload(self) -> Iterator[bytes]:
        """Yield the stored payload in pieces, once."""
        piece = self._first or self._block.take()
        while piece:
            yield piece
            piece = self._block.take()


def read_record(
    stream: BinaryIO, offset: int, dictionary: Callable[[], bytes] = lambda: b""
) -> Document:
    """Return the record at the start of a stream, which is `offset` in its file.

    `dictionary` returns the first bytes of a zstd file, which may hold a dictionary. Raises
    NoDocumentError, UnreadableRecordError and the errors of `dictionary`.
    """
    records, packed = open_record(stream, dictionary)
    member = records.section_bytes()
    if records.peek(5).upper() == b"WARC/":
        record, _ = record_header.read_warc(records)
    else:
        # Of either version: the length is the last word.
        record, _ = record_header.read_arc(records, 2)
    if record and member and not record.is_arc:
        rest = records.peek(len(member))
        if record.length is None or len(rest) != record.length + 4:
            record.length = prove_length(record.fields, rest) or record.length
    if record is None or record.length is None:
        raise NoDocumentError("the header of the record there cannot be read")
    if record.type not in DOCUMENT_TYPES:
        raise NoDocumentError(f"a record of the type {record.type} begins there")
    block = _RecordingBlock(records, record.length)
    message, first = None, b""
    if record.type != "resource" or record.mime[:16].lower() == _HTTP:
        message, first, _ = read_message(block)
    size = len(block.taken) - len(first)
    place = None if packed else offset + records.place() - len(first)
    head = block.taken[:size]
    block.taken = b""
    block.noting = False
    return Document(record, message, head, read_fields(head), place, block, first)


def open_record(
    stream: BinaryIO, dictionary: Callable[[], bytes] = lambda: b""
) -> tuple[RecordStream, bool]:
    """Return a record stream at the first record, and whether that is compressed.

    Raises NoDocumentError, UnreadableRecordError and the errors of `dictionary` (see
    `read_record`).
    """
    head = b""
    while len(head) < 4 and (piece := stream.read(4 - len(head))):
        head += piece
    packed = head.startswith(_GZIP) or ZSTD_MAGIC.match(head) is not None
    records = _open_stream(head, cast(BinaryIO, _PrefixedStream(head, stream)), dictionary)
    if not records.next_section() or not begins_record(records.peek(HEAD)):
        raise NoDocumentError("no record begins there")
    records.skip_newlines()
    return records, packed


class _RecordingBlock(RecordBlock):
    """A block that records the bytes it gives."""

    __slots__ = ("noting", "taken")

    def __init__(self, records: RecordStream, length: int) -> None:
        super().__init__(records, length)
        self.taken = b""
        self.noting = True

    def take(self, size: int = 1 << 16) -> bytes:
        piece = super().take(size)
        if self.noting:
            self.taken += piece
        return piece


class _PrefixedStream(io.RawIOBase):
    """A stream with its first bytes put back; its start is the current position."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return offset  # the reader of whole files seeks to the start, which is here

    def read(self, size: int = -1, /) -> bytes:
        piece, self._head = self._head[:size], self._head[size:]
        return piece or self._stream.read(size)


def _open_stream(head: bytes, stream: BinaryIO, dictionary: Callable[[], bytes]) -> RecordStream:
    if head.startswith(_GZIP):
        return GzipMembers(b"", stream)
    if not ZSTD_MAGIC.match(head):
        return RecordStream(b"", stream)
    try:
        from functions.archive.zstd_frames import ZstdFrames
    except ImportError as error:
        raise UnreadableRecordError(
            "zstd is not read here: the package zstandard is not installed"
        ) from error
    # Behind the file's first bytes, which are not its own.
    return ZstdFrames(dictionary(), stream, 1)


def read_fields(head: bytes) -> tuple[tuple[str, str], ...]:
    """Return the fields of a message's head, without its status line."""
    lines = record_header.FOLD.sub(b" ", head.partition(b"\n")[2]).split(b"\n")
    matches: list[Any] = [_FIELD.fullmatch(line) for line in lines]
    return tuple((m[1].decode("ascii"), m[2].decode("latin-1")) for m in matches if m)
