"""Digests that records declare (ISO 28500, 5.8), with labels and alphabets as crawlers write."""

import re
from base64 import b32decode, b32encode
from contextlib import suppress
from dataclasses import dataclass, field

_DIGEST_BYTES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}
_DIGITS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789ABCDEFGHIJKLMNOPQRSTUV")
_SHA1_BASE32 = re.compile(rb"sha1:([A-Z2-7]{32})")
_BASE32 = re.compile(r"[A-Z2-7]+")
_LABELLED = re.compile(r"\s*([A-Za-z]+-?\d+)[:=]\s*([A-Za-z0-9+/_=-]+)\s*")


@dataclass(slots=True)
class DeclaredDigest:
    """A digest: its algorithm, as hashlib names it, and its bytes. Do not change it."""

    algorithm: str
    value: bytes
    written: str | None = field(default=None, compare=False, repr=False)
    """The result of `text`, if the file has that form."""

    def text(self) -> str:
        """Return base32 without label for a SHA-1; else label and hexadecimal digits."""
        if self.written:
            return self.written
        if self.algorithm == "sha1":
            return b32encode(self.value).decode("ascii")
        return f"{self.algorithm}:{self.value.hex()}"


def parse_digest(text: bytes) -> DeclaredDigest | None:
    """Return the digest that a field declares, None if its form is unknown."""
    ordinary = _SHA1_BASE32.fullmatch(text)
    if ordinary:
        value = int(ordinary[1].translate(_DIGITS), 32).to_bytes(20, "big")
        return DeclaredDigest("sha1", value, ordinary[1].decode("ascii"))
    match = _LABELLED.fullmatch(text.decode("latin-1"))
    algorithm = match[1].lower().replace("-", "") if match else ""
    size = _DIGEST_BYTES.get(algorithm)
    digest = _decode_digest(match[2], size) if match and size else None
    return None if digest is None else DeclaredDigest(algorithm, digest)


def _decode_digest(text: str, size: int) -> bytes | None:
    """Return the `size` bytes of a digest in hexadecimal digits or in base32; else None."""
    if len(text) == 2 * size:
        with suppress(ValueError):
            return bytes.fromhex(text)
    bare = text.rstrip("=").upper()
    if len(bare) == -(-size * 8 // 5) and _BASE32.fullmatch(bare):
        return b32decode(bare + "=" * (-len(bare) % 8))
    return None
