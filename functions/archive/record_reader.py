"""A document: one record of an archive file read by itself, out of its bytes alone.

They are read by what reads whole files, so what is damaged comes out of both as the same bytes.
"""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from functions.archive import arc, warc
from functions.archive.gzip_members import GzipMembers
from functions.archive.message import HttpHead, read_message
from functions.archive.record import DOCUMENT_TYPES, RecordBlock, RecordHeader
from functions.archive.stream import HEAD, RecordStream, begins_record

ZSTD_MAGIC = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")
"""What a zstd frame begins with, or one to be passed over (RFC 8878, 3.1)."""

_GZIP = b"\x1f\x8b"
_HTTP = b"application/http"
_FIELD = re.compile(rb"([!#-'*+\-.^_`|~0-9A-Za-z]+)[ \t]*:[ \t]*(.*?)[ \t\r]*")
_FOLD = re.compile(rb"\r?\n[ \t]+(?=[^ \t\r\n])")


class NoDocumentError(ValueError):
    """What lies there is no record of a document; the text says what it is."""


class UnreadableRecordError(ValueError):
    """It cannot be read here, for want of a library or of a dictionary."""


@dataclass(slots=True)
class Document:
    """A record: its header, its HTTP message where it has one, and its payload, not yet read.

    `head` are the bytes of the message's head, none without one; `fields` are what it holds, in
    their order and letters, what is beyond ASCII as Latin-1.
    `place` is where the payload begins in the file, None where it is packed.
    """

    record: RecordHeader
    message: HttpHead | None
    head: bytes
    fields: tuple[tuple[str, str], ...]
    place: int | None
    _block: RecordBlock
    _first: bytes

    def start(self, size: int) -> bytes:
        """Return what the payload begins with, `size` bytes or more, fewer if it has no more."""
        while len(self._first) < size and (piece := self._block.take()):
            self._first += piece
        return self._first

    def payload(self) -> Iterator[bytes]:
        """Yield the payload as it is stored, in pieces, once."""
        piece = self._first or self._block.take()
        while piece:
            yield piece
            piece = self._block.take()


def read_record(
    stream: BinaryIO, offset: int, dictionary: Callable[[], bytes] = lambda: b""
) -> Document:
    """Return the record that a stream begins with, which lies at `offset` of its file.

    `dictionary` gives the first bytes of a zstd file, where its frames may need what these hold.
    Raises NoDocument, Unread, and what it raises.
    """
    records, packed = open_record(stream, dictionary)
    if records.peek(5).upper() == b"WARC/":
        record, _ = warc.read_header(records)
    else:
        record, _ = arc.read_header(records, 2)  # of either version: the length is the last word
    if record is None or record.length is None:
        raise NoDocumentError("a record begins there whose header cannot be read")
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
    return Document(record, message, head, _parse_fields(head), place, block, first)


def open_record(
    stream: BinaryIO, dictionary: Callable[[], bytes] = lambda: b""
) -> tuple[RecordStream, bool]:
    """Return a records that is at the record which a stream begins with, and whether it is packed.

    Raises NoDocument, Unread, and what `dictionary` raises (see `read`).
    """
    head = _read_exactly(stream, 4)
    packed = head.startswith(_GZIP) or ZSTD_MAGIC.match(head) is not None
    records = _open_stream(head, cast(BinaryIO, _PrefixedStream(head, stream)), dictionary)
    if not records.next_section() or not begins_record(records.peek(HEAD)):
        raise NoDocumentError("no record begins there")
    records.skip_newlines()
    return records, packed


class _RecordingBlock(RecordBlock):
    """A block of which is kept what was taken."""

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
    """A stream of which the first bytes were read already, and which begins where it is."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return offset  # by a reader of whole files, to where this begins

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
    return ZstdFrames(
        dictionary(), stream, 1
    )  # behind the file's first bytes, which are not its own


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := stream.read(size - len(data))):
        data += piece
    return data


def _parse_fields(head: bytes) -> tuple[tuple[str, str], ...]:
    """Return the fields of a message's head, which begins with the status line."""
    lines = _FOLD.sub(b" ", head.partition(b"\n")[2]).split(b"\n")
    found: list[Any] = [_FIELD.fullmatch(line) for line in lines]
    return tuple((m[1].decode("ascii"), m[2].decode("latin-1")) for m in found if m)
