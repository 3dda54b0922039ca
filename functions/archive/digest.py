"""Declared digests (ISO 28500, 5.8) in the labels, cases and alphabets that crawlers write."""

import re
from contextlib import suppress
from dataclasses import dataclass, field

_SIZES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_DIGITS = str.maketrans(_ALPHABET, "0123456789ABCDEFGHIJKLMNOPQRSTUV")
_DIGIT_BYTES = bytes.maketrans(_ALPHABET.encode(), b"0123456789ABCDEFGHIJKLMNOPQRSTUV")
_ORDINARY = re.compile(rb"sha1:([A-Z2-7]{32})")
_BASE32 = re.compile(r"[A-Z2-7]+")
_DECLARED = re.compile(r"\s*([A-Za-z]+-?\d+)[:=]\s*([A-Za-z0-9+/_=-]+)\s*")


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
            return base32(self.value)
        return f"{self.algorithm}:{self.value.hex()}"


def parse(text: bytes) -> DeclaredDigest | None:
    """Return the digest that a field declares, None if its form is unknown."""
    ordinary = _ORDINARY.fullmatch(text)
    if ordinary:
        value = int(ordinary[1].translate(_DIGIT_BYTES), 32).to_bytes(20, "big")
        return DeclaredDigest("sha1", value, ordinary[1].decode("ascii"))
    match = _DECLARED.fullmatch(text.decode("latin-1"))
    if not match:
        return None
    algorithm = match[1].lower().replace("-", "")
    size = _SIZES.get(algorithm)
    if size is None:
        return None
    for value in _values(match[2], size):
        if len(value) == size:
            return DeclaredDigest(algorithm, value)
    return None


def base32(value: bytes) -> str:
    """Return bytes in base32 (RFC 4648); their number is a multiple of five."""
    # The standard library takes three times as long, which matters: this runs for each capture.
    number = int.from_bytes(value, "big")
    return "".join([_PAIRS[(number >> at) & 1023] for at in range(len(value) * 8 - 10, -1, -10)])


def _values(text: str, size: int) -> list[bytes]:
    values: list[bytes] = []
    if len(text) == 2 * size:
        with suppress(ValueError):
            values.append(bytes.fromhex(text))
    bare = text.rstrip("=").upper()
    if len(bare) == -(-size * 8 // 5) and _BASE32.fullmatch(bare):
        spare = len(bare) * 5 - size * 8
        values.append((int(bare.translate(_DIGITS), 32) >> spare).to_bytes(size, "big"))
    return values
