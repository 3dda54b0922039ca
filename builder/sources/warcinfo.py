"""What an archive file says about its crawl: a warcinfo record, or an ARC's first block.

A warcinfo record (ISO 28500, section 6.2) has named fields. Heritrix writes the same terms into the
version block of an ARC file as XML (`arcmetadata`). Both give the same few fields.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from functions.archive.record import RecordBlock

MAX_BYTES = 1 << 16
"""The most bytes of a block that are read."""
_LONGEST = 1000  # characters of a value

FIELDS = {
    # field of Crawl: names in lower case, the preferred one first
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
    """What an archive file says about its crawl; None for what it does not say.

    Texts hold no character that XML 1.0 forbids.
    """

    software: str | None = None
    operator: str | None = None
    part_of: str | None = None
    description: str | None = None

    def fill_from(self, more: "Crawl") -> "Crawl":
        """Fill missing fields from another: the first record of a file has priority."""
        return Crawl(
            self.software or more.software,
            self.operator or more.operator,
            self.part_of or more.part_of,
            self.description or more.description,
        )


def read_start(block: RecordBlock) -> bytes:
    """Return the first MAX_BYTES bytes of a block."""
    data = b""
    while len(data) < MAX_BYTES and (piece := block.take(MAX_BYTES - len(data))):
        data += piece
    return data


def parse_crawl(block: bytes) -> Crawl | None:
    """Parse a warcinfo record or an ARC version block; None if it has no known field."""
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
