"""OAI identifiers, computed from content: the same input gives the same identifiers.

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
"""Characters that an oai-identifier allows unescaped, besides letters, digits and %."""
_WITHIN = _PLAIN.replace(":", "").replace(",", "")
_AUTHORITIES = ("RePEc:", "ReLIS:", "mapin:")
"""Prefixes of handles that cannot be confused with another item's local part."""
_PERSON = r"p[a-z]{1,15}[0-9]{1,6}"
"""A person's short id: shorter than a capture's local part, and without a colon."""
_NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9-]*(\.[A-Za-z][A-Za-z0-9-]*)+")


def capture_identity(
    url: bytes, date: str | None, status: int | None, digest: str | None, ordinal: int = 0
) -> str:
    """Return the local identifier of a capture.

    `url` is the URL's bytes as archived. `date` is the capture's date to the second as W3CDTF text,
    or as much of it as the file has. `status` is the HTTP status, None for a revisit because
    indexes give none for it. `digest` is the base32 SHA-1 of the payload. `ordinal` is the number
    of earlier captures in the same file with the same four values. ARC and WARC copies of one crawl
    thus get the same identifier.
    """
    code = "" if status is None else status
    # The URL's length comes first, so that no URL can imitate the fields behind it.
    rest = f"\n{date or ''}\n{code}\n{digest or ''}\n{ordinal}".encode()
    hashed = hashlib.sha256(b"%d %b%b" % (len(url), url, rest)).digest()
    number = int.from_bytes(hashed[:_LENGTH], "big")
    # base64.b32encode takes twice as long, which matters for every capture.
    return "".join([_PAIRS[(number >> at) & 1023] for at in _SHIFTS])


def is_namespace(text: str) -> bool:
    """Return whether `text` is a repositoryIdentifier (oai-identifier): a dotted domain name."""
    return _NAMESPACE.fullmatch(text) is not None


def to_oai(namespace: str, local: str) -> str:
    """Return `oai:namespace:local` (OAI guidelines, oai-identifier)."""
    return f"oai:{namespace}:{local}"


def collection(namespace: str, spec: str) -> str:
    """Return the identifier of the collection item with that setSpec.

    It is unique, because setSpecs and the local parts of captures contain no comma. It can also be
    a file name, which harvesters may need.
    """
    return to_oai(namespace, spec.replace(":", ","))


def dataset(namespace: str, platform: str, domain: str, id_: str) -> str:
    """Return the identifier of a platform's dataset with that id.

    All versions share it. In all three parts, characters that an oai-identifier does not allow
    become %XX of their UTF-8 bytes. So do %, comma and colon. The identifier is therefore unique
    among datasets and all other items.
    """
    return to_oai(namespace, dataset_identity(platform, domain, id_))


def dataset_identity(platform: str, domain: str, id_: str) -> str:
    """Return the local part of `dataset`."""
    return ",".join(["dataset", *(quote(part, safe=_WITHIN) for part in (platform, domain, id_))])


def harvested_identifier(namespace: str, place: str, id_: str) -> str:
    """Return the identifier of a harvested item that cannot keep its own.

    `place` is the repository's base URL without the scheme, because a host can have many
    repositories. The parts are escaped as in `dataset`.
    """
    parts = ["harvested", *(quote(part, safe=_WITHIN) for part in (place, id_))]
    return to_oai(namespace, ",".join(parts))


def is_prefix(text: str) -> bool:
    """Return whether `text` is a valid prefix of handles: `oai:` alone, or with a namespace."""
    head, _, rest = text.partition(":")
    return head == "oai" and (rest == "" or (rest[-1] == ":" and is_namespace(rest[:-1])))


def template(prefix: str, handle: str) -> str:
    """Return the identifier of the template with that handle; it is unique.

    Characters that an oai-identifier does not allow, and %, become %XX of their UTF-8 bytes. The
    first character of a handle is also escaped, unless the handle has a known authority or is a
    person's short id. Otherwise the author of a template could choose the identifier of a capture
    or a collection; those contain no %.
    """
    text = quote(handle, safe=_PLAIN)
    known = text.startswith(("%", *_AUTHORITIES)) or re.fullmatch(_PERSON, text)
    if text and not known:
        text = f"%{ord(text[0]):02X}{text[1:]}"
    return prefix + text


def template_sql(prefix: str, handle: str) -> str:
    """Return `template` as DuckDB SQL over expressions for the prefix and the handle."""
    text = f"url_encode({handle})"
    for character in sorted({*_PLAIN} - {*"-_.~"}):
        plain = character.replace("'", "''")
        text = f"replace({text}, '%{ord(character):02X}', '{plain}')"
    known = " OR ".join(f"starts_with({text}, '{head}')" for head in ("%", *_AUTHORITIES))
    known += f" OR regexp_full_match({text}, '{_PERSON}')"
    marked = f"'%' || hex(left({text}, 1)) || substr({text}, 2)"
    return f"({prefix} || if({known}, {text}, {marked}))"


def lookup_key(identifier: str) -> int:
    """Return the key of `identifier` in the look-up table: 63 bits, unsigned."""
    return int.from_bytes(hashlib.sha256(identifier.encode()).digest()[:8], "big") >> 1


LOOKUP_KEY = "(('0x' || left(sha256(identifier), 16))::UBIGINT >> 1)::BIGINT"
"""`lookup_key` of a column `identifier`, as DuckDB SQL."""
