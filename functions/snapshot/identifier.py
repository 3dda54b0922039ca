"""Identifiers: an item's identity comes from its content, so the same input gives the same items.

The local part is 24 characters of lower-case base32 (RFC 4648), 120 bits of a SHA-256.
"""

import hashlib
import re

_LENGTH = 15  # bytes; a multiple of five, so that base32 needs no padding
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_SHIFTS = range(_LENGTH * 8 - 10, -1, -10)
_NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9-]*(\.[A-Za-z][A-Za-z0-9-]*)+")


def capture_identity(
    url: bytes, date: str | None, status: int | None, digest: str | None, ordinal: int = 0
) -> str:
    """Return the local identifier of a capture.

    `url` is the URL's bytes as the archive has them, `date` the capture's date to the second as
    W3CDTF text (or as much of it as the file has), `status` the HTTP status (none for a revisit,
    of which indexes name none), `digest` the base32 SHA-1 of the payload, `ordinal` how many
    captures with the same four came before it in the same file. ARC and WARC copies of one crawl
    thus get the same identifier.
    """
    code = "" if status is None else status
    # The URL's length leads, so that no URL can imitate the fields behind it.
    rest = f"\n{date or ''}\n{code}\n{digest or ''}\n{ordinal}".encode()
    hashed = hashlib.sha256(b"%d %b%b" % (len(url), url, rest)).digest()
    number = int.from_bytes(hashed[:_LENGTH], "big")
    # The standard library takes twice as long, which shows for each capture.
    return "".join([_PAIRS[(number >> at) & 1023] for at in _SHIFTS])


def is_namespace(text: str) -> bool:
    """Tell whether `text` may be an oai-identifier's repositoryIdentifier: a dotted domain name."""
    return _NAMESPACE.fullmatch(text) is not None


def to_oai(namespace: str, local: str) -> str:
    """Return `oai:namespace:local` (OAI guidelines, oai-identifier)."""
    return f"oai:{namespace}:{local}"


def collection(namespace: str, spec: str) -> str:
    """Return the identifier of the item that the collection with that setSpec is.

    No setSpec holds a comma, and no capture's local part does, so no two are alike; and it can be
    the name of a file, as harvesters may want it.
    """
    return to_oai(namespace, spec.replace(":", ","))


def lookup_key(identifier: str) -> int:
    """Return the key under which the look-up table holds `identifier`: 63 bits, unsigned."""
    return int.from_bytes(hashlib.sha256(identifier.encode()).digest()[:8], "big") >> 1


LOOKUP_KEY = "(('0x' || left(sha256(identifier), 16))::UBIGINT >> 1)::BIGINT"
"""`lookup_key` of a column `identifier`, as DuckDB's SQL."""
