"""Identifiers: an item's identity comes from its content, so the same input gives the same items.

The local part is 24 characters of lower-case base32 (RFC 4648), 120 bits of a SHA-256.
"""

import hashlib
import re
from urllib.parse import quote

_LENGTH = 15  # bytes; a multiple of five, so that base32 needs no padding
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_SHIFTS = range(_LENGTH * 8 - 10, -1, -10)
_PLAIN = "-_.!~*'();/?:@&=+$,"
"""What an oai-identifier may hold as it is, besides letters and digits, but for the %."""
_WITHIN = _PLAIN.replace(":", "").replace(",", "")
_AUTHORITIES = ("RePEc:", "ReLIS:", "mapin:")
"""What handles begin with that can be taken for no other item's local part."""
_PERSON = r"p[a-z]{1,15}[0-9]{1,6}"
"""A person's short id, of fewer characters than a capture's local part, and without a colon."""
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


def dataset(namespace: str, platform: str, domain: str, id_: str) -> str:
    """Return the identifier of the dataset that a platform has under that id.

    It is the same for each version of it. In all three parts what an oai-identifier may not hold
    is %XX of its UTF-8 form, and so are %, comma and colon: no two datasets have the same, and no
    other item has it.
    """
    return to_oai(namespace, dataset_identity(platform, domain, id_))


def dataset_identity(platform: str, domain: str, id_: str) -> str:
    """Return the local part of `dataset`."""
    return ",".join(["dataset", *(quote(part, safe=_WITHIN) for part in (platform, domain, id_))])


def harvested_identifier(namespace: str, place: str, id_: str) -> str:
    """Return the identifier of an item that was harvested, and cannot keep its own.

    `place` is the base URL of its repository without the scheme: a host has many. The parts are
    escaped as those of `dataset` are.
    """
    parts = ["harvested", *(quote(part, safe=_WITHIN) for part in (place, id_))]
    return to_oai(namespace, ",".join(parts))


def is_prefix(text: str) -> bool:
    """Tell whether `text` may stand before handles: `oai:` alone, or with a namespace."""
    head, _, rest = text.partition(":")
    return head == "oai" and (rest == "" or (rest[-1] == ":" and is_namespace(rest[:-1])))


def template(prefix: str, handle: str) -> str:
    """Return the identifier of the template with that handle; no two handles have the same.

    What an oai-identifier may not hold is %XX of its UTF-8 form, the % itself included. So is the
    first character of a handle that is of no known authority and no person's short id: whoever
    writes a template could else give it the identifier of a capture or a collection, which have
    no %.
    """
    text = quote(handle, safe=_PLAIN)
    known = text.startswith(("%", *_AUTHORITIES)) or re.fullmatch(_PERSON, text)
    if text and not known:
        text = f"%{ord(text[0]):02X}{text[1:]}"
    return prefix + text


def template_sql(prefix: str, handle: str) -> str:
    """Return `template` in DuckDB's SQL, of expressions for the prefix and the handle."""
    text = f"url_encode({handle})"
    for character in sorted({*_PLAIN} - {*"-_.~"}):
        plain = character.replace("'", "''")
        text = f"replace({text}, '%{ord(character):02X}', '{plain}')"
    known = " OR ".join(f"starts_with({text}, '{head}')" for head in ("%", *_AUTHORITIES))
    known += f" OR regexp_full_match({text}, '{_PERSON}')"
    marked = f"'%' || hex(left({text}, 1)) || substr({text}, 2)"
    return f"({prefix} || if({known}, {text}, {marked}))"


def lookup_key(identifier: str) -> int:
    """Return the key under which the look-up table holds `identifier`: 63 bits, unsigned."""
    return int.from_bytes(hashlib.sha256(identifier.encode()).digest()[:8], "big") >> 1


LOOKUP_KEY = "(('0x' || left(sha256(identifier), 16))::UBIGINT >> 1)::BIGINT"
"""`lookup_key` of a column `identifier`, as DuckDB's SQL."""
