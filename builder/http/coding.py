"""Content codings of responses: gzip and deflate, unpacked in small pieces and within a limit.

A body that breaks off or is not packed is an error, because the response can be requested again.
The module functions.archive.coding, which reads archives, accepts such bodies.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from builder.http.errors import FetchError

_PIECE = 1 << 18
_ANY = zlib.MAX_WBITS | 32  # gzip or zlib, by the header
_KNOWN = frozenset({"gzip", "x-gzip", "deflate"})
_NONE = frozenset({"", "identity", "none", "utf-8", "binary", "aws-chunked"})
"""Values of Content-Encoding that are not codings: those of S3, and mistakes."""


def coding(headers: Mapping[str, str]) -> str | None:
    """Return the coding of a response, None if it has no coding."""
    found = headers.get("content-encoding", "").strip().lower()
    return None if found in _NONE else found


def is_known(name: str) -> bool:
    """Return whether a coding can be unpacked here."""
    return name in _KNOWN


def body(headers: Mapping[str, str], received: Iterable[bytes], most: int) -> bytes:
    """Return a body of at most `most` bytes, unpacked. Raises FetchError for a larger one."""
    name = coding(headers)
    if name is not None and not is_known(name):
        raise FetchError("content-coding", name)
    found = bytearray()
    for piece in unpack(received) if name else received:
        found += piece
        if len(found) > most:
            raise FetchError("too-large", f"more than {most:,} bytes")
    return bytes(found)


def start(headers: Mapping[str, str], received: Iterable[bytes], most: int) -> bytes:
    """Return about `most` bytes of the beginning of a body, unpacked as far as possible."""
    name = coding(headers)
    found = bytearray()
    if name is None or is_known(name):
        try:
            for piece in unpack(received) if name else received:
                found += piece
                if len(found) >= most:
                    break
        except FetchError as failure:
            if failure.code != "content-coding":
                raise
    return bytes(found)


def unpack(received: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the unpacked bytes, from all members of gzip.

    Raises FetchError if the bytes are not packed, or break off.
    """
    engine, begun = zlib.decompressobj(_ANY), False
    for data in received:
        while data:
            if engine.eof:  # another member, or padding
                if not (data := data.lstrip(b"\0")):
                    break
                engine = zlib.decompressobj(_ANY)
            try:
                piece = engine.decompress(data, _PIECE)
            except zlib.error as error:
                if begun:
                    raise FetchError("content-coding", str(error)) from error
                engine = zlib.decompressobj(-zlib.MAX_WBITS)  # bare deflate (RFC 1951)
                piece = b""
            else:
                data = engine.unconsumed_tail or engine.unused_data
            begun = True
            if piece:
                yield piece
    if rest := _flush(engine):
        yield rest
    if begun and not engine.eof:
        raise FetchError("content-coding", "the compressed bytes end too early")


def _flush(engine: Any) -> bytes:
    try:
        return bytes(engine.flush())
    except zlib.error as error:
        raise FetchError("content-coding", str(error)) from error
