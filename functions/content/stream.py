"""Pieces of bytes as a file; the last piece is given only after verification."""

import hashlib
import io
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from functions.archive.chunked import ChunkedDecoder
from functions.archive.coding import ContentCodingError, Pieces
from functions.archive.digest import DeclaredDigest
from functions.content.errors import ContentError

_STEP = 1 << 16


def of(stream: BinaryIO) -> Pieces:
    """Yield the bytes of a stream in pieces."""
    while piece := stream.read(_STEP):
        yield piece


def verify(
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
    if any(one is not None and one.digest() == declared.value for one in (stored, plain, block)):
        return
    found = DeclaredDigest(declared.algorithm, stored.digest()).text()
    raise ContentError(
        "damaged", f"{where}: the bytes have the digest {found}, not {declared.text()}"
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
    return cast(BinaryIO, io.BufferedReader(_VerifiedStream(first, pieces), _STEP))


def _hold_last(decoded: Pieces, source: Pieces) -> Iterator[bytes]:
    held = b""
    try:
        for piece in decoded:
            if held:
                yield held
            held = piece
    except ContentCodingError as error:
        raise ContentError("undecodable", str(error)) from error
    for _ in source:  # bytes behind the end of a coding
        pass
    if held:
        yield held


class _VerifiedStream(io.RawIOBase):
    def __init__(self, first: bytes, pieces: Iterator[bytes]) -> None:
        self._rest = memoryview(first)
        self._pieces = pieces

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
