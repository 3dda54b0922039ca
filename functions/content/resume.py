"""Resume keys: where a search continues, by its place in the order of all captures, not by count.

A key is a checksum and its fields, as base64url without padding. The checksum covers the namespace
and the store's id, because a place is valid in one store only. It is not a secret: it detects
errors, not forgery. Therefore every field is also validated, and a forged key can request nothing
that a query could not. Keys do not expire. In a later snapshot the search continues at the same
place, and what follows is as it is in that snapshot.
"""

import base64
import binascii
import re
import zlib
from dataclasses import dataclass

from functions.content.protocols import BytePlace
from functions.snapshot import schema

LONGEST = 1024
"""Maximum length of a key in characters."""

MARKS = 4
"""Maximum number of collapse hashes (16 digits) in a key: one for each collapsed field."""

_CHECK_BYTES = 4
_HIGHEST = 2**63 - 1
_FIELDS = re.compile(
    rf"1:([0-9]{{1,14}}):([0-9]{{1,19}}):((?:[0-9a-f]{{16}}){{0,{MARKS}}}):([!-~]{{0,"
    rf"{schema.SURT_LONGEST}}})"
)


def cut(surt: str) -> str:
    """Return the part of a SURT that the order of captures uses."""
    return surt[: schema.SURT_LONGEST]


@dataclass(frozen=True, slots=True)
class ResumeKey:
    """Where a search continues: behind `place`. `mark` is the collapse hashes of the last line."""

    place: BytePlace
    mark: str = ""

    def to_text(self, namespace: str, store: str = "") -> str:
        """Return the key as text for that namespace and that store's id."""
        at = self.place
        data = f"1:{at.stamp}:{at.position}:{self.mark}:{at.surt}".encode("ascii")
        whole = _check(data, namespace, store) + data
        return base64.urlsafe_b64encode(whole).rstrip(b"=").decode("ascii")

    @staticmethod
    def from_text(text: str, namespace: str, store: str = "") -> "ResumeKey | None":
        """Parse the output of `to_text`; None for anything else."""
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
        # Each key has only one valid text, though base64 has spare bits and numbers could have
        # zeros.
        return key if key.to_text(namespace, store) == text else None


def _check(data: bytes, namespace: str, store: str) -> bytes:
    issuer = f"{namespace} {store}"
    return zlib.crc32(data, zlib.crc32(issuer.encode())).to_bytes(_CHECK_BYTES, "big")
