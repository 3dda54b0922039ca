"""Transfer and content codings (RFC 9112, section 7; RFC 9110, section 8.4) undone in a stream.

Pieces go in and pieces come out, none longer than about PIECE however much a few bytes are made to
inflate to. What does not bear the coding that its header says passes as it is, for archives hold
payloads that were decoded under a header that says otherwise.
"""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from functions.archive.chunked import ChunkedDecoder, begins_chunk

PIECE = 1 << 17
"""Bytes of a piece that comes out, at most; brotli makes up to half as many again."""

START = 1 << 12
"""Bytes that tell which codings a payload bears."""

_STEP = 1 << 12  # bytes that go in at once: zlib withholds what it inflated where it fails
_CODINGS = 8
_WINDOW = (
    1 << 23
)  # bytes that a coding of zstd may ask for (RFC 9659, section 3): there may be many
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[!?A-Za-z]")
_GZIP = b"\x1f\x8b"
_ZSTD = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")
_UNDECODED = {
    "compress": "LZW, which nobody sends",
    "x-compress": "LZW, which nobody sends",
    # RFC 9842: the dictionary is another response, which only the client had.
    "dcb": "it needs a dictionary that the record does not hold",
    "dcz": "it needs a dictionary that the record does not hold",
}

Pieces = Iterator[bytes]


class ContentCodingError(ValueError):
    """A coding that cannot be undone, or that breaks; the text says which and why."""


def decode_codings(pieces: Pieces, codings: Sequence[str], *, chunked: bool) -> Pieces:
    """Undo `codings`, the last first, and before them the chunked one.

    A payload that ends too early gives what there is of it. Raises Undecodable: at once for what
    is not known here, and with the piece where it breaks.
    """
    if len(codings) > _CODINGS:
        raise ContentCodingError(f"{len(codings)} codings")
    makers = []
    for coding in reversed(codings):
        if coding in _UNDECODED:
            raise ContentCodingError(f"{coding} is not decoded: {_UNDECODED[coding]}")
        if coding in _MAKERS:
            makers.append(_MAKERS[coding](coding))
    if chunked:
        pieces = _dechunk(pieces)
    for maker in makers:
        pieces = maker(pieces)
    return pieces


def detect_codings(
    start: bytes, codings: Sequence[str], *, chunked: bool
) -> tuple[list[str], bool]:
    """Return which of its `codings` a payload bears, and whether it is chunked, by its `start`.

    That is as many bytes as START or all. Archives hold payloads that were decoded under a header
    that says otherwise; what bears no mark is taken at its word.
    """
    found = list(codings)
    if chunked:
        chunked = begins_chunk(start)
        if chunked:
            start = ChunkedDecoder().feed(start)
    while found and found[-1] in _MARKS and not _MARKS[found[-1]](start):
        found.pop()
    return found, chunked


def _dechunk(pieces: Pieces) -> Pieces:
    decoder = ChunkedDecoder()
    for piece in pieces:
        if found := decoder.feed(piece):
            yield found
    if rest := decoder.flush():
        yield rest


def _gzip(coding: str) -> Callable[[Pieces], Pieces]:
    def undo(pieces: Pieces) -> Pieces:
        start, pieces = _peek(pieces, len(_GZIP))
        if not start.startswith(_GZIP):
            return pieces
        return _inflate(pieces, 31, coding)

    return undo


def _deflate(coding: str) -> Callable[[Pieces], Pieces]:
    def undo(pieces: Pieces) -> Pieces:
        # RFC 9110 means zlib's format (RFC 1950); servers also send bare deflate (RFC 1951).
        start, pieces = _peek(pieces, _STEP)
        for bits in (15, -15):
            if _inflates(start, bits):
                return _inflate(pieces, bits, coding)
        return pieces

    return undo


def _inflates(start: bytes, bits: int) -> bool:
    inflater = zlib.decompressobj(bits)
    given = b""
    try:
        for at in range(len(start)):
            given = given or inflater.decompress(start[at : at + 1], 1)
    except zlib.error:
        return bool(given)
    return bool(given) or inflater.eof


def _inflate(pieces: Pieces, bits: int, coding: str) -> Pieces:
    inflater = zlib.decompressobj(bits)
    for piece in pieces:
        for at in range(0, len(piece), _STEP):
            data = piece[at : at + _STEP]
            while data:
                if inflater.eof:
                    if bits != 31 or not data.startswith(b"\x1f"):
                        return  # what is behind it is none of it
                    inflater = zlib.decompressobj(bits)  # RFC 1952: one member after another
                try:
                    found = inflater.decompress(data, PIECE)
                except zlib.error as error:
                    raise ContentCodingError(f"{coding} that does not inflate: {error}") from error
                data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
                while found:
                    yield found
                    # Some of what was inflated may be held back, though all is consumed.
                    found = b"" if inflater.eof or data else inflater.decompress(b"", PIECE)


def _brotli(coding: str) -> Callable[[Pieces], Pieces]:
    try:
        import brotli
    except ImportError as error:
        raise ContentCodingError(
            "br is not decoded here: the package brotli is not installed"
        ) from error

    def undo(pieces: Pieces) -> Pieces:
        start, pieces = _peek(pieces, _STEP)
        if _MARKUP.match(start):  # nothing marks brotli, but no brotli of a page begins so
            try:
                brotli.Decompressor().process(start, output_buffer_limit=1)
            except brotli.error:
                yield from pieces
                return
        decoder: Any = brotli.Decompressor()
        for piece in pieces:
            data, found = piece, b""
            while data or found or not decoder.can_accept_more_data():
                try:
                    found = bytes(decoder.process(data, output_buffer_limit=PIECE // 2))
                except brotli.error as error:
                    raise ContentCodingError("br that does not decode") from error
                data = b""
                if found:
                    yield found
            if decoder.is_finished():
                return

    return undo


def _zstd(coding: str) -> Callable[[Pieces], Pieces]:
    try:
        from functions.archive import zstd
    except ImportError as error:
        raise ContentCodingError(
            "zstd is not decoded here: the package zstandard is not installed"
        ) from error

    def undo(pieces: Pieces) -> Pieces:
        start, pieces = _peek(pieces, 4)
        if not _ZSTD.match(start):
            yield from pieces
            return
        stream = zstd.ZstdReader(_DecodedStream(pieces), _WINDOW)  # type: ignore[arg-type]
        try:
            while found := stream.read(PIECE):
                yield found
        except zstd.ZstdError as error:
            raise ContentCodingError(f"zstd that does not decode: {error}") from error

    return undo


class _DecodedStream:
    """Pieces as a stream."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        self._rest = self._rest or next(self._pieces, b"")
        cut = len(self._rest) if size < 0 else size
        found, self._rest = self._rest[:cut], self._rest[cut:]
        return found


def _peek(pieces: Pieces, size: int) -> tuple[bytes, Pieces]:
    """Return the first bytes, `size` or more where there are as many, and all the pieces."""
    start = b""
    for piece in pieces:
        start += piece
        if len(start) >= size:
            break
    return start, _again(start, pieces)


def _again(start: bytes, pieces: Pieces) -> Pieces:
    if start:
        yield start
    yield from pieces


_MAKERS: dict[str, Callable[[str], Callable[[Pieces], Pieces]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}

_MARKS: dict[str, Callable[[bytes], bool]] = {
    "gzip": lambda start: start.startswith(_GZIP),
    "x-gzip": lambda start: start.startswith(_GZIP),
    "deflate": lambda start: _inflates(start, 15) or _inflates(start, -15),
    "zstd": lambda start: _ZSTD.match(start) is not None,
}

KNOWN = frozenset(_MAKERS)
"""The content codings that can be undone, where the libraries for them are there."""
