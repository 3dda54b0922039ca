"""Transfer and content codings (RFC 9112, section 7; RFC 9110, section 8.4): decoding in pieces.

A decoder takes pieces and yields pieces. No piece is much longer than PIECE, however far a few
bytes inflate. A payload without its declared coding passes unchanged: archives hold payloads that
were decoded while their header was kept.
"""

import re
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib.util import find_spec
from itertools import chain
from typing import Any, BinaryIO, cast

from functions.archive.inflate import inflate_member, salvage
from functions.archive.message import ChunkedDecoder, begins_chunk
from functions.store.window_stream import PieceStream

PIECE = 1 << 17
"""The most bytes of a decoded piece; brotli may exceed it by half."""

START = 1 << 12
"""Bytes that show which codings a payload has."""

_STEP = 1 << 12  # bytes that zlib gets at once: it withholds the output of a call that fails
_MAX_CODINGS = 8
_WINDOW = 1 << 23  # bytes of zstd's window (RFC 9659, section 3): many streams may be open at once
_NO_CODING = frozenset({"", "identity", "none"})
_GZIP_BITS, _ZLIB_BITS, _RAW_BITS = 31, 15, -15  # zlib's argument for RFC 1952, 1950 and 1951
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[!?A-Za-z]")
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f\xc0\xc1\xf5-\xff]")  # in no UTF-8 text
_GZIP = b"\x1f\x8b"
_ZSTD = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")
_UNDECODED = {
    "compress": "LZW, an obsolete coding",
    "x-compress": "LZW, an obsolete coding",
    # RFC 9842: the dictionary is another response, which only the client had.
    "dcb": "its dictionary is not in the record",
    "dcz": "its dictionary is not in the record",
}
_PACKAGES = {"br": "brotli", "zstd": "zstandard"}  # absent where Sheaf is deployed

Pieces = Iterator[bytes]
_Decoded = Generator[bytes, None, bool]  # returns whether the coding's end was reached


class ContentCodingError(ValueError):
    """A coding that is unknown or broken; the text names it and says why."""


def decode_codings(pieces: Pieces, codings: Sequence[str], *, chunked: bool) -> Pieces:
    """Undo the chunked coding first and then `codings`, the last one first.

    A payload that ends too early gives the bytes it has. Raises ContentCodingError: at once for a
    coding that is not supported, and while iterating where the payload breaks.
    """
    if len(codings) > _MAX_CODINGS:
        raise ContentCodingError(f"{len(codings)} codings")
    for coding in reversed(codings):
        if coding in _UNDECODED:
            raise ContentCodingError(f"{coding} is not decoded: {_UNDECODED[coding]}")
        package = _PACKAGES.get(coding)
        if package and find_spec(package) is None:
            detail = f"{coding} is not decoded here: the package {package} is not installed"
            raise ContentCodingError(detail)
    if chunked:
        pieces = _dechunk(pieces)
    for coding in reversed(codings):
        if coding in _DECODERS:
            pieces = _decode_if_coded(pieces, coding)
    return pieces


def decode_head(data: bytes, codings: Sequence[str], limit: int) -> tuple[bytes | None, str | None]:
    """Undo content codings, the last one first, on a payload's first bytes.

    Return at most `limit` bytes, and the first problem: a coding that is unknown, broken or absent
    from the payload. The bytes are None where they cannot be decoded.
    """
    if len(codings) > _MAX_CODINGS:
        return None, f"{len(codings)} codings"
    first_problem: str | None = None
    current: bytes | None = data
    for coding in reversed(codings):
        if coding in _NO_CODING or not current:
            continue
        problem = None
        if coding in _UNDECODED:
            current, problem = None, f"{coding} is not decoded: {_UNDECODED[coding]}"
        elif coding in _DECODERS:
            current, problem = _decode_first_bytes(current, coding.removeprefix("x-"), limit)
        else:
            problem = f"{coding} is not a coding"
        first_problem = first_problem or problem
    return (None if current is None else current[:limit]), first_problem


def _decode_first_bytes(data: bytes, coding: str, limit: int) -> tuple[bytes | None, str | None]:
    if not _has_coding(data[:_STEP], coding):
        return data, f"{coding} declared, but the payload is not {coding}"
    if coding == "gzip" and (whole := inflate_member(data, limit)) is not None:
        return whole, None
    if coding == "zstd":
        from functions.archive import zstd

        decoded, problem = zstd.expand(data, limit, zstd.ZstdDecoder())
        if decoded or problem is None:
            return decoded, None
        return None, f"zstd data cannot be decoded: {problem}"
    decoder = _DECODERS[coding](iter((data,)), coding)
    pieces: list[bytes] = []
    size = 0
    try:
        while size < limit:
            pieces.append(next(decoder))
            size += len(pieces[-1])
    except StopIteration as stop:
        if not (size or stop.value):
            return None, f"{coding} data ends before its first byte"
    except ContentCodingError as error:
        if not size:
            return None, str(error)
    return b"".join(pieces), None


def detect_codings(
    start: bytes, codings: Sequence[str], *, chunked: bool
) -> tuple[list[str], bool]:
    """Return which of its declared `codings` a payload has, and whether it is chunked.

    `start` is its first START bytes, or all of it.
    """
    present = list(codings)
    if chunked:
        chunked = begins_chunk(start)
        if chunked:
            start = ChunkedDecoder().feed(start)
    while present and present[-1] in _DECODERS and not _has_coding(start, present[-1]):
        present.pop()
    return present, chunked


def _dechunk(pieces: Pieces) -> Pieces:
    decoder = ChunkedDecoder()
    for piece in pieces:
        if data := decoder.feed(piece):
            yield data
    if rest := decoder.flush():
        yield rest


def _decode_if_coded(pieces: Pieces, coding: str) -> Pieces:
    start, pieces = _peek(pieces, _STEP)
    yield from _DECODERS[coding](pieces, coding) if _has_coding(start, coding) else pieces


def _has_coding(start: bytes, coding: str) -> bool:
    if coding != "br":
        return _MARKS[coding](start)
    if _BINARY.search(start[:64]):  # brotli has no magic number, but is hardly ever text
        return True
    if find_spec("brotli") is None:
        return not _MARKUP.match(start)
    import brotli

    decoder: Any = brotli.Decompressor()
    try:
        decoded = decoder.process(start[:_STEP], output_buffer_limit=PIECE)
        return bool(decoded) or decoder.is_finished()
    except brotli.error:
        return False


def _inflate(pieces: Pieces, coding: str, bits: int = _GZIP_BITS) -> _Decoded:
    inflater = zlib.decompressobj(bits)
    is_first = True  # no output so far
    for piece in pieces:
        for at in range(0, len(piece), _STEP):
            data = piece[at : at + _STEP]
            while data:
                if inflater.eof:
                    if bits != _GZIP_BITS or not data.startswith(b"\x1f"):
                        return True  # trailing bytes
                    inflater = zlib.decompressobj(bits)  # RFC 1952: one member after another
                before = inflater.copy() if is_first else None
                try:
                    output = inflater.decompress(data, PIECE)
                except zlib.error as error:
                    if before is not None and (output := salvage(before, data)):
                        yield output
                    raise ContentCodingError(
                        f"{coding} data cannot be inflated: {error}"
                    ) from error
                data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
                while output:
                    is_first = False
                    yield output
                    # zlib may hold back output although it consumed all input.
                    output = b"" if inflater.eof or data else inflater.decompress(b"", PIECE)
    return inflater.eof


def _deflate(pieces: Pieces, coding: str) -> _Decoded:
    # RFC 9110 means zlib's format; servers also send bare deflate.
    start, pieces = _peek(pieces, _STEP)
    bits = _ZLIB_BITS if _inflates(start, _ZLIB_BITS) else _RAW_BITS
    return (yield from _inflate(pieces, coding, bits))


def _inflates(start: bytes, bits: int) -> bool:
    """Tell whether `start` inflates to any byte, or to an empty stream."""
    inflater = zlib.decompressobj(bits)
    # The first bytes of a text may inflate by chance, so all of them have to.
    step = 1 if _BINARY.search(start[:64]) else _STEP
    try:
        for at in range(0, len(start), step):
            if inflater.decompress(start[at : at + step], PIECE):
                return True
    except zlib.error:
        return False
    return inflater.eof


def _unbrotli(pieces: Pieces, coding: str) -> _Decoded:
    import brotli

    decoder: Any = brotli.Decompressor()
    for piece in pieces:
        data, output = piece, b""
        while data or output or not decoder.can_accept_more_data():
            try:
                output = bytes(decoder.process(data, output_buffer_limit=PIECE // 2))
            except brotli.error as error:
                raise ContentCodingError("br data cannot be decoded") from error
            data = b""
            if output:
                yield output
        if decoder.is_finished():
            return True
    return False


def _unzstd(pieces: Pieces, coding: str) -> _Decoded:
    from functions.archive import zstd

    stream = zstd.ZstdReader(cast(BinaryIO, PieceStream(pieces)), _WINDOW)
    try:
        while output := stream.read(PIECE):
            yield output
    except zstd.ZstdError as error:
        raise ContentCodingError(f"zstd data cannot be decoded: {error}") from error
    return True


def _peek(pieces: Pieces, size: int) -> tuple[bytes, Pieces]:
    """Return the first `size` bytes or more, if there are as many, and all the pieces."""
    start = b""
    for piece in pieces:
        start += piece
        if len(start) >= size:
            break
    return start, chain((start,) if start else (), pieces)


_DECODERS: dict[str, Callable[[Pieces, str], _Decoded]] = {
    "gzip": _inflate,
    "x-gzip": _inflate,
    "deflate": _deflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}

_MARKS: dict[str, Callable[[bytes], bool]] = {
    "gzip": lambda start: start.startswith(_GZIP),
    "x-gzip": lambda start: start.startswith(_GZIP),
    "deflate": lambda start: _inflates(start, _ZLIB_BITS) or _inflates(start, _RAW_BITS),
    "zstd": lambda start: _ZSTD.match(start) is not None,
}

DECODABLE = frozenset(_DECODERS)
"""The content codings that can be undone if their libraries are installed."""
