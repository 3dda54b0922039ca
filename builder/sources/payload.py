"""The payload of a record: its digest, its length and its decoded first bytes."""

import hashlib
from dataclasses import dataclass, field

from functions.archive.chunked import ChunkedDecoder
from functions.archive.coding import decode_head
from functions.archive.digest import DeclaredDigest, base32, parse
from functions.archive.message import HttpHead
from functions.archive.record import BufferedBlock, RecordBlock, RecordFault, RecordHeader


@dataclass(slots=True)
class Payload:
    """A payload as stored, behind the HTTP head and before decoding."""

    digest: str = ""
    """SHA-1 in base32; empty if the payload's bytes are uncertain."""
    length: int = 0
    head: bytes = b""
    """The first bytes without transfer and content codings; empty if they cannot be decoded."""
    faults: list[RecordFault] = field(default_factory=list)
    matches_declared: bool = False
    """Whether it has the declared digest, which proves it complete."""


def read_declared(record: RecordHeader, faults: list[RecordFault]) -> DeclaredDigest | None:
    """Return the payload digest that a record declares; an unreadable one is a fault."""
    text = record.fields.get(b"warc-payload-digest")
    if not text:
        return None
    declared = parse(text)
    if declared is None:
        detail = text[:100].decode("latin-1").encode("unicode_escape").decode("ascii")
        done = "published without it" if record.type == "revisit" else "not compared"
        faults.append(("digest-unreadable", "WARC-Payload-Digest", detail, done))
    return declared


def read_payload(
    block: RecordBlock,
    first: bytes,
    message: HttpHead | None,
    declared: DeclaredDigest | None,
    limit: int,
) -> Payload:
    """Read the rest of `block`, whose bytes `first` were already read.

    `limit` bounds the head, in bytes before and after decoding. The declared digest is compared
    with that of the stored payload and, if it is chunked, with that of the de-chunked one.
    """
    coded = message is not None and message.has_codings()
    chunked = coded and message is not None and "chunked" in message.tokens(b"transfer-encoding")
    if isinstance(block, BufferedBlock) and not first:
        data = block.take()
        payload = _hash_whole(data, declared, chunked)
        data = data[:limit]
    else:
        piece = first or block.take()
        hashes = _Hashes(declared, chunked)
        head: list[bytes] = []
        held = length = 0
        while piece:
            hashes.update(piece)
            length += len(piece)
            if held < limit:
                head.append(piece[: limit - held])
                held += len(head[-1])
            piece = block.take()
        payload = Payload(base32(hashes.sha1.digest()), length)
        if not block.missing:
            payload.faults += hashes.compare()
            payload.matches_declared = declared is not None and not payload.faults
        data = b"".join(head)
    if chunked:
        decoder = ChunkedDecoder()
        data = decoder.feed(data) + decoder.flush()
    codings = message.codings() if coded and message else []
    if codings and data:
        decoded, wrong = decode_head(data, codings, limit)
        if wrong:
            done = "type and title not read" if decoded is None else "read without decoding"
            payload.faults.append(("content-encoding-undecoded", "Content-Encoding", wrong, done))
        data = decoded or b""
    payload.head = data
    return payload


def _hash_whole(data: bytes, declared: DeclaredDigest | None, chunked: bool) -> Payload:
    value = hashlib.sha1(data, usedforsecurity=False).digest()
    if declared and declared.algorithm == "sha1" and declared.value == value:
        return Payload(declared.text(), len(data), matches_declared=True)
    payload = Payload(base32(value), len(data))
    if declared:
        hashes = _Hashes(declared, chunked)
        hashes.update(data)
        payload.faults += hashes.compare()
        payload.matches_declared = not payload.faults
    return payload


class _Hashes:
    """The required digests of one payload, computed in pieces."""

    def __init__(self, declared: DeclaredDigest | None, chunked: bool) -> None:
        self.sha1 = hashlib.sha1(usedforsecurity=False)
        self._declared = declared
        other = declared is not None and declared.algorithm != "sha1"
        self._raw = (
            hashlib.new(declared.algorithm, usedforsecurity=False) if declared and other else None
        )
        self._decoder = ChunkedDecoder() if chunked and declared else None
        self._decoded = (
            hashlib.new(declared.algorithm, usedforsecurity=False)
            if self._decoder and declared
            else None
        )

    def update(self, piece: bytes) -> None:
        self.sha1.update(piece)
        if self._raw is not None:
            self._raw.update(piece)
        if self._decoder is not None and self._decoded is not None:
            self._decoded.update(self._decoder.feed(piece))

    def compare(self) -> list[RecordFault]:
        """Return a fault unless the stored or de-chunked bytes have the declared digest."""
        if self._declared is None:
            return []
        raw = (self._raw or self.sha1).digest()
        if raw == self._declared.value:
            return []
        if self._decoder is not None and self._decoded is not None:
            self._decoded.update(self._decoder.flush())
            if self._decoded.digest() == self._declared.value:
                return []
        found = DeclaredDigest(self._declared.algorithm, raw).text()
        detail = f"declared {self._declared.text()}, found {found}"
        return [
            ("digest-mismatch", "WARC-Payload-Digest", detail, "published with the computed one")
        ]
