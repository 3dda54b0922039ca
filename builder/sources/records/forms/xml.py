"""XML: records cut out of a file by the name of their element, each as it stands.

Between records the markup is walked; the end of a record is sought by its name. So a record that is
not well-formed harms none beside it, and only one is in memory. lxml's iterparse and expat were
tried: they keep no bytes, and stop at the first error. Each record is parsed by itself, without a
document type. What the file itself declares as entities is put in, within a bound; nothing is
fetched.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, cast
from xml.parsers import expat

from lxml import etree

from builder.sources.harvest.errors import Broken
from builder.sources.harvest.fragment import cut_fragments, read_place
from builder.sources.records.forms import form as forms
from builder.sources.records.forms.form import ByteSource, Piece
from builder.sources.records.forms.marcxml import (
    NAMESPACE,
    Repair,
    fit_leader,
    make_marc,
    read_marcxml,
)
from builder.sources.records.record import (
    ReadOptions,
    RecordFault,
    RecordItem,
    RecordsError,
    SourceRecord,
)

_CROSSREF = "doi_record journal book conference dissertation posted_content report-paper standard"
_ROWS = (
    # form, namespaces, and names of its records; a METS may hold MODS, so the outermost counts
    ("oai", r"http://www\.openarchives\.org/OAI/2\.0/", "record"),
    ("marc", r"http://www\.loc\.gov/MARC21/slim|info:lc/xmlns/marcxchange-v\d", "record"),
    ("mets", r"http://www\.loc\.gov/METS/(v2)?", "mets"),
    ("mods", r"http://www\.loc\.gov/mods/v3", "mods"),
    ("ead", r"(urn:isbn:1-931666-22-9|http://ead3\.archivists\.org/schema/.*)?", "ead"),
    ("datacite", r"http://datacite\.org/schema/kernel-.*", "resource"),
    ("crossref", r"http://www\.crossref\.org/.*", _CROSSREF),
    ("oai_dc", r"http://www\.openarchives\.org/OAI/2\.0/oai_dc/", "dc"),
)
_OTHERS = frozenset({"html", "urlset", "sitemapindex", "svg", "rss"})
"""Roots of documents that nobody means as records, unless it is declared."""
_MARKUP = re.compile(
    r"<(?:!--.*?-->|!\[CDATA\[.*?\]\]>|(?P<open>!--.*|!\[CDATA\[.*)|!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>"
    r"|\?.*?\?>"
    r"|(?P<end>/)?(?P<name>[^\s/>!?<=\"'\d][^\s/>!?<=\"']*+)(?:[^\"'<>]++|\"[^\"]*\"|'[^']*')*+>)",
    re.DOTALL,
)
_TEXT = re.compile(r"<(?:[\s=\d]|[^\"'<>!?]*<)")
"""A less-than sign that begins no markup."""
_DECLARED = re.compile(r"""\s(xmlns(?::[^\s=]+)?)\s*=\s*("[^"]*"|'[^']*')""")
_ENTITY = re.compile(r"""<!--.*?-->|<!ENTITY\s+([^\s%"'&]+)\s+("[^"]*"|'[^']*')\s*>""", re.DOTALL)
_CHARACTER = re.compile(r"&#(?:x([0-9a-fA-F]{1,5})|([0-9]{1,6}));")
_REFERENCE = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|&([^\s#;&<>\"']+);", re.DOTALL)
_PREDEFINED = frozenset(("lt", "gt", "amp", "quot", "apos"))
_LEVELS, _TIMES = 8, 4
"""Levels of entities in entities, and what a record may grow by them, beside 64 KiB."""
_PREFIX = re.compile(r"""\smetadataPrefix\s*=\s*["']([^"']+)["']""")
PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True, remove_pis=True
)


_Outer = tuple[tuple[str, str], ...]
"""Names and start tags of the elements around a record."""
_Events = Iterable[tuple[str, etree._Element]]


class _Mark(NamedTuple):
    """The start tag of a record, and what is declared around it: namespaces, and a prefix."""

    name: str
    tag: str
    outer: str
    prefix: str | None


def recognise(head: bytes, is_declared: bool = False) -> bool:
    """Return whether a file begins as XML; pages and maps of sites are left to others."""
    starts = _list_starts(head.decode(forms.find_encoding(head, "utf-8"), "replace"))
    return bool(starts) and (is_declared or _local(starts[0]).lower() not in _OTHERS)


def read(source: ByteSource, options: ReadOptions) -> Iterator[RecordItem]:
    """Yield the records of a file, and its faults. Raises RecordsError if the file is cut off."""
    with forms.open_source(source) as stream:
        head = stream.read(forms.HEAD)
        encoding = forms.find_encoding(head, options.encoding)
        name, names = _find_shape(head.decode(encoding, "replace"), options.element)

        def parse(piece: Piece, digest: bytes) -> Iterator[RecordItem]:
            try:
                yield from _read_record(piece, name, digest)
            except (etree.XMLSyntaxError, expat.ExpatError, Broken) as error:
                raise ValueError(f"it is not XML: {error}") from error

        texts = forms.read_text(head, stream, encoding)
        yield from forms.read_pieces(
            _cut(texts, names, name in ("oai", "xml")), name, options, parse
        )


def _read_record(piece: Piece, name: str, digest: bytes) -> Iterator[RecordItem]:
    """Yield a record, and what is wrong with it. Raises Broken, and errors of parsing."""
    mark: _Mark = piece.content
    place = read_place(b"<a/>", mark.outer.encode(), mark.tag.encode(), mark.name.encode())
    text = place.cut(piece.data).text
    element = etree.fromstring(text.encode(), PARSER)
    if name == "oai":
        identifier = (element.findtext("{*}header/{*}identifier") or "").strip() or None
        sets = tuple((spec.text or "").strip() for spec in element.iterfind("{*}header/{*}setSpec"))
        is_deleted = element.find("{*}header[@status='deleted']") is not None
        metadata = cut_fragments(text).metadata
        if metadata is None and not is_deleted:
            yield RecordFault(piece.place, "bad-record", "metadata", "it has no metadata")
            return
        text = metadata.text if metadata and not is_deleted else ""
        name = _name_form(metadata.namespace, metadata.name) if metadata else "xml"
        content = etree.fromstring(text.encode(), PARSER) if text else element
        record = read_marcxml(content) if name == "marc" and text else content
        header = (identifier, mark.prefix, sets, is_deleted)
        yield SourceRecord(piece.place, name, record, text, *header, digest)
    elif name == "marc":
        is_standard = etree.QName(element).namespace == NAMESPACE
        xml = text if is_standard else ""
        repairs = list[Repair]()
        fit_leader(element.findtext("{*}leader") or "", repairs)
        yield from make_marc(piece.place, read_marcxml(element), repairs, digest, xml)
    else:
        yield SourceRecord(piece.place, name, element, text, digest=digest)


def _local(element: etree._Element) -> str:
    """Return the name of an element without its prefix, which may be declared nowhere."""
    return re.split("[}:]", str(element.tag))[-1]


def _list_starts(head: str) -> list[etree._Element]:
    """Return the elements that start in the head of a file."""
    text = head.lstrip("\ufeff \t\r\n")
    parser = etree.XMLPullParser(("start",), recover=True, encoding="utf-8", resolve_entities=False)
    if text.startswith("<"):
        parser.feed(text.encode())
    return [element for _, element in cast(_Events, parser.read_events())]


@lru_cache(maxsize=1 << 10)
def _name_form(namespace: str, name: str) -> str:
    """Return the form of a record with such an element, "xml" if it is none of those known."""
    rows = (row for row in _ROWS if name in row[2].split() and re.fullmatch(row[1], namespace))
    return next((form for form, *_ in rows), "xml")


def _find_shape(head: str, element: str | None) -> tuple[str, frozenset[str]]:
    """Return the form of a file's records, and the local names of their elements.

    Without a declared element it is the outermost of a form of records, else the outermost one
    that is repeated and has elements, else the root.
    """
    starts = _list_starts(head)
    if not starts:
        raise RecordsError("it is not XML")
    spaces = (str(start.tag).rpartition("}")[0][1:] for start in starts)
    forms_ = [
        (_name_form(space, _local(start)), _local(start))
        for space, start in zip(spaces, starts, strict=True)
    ]
    if element:
        return next((form for form, name in forms_ if name == element), "xml"), frozenset({element})
    if _local(starts[0]) == "OAI-PMH":
        return "oai", frozenset({"record"})
    bare = next((start for start in starts if start.tag in ("controlfield", "datafield")), None)
    if bare is not None:
        return "marc", frozenset({"record"})
    for form, _ in forms_:
        if form != "xml":
            return form, next(frozenset(row[2].split()) for row in _ROWS if row[0] == form)
    counts = Counter((start.getparent(), _local(start)) for start in starts[1:])
    parents = {(start.getparent(), _local(start)) for start in starts if len(start)}
    repeated = (key[1] for key, number in counts.items() if number > 1 and key in parents)
    return "xml", frozenset({next(repeated, forms_[0][1])})


class _Buffer:
    """A part of a file, and a place in it; what is before that is forgotten with the next part."""

    def __init__(self, texts: Iterator[str]) -> None:
        self._texts, self._line, self._counted = texts, 1, 0
        self.text, self.at = next(texts, ""), 0

    def refill(self) -> bool:
        """Read on. Return whether there was more, and one record may be so long."""
        more = next(self._texts, "")
        self.tell_line()
        self.text, self.at, self._counted = self.text[self.at :] + more, 0, 0
        return bool(more) and len(self.text) <= forms.LONGEST

    def tell_line(self) -> int:
        """Return the number of the line of this place, from 1 on."""
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line


def _read_entities(doctype: str) -> dict[str, str]:
    """Return the texts of the internal entities that a document type declares, by name."""
    entities: dict[str, str] = {}
    for name, value in _ENTITY.findall(doctype):
        if name and name not in _PREDEFINED:
            text = _CHARACTER.sub(lambda m: chr(int(m[1] or m[2], 16 if m[1] else 10)), value[1:-1])
            if "<" not in text:  # else quotes may be of tags
                text = text.replace('"', "&#34;").replace("'", "&#39;")
            entities.setdefault(name, text)
    return entities


def _expand(text: str, entities: Mapping[str, str]) -> str:
    """Return a text with its entities put in. Raises ValueError if they are nested or too long."""
    room = _TIMES * len(text) + forms.HEAD

    def replace(match: re.Match[str]) -> str:
        nonlocal room
        value = entities.get(match[1])
        room -= len(value or "")
        if room < 0:
            raise ValueError("its entities make it too long")
        return match[0] if value is None else value

    for _ in range(_LEVELS if entities else 0):
        if not any(match[1] in entities for match in _REFERENCE.finditer(text)):
            return text
        text = _REFERENCE.sub(replace, text)
    if entities:
        raise ValueError("its entities are nested too deep")
    return text


def _make_piece(
    place: str, text: str, mark: _Mark, entities: Mapping[str, str]
) -> Piece | RecordFault:
    """Return a record with the entities put in, also into the tags around it."""
    try:
        text, tag, outer = (_expand(part, entities) for part in (text, mark.tag, mark.outer))
        data = text.encode("utf-8", "surrogateescape")
    except ValueError as error:
        return RecordFault(place, "bad-record", None, str(error))
    return Piece(place, data, mark._replace(tag=tag, outer=outer))


def _cut(
    texts: Iterator[str], names: frozenset[str], can_nest: bool
) -> Iterator[Piece | RecordFault]:
    """Yield the records of a file. Raises RecordsError if it is cut off."""
    buffer, number, outer, prefix = _Buffer(texts), 0, _Outer(), None
    entities: dict[str, str] = {}
    while True:
        start = buffer.text.find("<", buffer.at)
        mark = _MARKUP.match(buffer.text, start) if start >= 0 else None
        if mark is None or mark["open"]:
            is_text = start >= 0 and bool(_TEXT.match(buffer.text, start))
            buffer.at = start + is_text if start >= 0 else len(buffer.text)
            if is_text:
                place = f"element {number + 1}, line {buffer.tell_line()}"
                yield RecordFault(place, "bad-record", None, "a less-than sign begins no markup")
            elif not buffer.refill():
                break
            continue
        name, tag = mark["name"], mark[0]
        buffer.at = start if name else mark.end()
        if name and not mark["end"] and name.rpartition(":")[2] in names:
            end, number = _find_end(buffer, name, tag, can_nest), number + 1
            place = f"element {number}, line {buffer.tell_line()}"
            if end < 0 and len(buffer.text) > forms.LONGEST:
                yield RecordFault(place, "bad-record", None, forms.TOO_LONG)
                if _skip(buffer, name, can_nest):
                    continue
            if end < 0:
                break
            text, buffer.at = buffer.text[buffer.at : end], end
            yield _make_piece(place, text, _Mark(name, tag, _declare(outer), prefix), entities)
        elif name:
            buffer.at = mark.end()
            match = _PREFIX.search(tag)
            prefix = match[1] if match else prefix
            opened = [around for around, _ in outer]
            if mark["end"] and name in opened:  # else it is left of a damaged record
                outer = outer[: -1 - opened[::-1].index(name)]
            elif not mark["end"] and not tag.endswith("/>"):
                outer = (*outer, (name, tag))
        elif mark[0].startswith("<!DOCTYPE"):
            entities = _read_entities(mark[0])
    if outer or buffer.text[buffer.at :].strip("\0\x1a\r\n\t "):
        raise RecordsError(f"it is cut off at line {buffer.tell_line()}")


def _find_end(buffer: _Buffer, name: str, tag: str, can_nest: bool) -> int:
    """Return the end of the element that begins at this place, -1 if the file ends before.

    Where another record begins before the end, though they do not nest or no end follows, the end
    is missing.
    """
    if tag.endswith("/>"):
        return buffer.at + len(tag)
    close = re.compile(rf"</{re.escape(name)}\s*>")
    opening = re.compile(rf"<{re.escape(name)}[\s/>]")
    while True:
        text, start = buffer.text, buffer.at
        first = close.search(text, start)
        following = opening.search(text, start + 1, first.end() if first else len(text))
        if following and not can_nest:
            return following.start()
        if first and not following and text.find("<!", start, first.end()) < 0:
            return first.end()
        depth = 0
        for mark in _MARKUP.finditer(text, start) if first else ():
            if mark["name"] == name:
                depth += -1 if mark["end"] else not mark[0].endswith("/>")
                if not depth:
                    return mark.end()
        if not buffer.refill():
            following = opening.search(buffer.text, buffer.at + 1)
            return following.start() if following else -1


def _skip(buffer: _Buffer, name: str, can_nest: bool) -> bool:
    """Go behind the element that begins at this place, or to the next one if they do not nest.

    Return whether there is such a place. No more than a part of the file is in memory.
    """
    own = re.escape(name)
    tag = re.compile(rf"<(?:(?P<end>/){own}\s*|{own}(?:\s[^<>]*?)?(?P<empty>/)?)>")
    depth, at = 1, buffer.at + 1
    while True:
        for mark in tag.finditer(buffer.text, at):
            is_next = not can_nest and not mark["end"]
            depth += -1 if mark["end"] else not mark["empty"]
            if is_next or not depth:
                buffer.at = mark.start() if is_next else mark.end()
                return True
            at = mark.end()
        buffer.at = max(at, buffer.text.rfind("<", -forms.HEAD), len(buffer.text) - forms.HEAD)
        if not buffer.refill():
            return False
        at = 0


@lru_cache(maxsize=64)
def _declare(outer: _Outer) -> str:
    """Return one tag with the namespaces that these outer tags declare, the inner ones last."""
    declared = dict(pair for _, tag in outer for pair in _DECLARED.findall(tag))
    return "".join(("<a", *(f" {name}={value}" for name, value in declared.items()), ">"))
