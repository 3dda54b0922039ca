"""Names of OAI-PMH: identifiers of items, computed from content, and set specifications.

The same input gives the same identifiers. The local part is 24 characters of lower-case base32
(RFC 4648), 120 bits of a SHA-256.

A set specification is hierarchical. OAI-PMH 2.0 (section 2.6) allows a level the characters
`A-Z a-z 0-9 - _ . ! ~ * ' ( )`. All other characters, and `!`, become `!XX` for each byte of their
UTF-8 form.
"""

import hashlib
import re
from base64 import b32encode
from collections.abc import Iterable, Sequence
from urllib.parse import quote, unquote

MANDATORY = "oai_dc"
"""The metadata format that every record is available in (OAI-PMH 2.0, section 3.4)."""
_LENGTH = 15  # bytes; a multiple of five, so that base32 needs no padding
_PLAIN = "-_.!~*'();/?:@&=+$,"
"""Characters that an oai-identifier allows unescaped, besides letters, digits and %."""
_WITHIN = _PLAIN.replace(":", "").replace(",", "")
_SPELLINGS = {"repec": "RePEc", "relis": "ReLIS", "mapin": "mapin"}
_AUTHORITIES = tuple(f"{name}:" for name in _SPELLINGS.values())
"""Prefixes of handles that cannot be confused with another item's local part."""
_PERSON_BY_DATE = re.compile(r"((?:RePEc|ReLIS|mapin):per:\d{4}-\d\d-\d\d:)(.*)", re.DOTALL)
_PERSON = r"p[a-z]{1,15}[0-9]{1,6}"
"""A person's short id: shorter than a capture's local part, and without a colon."""
_NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9-]*(\.[A-Za-z][A-Za-z0-9-]*)+")
_SET_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~*'()")
_ORDINARY = re.compile(r"[A-Za-z0-9\-_.~*'()]+")
_ESCAPE = re.compile(rb"!([0-9A-F]{2})")
# RFC 3986, but unescaped characters that XML Schema's anyURI would escape are allowed.
_URI = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.\-]*:|(?=[^:/?#]*(?:[/?#]|\Z)))"
    r"(?://(?:[A-Za-z0-9\-._~!$&'()*+,;=:]*@)?"
    r"[^/?#@:\[\]%\s]*(?::[0-9]{1,5})?(?=[/?#]|\Z)|(?!//))"
    r"(?:[^#%\[\]]|%[0-9A-Fa-f]{2})*(?:\#(?:[^#%\[\]]|%[0-9A-Fa-f]{2})*)?"
)
NOT_IN_XML = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffd-\uffff]")
"""Characters that no argument and no URI of the protocol has."""
_DATASETS = {
    # level 1: name of its level 2 sets
    "platform": "Datasets of the platform {}",
    "host": "Datasets of {}",
    "strategy": "Datasets stored as {}",
    "status": "Datasets with the status {}",
}
_PART = r"(?:[A-Za-z0-9\-_.!~*'();/?@&=+$]|%[0-9A-F]{2})*"
RESERVED = ("collection", "dataset", "harvested")
"""First words of identifiers of items that are not own records."""
_TABLE = r"[A-Za-z0-9][A-Za-z0-9\-_.]*"
_LOCAL = re.compile(
    # a capture, a collection, a dataset with or without its version, a harvested item, a record
    rf"[a-z2-7]{{24}}|collection(,[A-Za-z0-9\-_.!~*'()]+)*"
    rf"|dataset,{_PART},{_PART},{_PART}(,{_PART})?|harvested,{_PART},{_PART}"
    rf"|{_TABLE},{_PART}"
)
_SPEC = re.compile(r"[A-Za-z0-9\-_.!~*'()]+(:[A-Za-z0-9\-_.!~*'()]+)*")


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
    return b32encode(hashed[:_LENGTH]).decode("ascii").lower()


def is_namespace(text: str) -> bool:
    """Return whether `text` is a repositoryIdentifier (oai-identifier): a dotted domain name."""
    return _NAMESPACE.fullmatch(text) is not None


def to_oai(namespace: str, local: str) -> str:
    """Return `oai:namespace:local` (OAI guidelines, oai-identifier)."""
    return f"oai:{namespace}:{local}"


def collection_identifier(namespace: str, spec: str) -> str:
    """Return the identifier of the collection item with that setSpec.

    It is unique, because setSpecs and the local parts of captures contain no comma. It can also be
    a file name, which harvesters may need.
    """
    return to_oai(namespace, spec.replace(":", ","))


def dataset_identity(platform: str, domain: str, id_: str) -> str:
    """Return the local part of the identifier of a platform's dataset with that id.

    The version that was listed first has it, and further versions add theirs. In all parts,
    characters that an oai-identifier does not allow become %XX of their UTF-8 bytes. So do %, comma
    and colon. It is therefore unique among datasets and all other items.
    """
    return ",".join(["dataset", *(quote(part, safe=_WITHIN) for part in (platform, domain, id_))])


def version_identity(identity: str, version: str) -> str:
    """Return the local part of a version other than the first, of the dataset's `identity`."""
    return f"{identity},{quote(version, safe=_WITHIN)}"


def harvested_identifier(namespace: str, place: str, id_: str) -> str:
    """Return the identifier of a harvested item that cannot keep its own.

    `place` is the repository's base URL without the scheme, because a host can have many
    repositories. The parts are escaped as in `dataset`.
    """
    parts = ["harvested", *(quote(part, safe=_WITHIN) for part in (place, id_))]
    return to_oai(namespace, ",".join(parts))


def is_table(text: object) -> bool:
    """Return whether `text` can be the name of a table of own records."""
    return isinstance(text, str) and re.fullmatch(_TABLE, text) is not None and text not in RESERVED


def record_identifier(namespace: str, table: str, id_: str) -> str:
    """Return the identifier of an own record: the name of its table, and its identifier there.

    The identifier is escaped as in `dataset`. It is unique: no other item has the table's name
    before a comma.
    """
    return to_oai(namespace, f"{table},{quote(id_, safe=_WITHIN)}")


def is_prefix(text: str) -> bool:
    """Return whether `text` is a valid prefix of handles: `oai:` alone, or with a namespace."""
    head, _, rest = text.partition(":")
    return head == "oai" and (rest == "" or (rest[-1] == ":" and is_namespace(rest[:-1])))


def canonical_handle(handle: str) -> str:
    """Return the canonical form of a handle.

    It is in lower case, with two exceptions. The authority has its own spelling, and the name of a
    person by date is in upper case (RePEc:per:1974-08-14:...). White space becomes single spaces:
    such a handle is invalid, but still recognised.
    """
    lower = " ".join(handle.split()).lower()
    head, colon, tail = lower.partition(":")
    if colon and head in _SPELLINGS:
        lower = f"{_SPELLINGS[head]}:{tail}"
        if tail.startswith("per:") and (match := _PERSON_BY_DATE.fullmatch(lower)):
            return match[1] + match[2].upper()
    return lower


def find_handle(identifier: str) -> str | None:
    """Return the canonical form of a handle with a known authority, or of a person's short id.

    The text `oai:` may precede a handle, as in RePEc's own identifiers; then `%XX` is decoded.
    None if the text is no handle.
    """
    bare = identifier.removeprefix("oai:")
    handle = canonical_handle(identifier if bare == identifier else unquote(bare))
    return handle if handle.startswith(_AUTHORITIES) or re.fullmatch(_PERSON, handle) else None


def template_identifier(prefix: str, handle: str) -> str:
    """Return the identifier of the template with that handle; it is unique.

    Characters that an oai-identifier does not allow, and %, become %XX of their UTF-8 bytes. The
    first character of a handle is also escaped, unless the handle has a known authority or is a
    person's short id. Otherwise the author of a template could choose the identifier of a capture
    or a collection; those contain no %.
    """
    text = quote(handle, safe=_PLAIN)
    is_handle = text.startswith(("%", *_AUTHORITIES)) or re.fullmatch(_PERSON, text)
    if text and not is_handle:
        text = f"%{ord(text[0]):02X}{text[1:]}"
    return prefix + text


def template_identifier_sql(prefix: str, handle: str) -> str:
    """Return `template` as DuckDB SQL over expressions for the prefix and the handle."""
    text = f"url_encode({handle})"
    for character in sorted({*_PLAIN} - {*"-_.~"}):
        plain = character.replace("'", "''")
        text = f"replace({text}, '%{ord(character):02X}', '{plain}')"
    is_handle = " OR ".join(f"starts_with({text}, '{head}')" for head in ("%", *_AUTHORITIES))
    is_handle += f" OR regexp_full_match({text}, '{_PERSON}')"
    marked = f"'%' || hex(left({text}, 1)) || substr({text}, 2)"
    return f"({prefix} || if({is_handle}, {text}, {marked}))"


def is_own(identifier: str, namespace: str, prefix: str) -> bool:
    """Return whether the identifier has the form of one of the store's own items.

    Harvested items may keep identifiers of any form, which are not the store's own. `prefix` is
    that of templates, "" if the store has none.
    """
    local = identifier.removeprefix(to_oai(namespace, ""))
    if local != identifier and _LOCAL.fullmatch(local):
        return True
    begin = prefix or to_oai(namespace, "")
    handle = identifier.removeprefix(begin)
    return handle != identifier and identifier == template_identifier(
        begin, canonical_handle(unquote(handle))
    )


def lookup_key(identifier: str) -> int:
    """Return the key of `identifier` in the look-up table: 63 bits, unsigned."""
    return int.from_bytes(hashlib.sha256(identifier.encode()).digest()[:8], "big") >> 1


LOOKUP_KEY = "(('0x' || left(sha256(identifier), 16))::UBIGINT >> 1)::BIGINT"
"""`lookup_key` of a column `identifier`, as DuckDB SQL."""


def escape_level(name: str) -> str:
    """Return `name` as one level of a set specification; an empty name becomes `!`."""
    if not name:
        return "!"
    if _ORDINARY.fullmatch(name):
        return name
    return "".join(chr(b) if b in _SET_PLAIN else f"!{b:02X}" for b in name.encode("utf-8"))


def unescape_level(level: str) -> str:
    """Return the name that `escape` turned into `level`."""
    if level == "!":
        return ""
    raw = _ESCAPE.sub(lambda m: bytes([int(m.group(1), 16)]), level.encode("ascii"))
    return raw.decode("utf-8", "replace")


def join_set(*names: str) -> str:
    """Return the specification with the levels `names`, from the root down, each escaped."""
    return ":".join(map(escape_level, names))


def split_set(spec: str) -> tuple[str, ...]:
    """Return the names of the levels of `spec`, from the root down."""
    return tuple(map(unescape_level, spec.split(":")))


def is_uri(text: str) -> bool:
    """Return whether `text` is a valid anyURI for the schema."""
    # The schema strips blanks, so a text of blanks is empty.
    is_blank = not text.strip()
    return not is_blank and _URI.fullmatch(text) is not None and not NOT_IN_XML.search(text)


def is_foreign(identifier: str, namespace: str) -> bool:
    """Return whether an item from elsewhere keeps its identifier: oai scheme, another namespace.

    Otherwise a repository could give an item one of our own identifiers.
    """
    own = identifier.lower().startswith(f"oai:{namespace.lower()}:")
    return identifier.startswith("oai:") and is_uri(identifier) and not own


def is_set(spec: str) -> bool:
    """Return whether `spec` has the form that the protocol's schema requires of a setSpec."""
    return _SPEC.fullmatch(spec) is not None


def set_lineage(spec: str) -> tuple[str, ...]:
    """Return `spec` and all its ancestors, the root first."""
    levels = spec.split(":")
    return tuple(":".join(levels[: n + 1]) for n in range(len(levels)))


def most_specific_sets(specs: Iterable[str]) -> tuple[str, ...]:
    """Return `specs` sorted, without duplicates and without ancestors of other members."""
    members = {*specs}
    above = {a for spec in members for a in set_lineage(spec)[:-1]}
    return tuple(sorted(members - above))


def is_within_set(spec: str, above: str) -> bool:
    """Return whether `spec` is `above` or below it."""
    return spec == above or spec.startswith(f"{above}:")


def set_name(spec: str, names: dict[str, str], name: str | None = None) -> str:
    """Return the set's name for people: the configured one, else `name`.

    If both are missing, the name is composed of the levels.
    """
    return names.get(spec) or name or _make_set_name(split_set(spec))


def _make_set_name(levels: Sequence[str]) -> str:
    if levels[:2] == ("domain", "ip"):
        return "Captures of " + (".".join(levels[2:]) or "addresses without a name")
    if levels[0] == "domain":
        return "Captures of " + (".".join(reversed(levels[1:])) or "all web sites")
    if levels[0] == "mime":
        return "Captures of " + (f"type {'/'.join(levels[1:])}" if levels[1:] else "all types")
    if levels[0] == "collection":
        return "Collection " + (" / ".join(levels[1:]) or "of any name")
    if levels[0] == "RePEc":
        of = "archive" if len(levels) == 2 else "series"
        return f"RePEc {of} {':'.join(levels[1:])}" if levels[1:] else "RePEc"
    if levels[0] == "type":
        return "Templates of " + (f"type {levels[1]}" if levels[1:] else "all types")
    if levels[0] == "repository":
        return "Harvested from " + (" / ".join(levels[1:]) or "other repositories")
    if levels[0] == "from":
        if len(levels) > 2:
            return f"{levels[1]}: {' / '.join(levels[2:])}"
        return "Sets of " + (levels[1] if levels[1:] else "other repositories")
    if levels[0] in _DATASETS and len(levels) <= 2:
        of = _DATASETS[levels[0]]
        return of.format(levels[1]) if levels[1:] else f"Datasets by {levels[0]}"
    return " / ".join(levels)
