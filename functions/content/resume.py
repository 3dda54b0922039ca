"""Resume keys: where a search goes on, by its place in the order of all captures, never by count.

A key is a checksum and its fields, as base64url without padding. The checksum begins with the
namespace and the store's id, for places mean something in one store alone. The checksum is no
secret and finds slips, not forgers; so every field is tested as well, and a forged key that passes
asks for nothing that a request could not. A key is good for ever: in a later snapshot the search
goes on at the same place, where what has changed meanwhile behind it comes as it is then.
"""

import base64
import binascii
import re
import zlib
from dataclasses import dataclass

from functions.content.protocols import BytePlace
from functions.snapshot import schema

LONGEST = 1024
"""Characters that a key has at most."""

MARKS = 4
"""Marks of 16 digits that a key has at most: one for each field that a search collapses by."""

_CHECK_BYTES = 4
_HIGHEST = 2**63 - 1
_FIELDS = re.compile(
    rf"1:([0-9]{{1,14}}):([0-9]{{1,19}}):((?:[0-9a-f]{{16}}){{0,{MARKS}}}):([!-~]{{0,"
    rf"{schema.SURT_LONGEST}}})"
)


def cut(surt: str) -> str:
    """Return what of a SURT is in the order of captures."""
    return surt[: schema.SURT_LONGEST]


@dataclass(frozen=True, slots=True)
class ResumeKey:
    """Where a search goes on: behind `place`. `mark` is the collapse marks of the last line."""

    place: BytePlace
    mark: str = ""

    def to_text(self, namespace: str, store: str = "") -> str:
        """Return the key as the store of that id, in that namespace, gives it out."""
        at = self.place
        data = f"1:{at.stamp}:{at.position}:{self.mark}:{at.surt}".encode("ascii")
        whole = _check(data, namespace, store) + data
        return base64.urlsafe_b64encode(whole).rstrip(b"=").decode("ascii")

    @staticmethod
    def from_text(text: str, namespace: str, store: str = "") -> "ResumeKey | None":
        """Read what `to_text` wrote; None for all else."""
        if not text.isascii() or len(text) > LONGEST:
            return None
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        check, data = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
        match = _FIELDS.fullmatch(data.decode("latin-1"))
        if match is None or int(match[2]) > _HIGHEST:
            return None
        if check != _check(data, namespace, store):
            return None
        key = ResumeKey(BytePlace(match[4], int(match[1]), int(match[2])), match[3])
        # One text for each key: base64 has spare bits, and numbers could begin with zeros.
        return key if key.to_text(namespace, store) == text else None


def _check(data: bytes, namespace: str, store: str) -> bytes:
    issuer = f"{namespace} {store}"
    return zlib.crc32(data, zlib.crc32(issuer.encode())).to_bytes(_CHECK_BYTES, "big")
