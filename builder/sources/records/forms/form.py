"""The shape of a form of files, and what all forms share: bytes, texts, and pieces to records."""

import codecs
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

import webencodings

from builder.sources.records.record import (
    KnownRecord,
    ReadOptions,
    RecordFault,
    RecordItem,
    RecordsError,
    hash_record,
)
from functions.archive.charset import detect, detect_bom
from functions.snapshot.errors import describe_failure

ByteSource = Path | BinaryIO
HEAD = 1 << 16  # bytes
CHUNK = 1 << 20  # bytes
LONGEST = 1 << 26
"""Bytes or characters of the longest record: what seems longer has lost its end."""
_LOOKED_UP = 1000
"""Records that are looked up at once, at most."""
TOO_LONG = f"it is longer than {LONGEST >> 20} MB"
_ESCAPED, _HIGH = re.compile("[\udc80-\udcff]"), re.compile("[^\x00-\x7f]")
_DECLARATION = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._\-]+)["']""")


@dataclass(frozen=True, slots=True)
class FileForm:
    """A form of files: its name in the configuration, and what it is called in messages.

    `recognise` is given the first 64 KiB of a file, after gunzip, and whether the configuration
    names the file: then nothing else can be meant. `read` yields the records of a file or stream in
    order, and faults. It raises RecordsError where the file cannot be read on; the records before
    that are whole.
    """

    name: str
    title: str
    recognise: Callable[[bytes, bool], bool]
    read: Callable[[ByteSource, ReadOptions], Iterator[RecordItem]]


class Piece(NamedTuple):
    """The bytes of a record by which it is known, and what its form has made of them."""

    place: str
    data: bytes
    content: Any = None


def read_pieces(
    pieces: Iterable[Piece | RecordFault],
    form: str,
    options: ReadOptions,
    parse: Callable[[Piece, bytes], Iterable[RecordItem]],
) -> Iterator[RecordItem]:
    """Yield what `parse` makes of each piece that is not known; a fault if it raises ValueError."""
    for piece in pieces:
        if isinstance(piece, RecordFault):
            yield piece
        elif options.is_known(digest := hash_record(form, piece.data)):
            yield KnownRecord(digest)
        else:
            try:
                yield from parse(piece, digest)
            except (ValueError, RecursionError) as error:
                is_deep = isinstance(error, RecursionError)
                reason = "it is nested too deep" if is_deep else str(error)
                if isinstance(error, UnicodeDecodeError):
                    wrong = error.object[error.start : error.end].hex()
                    reason = f"bytes {wrong} are not {error.encoding}; is `encoding` another?"
                yield RecordFault(piece.place, "bad-record", None, reason)


def announce_pieces(pieces: Iterable[Piece], form: str, options: ReadOptions) -> Iterator[Piece]:
    """Yield the pieces, of which several at once are looked up, before they are asked for.

    What stops the reading stops it behind the pieces before it.
    """
    batch, size = list[Piece](), 0
    try:
        for piece in pieces:
            batch.append(piece)
            size += len(piece.data)
            if len(batch) == _LOOKED_UP or size > CHUNK:
                options.expect([hash_record(form, each.data) for each in batch])
                yield from batch
                batch, size = [], 0
    except RecordsError:
        yield from batch
        raise
    options.expect([hash_record(form, each.data) for each in batch])
    yield from batch


@contextmanager
def open_source(source: ByteSource) -> Iterator[IO[bytes]]:
    """Open a file, or take a stream, and gunzip it if it is. Raises RecordsError, also later."""
    try:
        opened = source.open("rb") if isinstance(source, Path) else source
        with BufferedReader(cast(RawIOBase, opened)) as stream:
            is_packed = stream.peek(2)[:2] == b"\x1f\x8b"
            with gzip.open(stream) if is_packed else stream as plain:
                yield cast(IO[bytes], plain)
    except EOFError as error:
        raise RecordsError("its gzip is cut off") from error
    except (OSError, zlib.error) as error:
        raise RecordsError(f"it cannot be read: {describe_failure(error)}") from error


def read_head(source: ByteSource) -> bytes:
    """Return the first 64 KiB of a file or stream, after gunzip; less of a gzip that is cut off.

    Raises RecordsError if nothing can be read.
    """
    head = b""
    try:
        with open_source(source) as stream:
            while len(head) < HEAD and (piece := stream.read1(HEAD - len(head))):  # type: ignore[attr-defined]
                head += piece
    except RecordsError:
        if not head:
            raise
    return head


def find_encoding(head: bytes, declared: str | None = None) -> str:
    """Return the name of a text's encoding: of its mark, else declared, else UTF-8 or detected.

    Raises RecordsError if Python does not know the one that is declared.
    """
    bom, match = detect_bom(head), _DECLARATION.match(head)
    name = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}.get(head[:2]) or declared
    if bom:
        return "utf-8-sig" if bom == "utf-8" else "utf-16"
    if name := name or (match[1].decode() if match else None):
        try:
            bytes(4).decode(name, "surrogateescape")
        except (LookupError, UnicodeError) as error:  # zlib and idna are known, but of no use here
            raise RecordsError(f"its encoding is unknown: {name}") from error
        return codecs.lookup(name).name
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(head)
    wrong = len(_ESCAPED.findall(text))
    # XML that declares none is UTF-8; elsewhere a few wrong bytes are faults of their records.
    is_utf8 = text.lstrip().startswith("<") or wrong * 9 <= len(_HIGH.findall(text)) - wrong
    if is_utf8:
        return "utf-8"
    encoding = webencodings.lookup(detect(head, None).name) or webencodings.UTF8
    return str(encoding.codec_info.name)


def read_text(head: bytes, stream: IO[bytes], encoding: str) -> Iterator[str]:
    """Yield the text of a file whose first bytes are `head`. Undecodable bytes are surrogates.

    Raises RecordsError, for UTF-16 alone.
    """
    decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
    try:
        while head:
            yield decoder.decode(head)
            head = stream.read(CHUNK)
        yield decoder.decode(b"", True)
    except UnicodeDecodeError as error:
        raise RecordsError(f"not all of it is {encoding}: {error.reason}") from error


def read_lines(pieces: Iterator[str], feed: str = "\n") -> Iterator[str]:
    """Yield the lines of a text, each with its line feed.

    The rest of one longer than LONGEST is left out, so that it stays longer, and fits in memory.
    """
    parts = list[str]()
    for piece in pieces:
        *lines, last = piece.split(feed)
        if lines:
            lines[0] = "".join((*parts, lines[0]))
            parts = []
            yield from (f"{line}{feed}" for line in lines)
        if sum(map(len, parts)) <= LONGEST:
            parts.append(last)
    if any(parts):
        yield "".join(parts)
