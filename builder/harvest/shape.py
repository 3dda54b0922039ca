"""Shapes: pages of records that are written as most are, read without building a tree of them.

Expat sees that a page is sound XML, and that no comment and no literal section is in it: then each
less-than sign is that of a tag, and regular expressions tell exactly where records and their leaves
lie. What is written otherwise is left to builder.harvest.page: a record alone, or the whole page.
Both ways say the same of any page.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from builder.harvest.page import Entry, Page, needing, record, scope, size, spans
from builder.harvest.row import DC

_URI = "http://purl.org/dc/elements/1.1/"
_ATTRIBUTES = r"(?:\s+[^\s=<>\"'/]++\s*=\s*(?:\"[^\"<]*+\"|'[^'<]*+'))*+\s*"
_HEAD = re.compile(
    rf"(?:\xef\xbb\xbf)?(?:<\?(?:[^?]|\?(?!>))*+\?>\s*)*+<OAI-PMH{_ATTRIBUTES}>\s*"
    rf"<responseDate>(?P<date>[^<]*)</responseDate\s*>\s*<request{_ATTRIBUTES}"
    rf"(?:/>|>[^<]*</request\s*>)\s*<ListRecords{_ATTRIBUTES}>\s*".encode("latin-1")
)
_TAIL = re.compile(
    rf"(?:(?P<token><resumptionToken)(?P<said>{_ATTRIBUTES})"
    r"(?:/>|>(?P<text>[^<]*)</resumptionToken\s*>)\s*)?"
    r"</ListRecords\s*>\s*</OAI-PMH\s*>\s*".encode()
)
_SAID = re.compile(r"\scompleteListSize\s*=\s*[\"']\s*([0-9]+)\s*[\"']")
_BEGIN, _END, _ALIKE = b"<record>", b"</record>", b"<record"
_SPACE = re.compile(rb"\s*")
_HEADER = re.compile(
    r"<record>\s*<header(?:\s+status=\"([^\"<&]*)\")?>\s*<identifier>([^<]*)</identifier>\s*"
    r"<datestamp>([^<]*)</datestamp>((?:\s*<setSpec>[^<]*</setSpec>)*+)\s*</header>\s*"
    r"(?:<metadata>\s*<([^\s<>/]++)|</record>)",
    re.ASCII,
)
_SET = re.compile("<setSpec>([^<]*)<")
_LEAF = re.compile(rf"<([^\s<>/]++)(?:>|{_ATTRIBUTES}>)([^<]*+)</", re.ASCII)
_BARE = re.compile(rf"<[^\s<>/]++{_ATTRIBUTES}/>", re.ASCII)
_REST = re.compile(r"\s*>\s*</metadata\s*>\s*</record\s*>", re.ASCII)
_REFERENCE = re.compile("&(?:#x([0-9A-Fa-f]+)|#([0-9]+)|([a-z]+));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def read(data: bytes) -> Page | None:
    """Read an answer to ListRecords; None where it is for builder.harvest.page to tell."""
    head = _HEAD.match(data)
    names = None if head is None else _names(data)
    if head is None or names is None:
        return None
    reader = _Reader(data, data[: head.end()], names)
    try:
        at = reader.records(head.end())
        f"{data[: head.end()].decode()}{data[at:].decode()}"
    except UnicodeDecodeError:  # expat takes some of what is no UTF-8
        return None
    tail = _TAIL.fullmatch(data, at)
    if tail is None:
        return None
    said = tail["said"] or b""
    if b"completeListSize" in said and (b"&" in said or said.count(b"completeListSize") > 1):
        return None
    many = _SAID.search(said.decode())
    return Page(
        date=_meaning(head["date"].decode()),
        entries=tuple(reader.entries),
        token=None if tail["token"] is None else _meaning((tail["text"] or b"").decode()),
        size=size(many[1]) if many else None,
    )


class _Odd(Exception):
    pass


def _names(data: bytes) -> dict[str, str] | None:
    """Return the names of Dublin Core by how they are written throughout a page.

    None for what is no sound XML, or where a less-than sign may be none of a tag, or where a
    prefix means Dublin Core here and something else there.
    """
    bound: set[tuple[str | None, str | None]] = set()
    parser = expat.ParserCreate("utf-8", "}")
    parser.StartNamespaceDeclHandler = lambda prefix, uri: bound.add((prefix, uri))
    parser.CommentHandler = parser.StartCdataSectionHandler = _refuse
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(data, True)
    except (_Odd, expat.ExpatError):
        return None
    if b"<?" in data[data.index(b"<OAI-PMH") :]:
        return None
    prefixes = {prefix for prefix, uri in bound if uri == _URI}
    if any(prefix in prefixes and uri != _URI for prefix, uri in bound):
        return None
    return {f"{prefix}:{name}" if prefix else name: name for prefix in prefixes for name in DC}


def _refuse(*_: object) -> None:
    raise _Odd


@dataclass(slots=True)
class _Reader:
    """Reads the records of a sound page behind its head, in which they lie."""

    data: bytes
    head: bytes
    names: Mapping[str, str]
    entries: list[Entry] = field(default_factory=list)
    _scope: list[tuple[str, str]] = field(init=False)
    _sets: dict[str, tuple[str, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Tell what is declared around the records, for elements that hold what."""
        self._scope = [(use.decode(), text) for _, use, text in scope(self.head)]

    def records(self, at: int) -> int:
        """Read one record after the other from there on; return where the last one ends."""
        data, entry, keep = self.data, self._entry, self.entries.append
        while data.startswith(_ALIKE, at):
            behind = data.find(_ALIKE, at + 1)
            end = data.find(_END, at) if behind < 0 else data.rfind(_END, at, behind)
            if end >= 0 and data.startswith(_BEGIN, at):
                end += len(_END)
            else:  # it is not the only one of its name in there, or has attributes
                found = next(spans(data, b"", at), None)
                if found is None or found[0] != at:
                    return at
                end = found[1]
            keep(entry(at, end))
            at = end
            if not data.startswith(b"<", at):
                space = _SPACE.match(data, end)
                at = space.end() if space else end
        return at

    def _entry(self, start: int, end: int) -> Entry:
        raw = self.data[start:end].decode()
        plain = "&" not in raw and "\r" not in raw
        header = _HEADER.match(raw)
        dc = None if header is None else self._dc(raw, header, plain)
        if header is None or dc is None:
            return record(needing(self.data[start:end], scope(self.head)), start, end)
        status, identifier, stamp, specs, _ = header.groups()
        sets = self._sets.get(specs)
        if sets is None:
            sets = self._sets[specs] = tuple(map(_meaning, _SET.findall(specs)))
        added = "".join([text for use, text in self._scope if use in raw])
        return Entry(
            identifier.strip() if plain else _meaning(identifier),
            stamp.strip() if plain else _meaning(stamp),
            status is not None and status.strip().lower() == "deleted",
            sets, dc, raw.replace("<record", f"<record{added}", 1), start, end,
        )  # fmt: skip

    def _dc(
        self, raw: str, header: re.Match[str], plain: bool
    ) -> dict[str, tuple[str, ...]] | None:
        """Return the elements of Dublin Core, None where they do not lie flat in the metadata."""
        root, begin = header[5], header.end()
        if root is None:
            return {} if begin == len(raw) else None
        names = self.names
        if not names:
            return {}
        end = raw.rfind(f"</{root}")
        if end < 0 or not _REST.fullmatch(raw, end + 2 + len(root)):
            return None
        leaves = _LEAF.findall(raw, begin, end)
        tags = raw.count("<", begin, end)
        if tags != 2 * len(leaves) and tags != 2 * len(leaves) + len(
            _BARE.findall(raw, begin, end)
        ):
            return None
        found: dict[str, list[str]] = {}
        for leaf, value in leaves:
            if leaf in names:
                text = value.strip() if plain else _meaning(value)
                if text:
                    name = names[leaf]
                    if name in found:
                        found[name].append(text)
                    else:
                        found[name] = [text]
        return {name: tuple(some) for name, some in found.items()}


def _meaning(text: str) -> str:
    """Return what a text without markup means, without space around it."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "&" in text:
        text = _REFERENCE.sub(_character, text)
    return text.strip()


def _character(reference: re.Match[str]) -> str:
    wide, number, name = reference.groups()
    if name:
        return _NAMED[name]
    return chr(int(wide, 16) if wide else int(number))
