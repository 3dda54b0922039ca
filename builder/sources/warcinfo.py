"""What an archive file says of the crawl that made it: a warcinfo record, or an ARC's first block.

A warcinfo record (ISO 28500, section 6.2) holds named fields; Heritrix writes the same terms into
the version block of an ARC file as XML (`arcmetadata`). Both are read for the same few fields.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from functions.archive.record import RecordBlock

MAX_BYTES = 1 << 16
"""Bytes of a block that are looked at."""
_LONGEST = 1000  # characters of a value

FIELDS = {
    # field of Crawl: the names that are looked for, lower case, the better one first
    "software": ("software",),
    "operator": ("operator",),
    "part_of": ("ispartof",),
    "description": ("description",),
}
_LINE = re.compile(rb"^([A-Za-z][A-Za-z0-9\-_.]*)[ \t]*:[ \t]*([^\r\n]*)", re.MULTILINE)
_ELEMENT = re.compile(rb"<(?:[A-Za-z0-9_.\-]+:)?([A-Za-z][A-Za-z0-9_.\-]*)(?:\s[^<>]*)?>([^<]*)</")
_SPACE = re.compile(r"\s+")
_ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Crawl:
    """What an archive file says of the crawl that made it; None where it says nothing.

    Texts hold no character that XML 1.0 forbids.
    """

    software: str | None = None
    operator: str | None = None
    part_of: str | None = None
    description: str | None = None

    def fill_from(self, more: "Crawl") -> "Crawl":
        """Return this with what it lacks from another: a file of several is that of its first."""
        return Crawl(
            self.software or more.software,
            self.operator or more.operator,
            self.part_of or more.part_of,
            self.description or more.description,
        )


def read_start(block: RecordBlock) -> bytes:
    """Return the first bytes of a block, as many as are looked at for what it says of a crawl."""
    data = b""
    while len(data) < MAX_BYTES and (piece := block.take(MAX_BYTES - len(data))):
        data += piece
    return data


def parse_crawl(block: bytes) -> Crawl | None:
    """Return what a warcinfo record's or an ARC version block says; None if it says nothing."""
    found: dict[str, str] = {}
    for name, value in _parse_fields(block):
        found.setdefault(name, value)
    values = {
        field: next((found[name] for name in names if name in found), None)
        for field, names in FIELDS.items()
    }
    return Crawl(**values) if any(values.values()) else None


def _parse_fields(block: bytes) -> Iterator[tuple[str, str]]:
    is_xml = b"<arcmetadata" in block
    for name, value in (_ELEMENT if is_xml else _LINE).findall(block):
        text = value.decode("utf-8", "replace")
        text = _ILLEGAL.sub("", html.unescape(text) if is_xml else text)
        text = _SPACE.sub(" ", text).strip()[:_LONGEST].rstrip()
        if text:
            yield name.decode("ascii").lower(), text
