"""Content codings (RFC 9110, section 8.4) of a payload's first bytes.

Everything is bounded: a few bytes of a payload may be made to inflate to more than any memory.
"""

import re
import zlib

import brotli

from functions.archive import inflate, zstd

_STEP = 1 << 12
_CODINGS = 8
_NO_CODING = frozenset({"", "identity", "none"})
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[!?A-Za-z]")
_UNDECODED = {
    "compress": "LZW, which nobody sends",
    "x-compress": "LZW, which nobody sends",
    # RFC 9842: the dictionary is another response, which only the client had.
    "dcb": "it needs a dictionary that the record does not hold",
    "dcz": "it needs a dictionary that the record does not hold",
}


def decode(data: bytes, codings: list[str], limit: int) -> tuple[bytes | None, str | None]:
    """Undo content codings, the last first, on a payload's first bytes.

    Return at most `limit` bytes, and what is wrong if a coding is not known or is not there; the
    bytes are None where what they are is unknown.
    """
    if len(codings) > _CODINGS:
        return None, f"{len(codings)} codings"
    wrong: str | None = None
    current: bytes | None = data
    for coding in reversed(codings):
        if coding in _NO_CODING or not current:
            continue
        if coding in ("gzip", "x-gzip"):
            current, flaw = _gunzip(current, limit)
        elif coding == "deflate":
            current, flaw = _inflate(current, limit)
        elif coding == "br":
            current, flaw = _unbrotli(current, limit)
        elif coding == "zstd":
            current, flaw = _unzstd(current, limit)
        elif coding in _UNDECODED:
            current, flaw = None, f"{coding} is not decoded: {_UNDECODED[coding]}"
        else:
            flaw = f"{coding} is no coding"
        wrong = wrong or flaw
    return (None if current is None else current[:limit]), wrong


def _gunzip(data: bytes, limit: int) -> tuple[bytes | None, str | None]:
    if not data.startswith(b"\x1f\x8b"):
        return data, "gzip declared, but the payload is not gzip"
    whole = inflate.inflate_member(data, limit)
    if whole is not None:
        return whole, None
    decoded, good = _unzip(data, 31, limit)
    return (decoded, None) if decoded or good else (None, "gzip that does not inflate")


def _inflate(data: bytes, limit: int) -> tuple[bytes | None, str | None]:
    # RFC 9110 means zlib's format (RFC 1950); servers also send bare deflate (RFC 1951).
    for bits in (15, -15):
        decoded, good = _unzip(data, bits, limit)
        if decoded or good:
            return decoded, None
    return data, "deflate declared, but the payload is not deflate"


def _unzip(data: bytes, bits: int, limit: int, step: int = _STEP) -> tuple[bytes, bool]:
    """Return what inflates, and whether an end was reached, which may be that of no bytes."""
    start = data
    pieces: list[bytes] = []
    size = 0
    ended = False
    inflater = zlib.decompressobj(bits)
    # Small steps, since zlib withholds what it inflated in a call that fails.
    while data and size < limit:
        try:
            piece = inflater.decompress(data[:step], limit - size)
        except zlib.error:
            if not size and step > 1:
                return _unzip(start, bits, limit, 1)
            break
        size += len(piece)
        pieces.append(piece)
        data = data[step:]
        if inflater.eof:
            ended = True
            data = inflater.unused_data + data
            if not data.startswith(b"\x1f\x8b"):
                break
            inflater = zlib.decompressobj(bits)  # RFC 1952: one member after another
    return b"".join(pieces), ended


def _unbrotli(data: bytes, limit: int) -> tuple[bytes | None, str | None]:
    decoder = brotli.Decompressor()
    pieces: list[bytes] = []
    size = 0
    ended = False
    for at in range(0, len(data), _STEP):
        try:
            piece = bytes(decoder.process(data[at : at + _STEP], output_buffer_limit=limit - size))
        except brotli.error:
            break
        size += len(piece)
        pieces.append(piece)
        ended = decoder.is_finished()
        if ended or size >= limit:
            break
    if size or ended:
        return b"".join(pieces), None
    # Nothing marks brotli, but pages are also kept decoded under a header that says otherwise.
    if _MARKUP.match(data):
        return data, "br declared, but the payload is not br"
    return None, "br that does not decode"


def _unzstd(data: bytes, limit: int) -> tuple[bytes | None, str | None]:
    if not data.startswith(zstd.MAGIC) and not zstd.SKIPPABLE.match(data):
        return data, "zstd declared, but the payload is not zstd"
    decoded, wrong = zstd.expand(data, limit, zstd.ZstdDecoder())
    if decoded or wrong is None:
        return decoded, None
    return None, f"zstd that does not decode: {wrong}"
