"""XML: records cut out of a file by the name of their element, each byte for byte.

Between records the markup is walked; the end of a record is sought by its name. So a record that is
not well-formed harms none beside it, and only one is in memory. lxml's iterparse and expat were
tried: they keep no bytes, and stop at the first error. Each record is parsed by itself, without a
document type: no entity is expanded, and nothing is fetched.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import IO, NamedTuple
from xml.parsers import expat

from lxml import etree

from builder.charset import detect_bom
from builder.sources.harvest.errors import Broken
from builder.sources.harvest.fragment import cut_fragments, read_place
from builder.sources.records.forms.marcxml import NAMESPACE, read_marcxml, write_marcxml
from builder.sources.records.forms.stream import CHUNK, HEAD, LONGEST, ByteSource, open_source
from builder.sources.records.record import (
    KnownRecord,
    MarcRecord,
    ReadOptions,
    RecordFault,
    RecordItem,
    RecordsError,
    SourceRecord,
    hash_record,
)

_CROSSREF = "doi_record journal book conference dissertation posted_content report-paper standard"
_ROWS = (
    # form, namespaces, and names of its records, outermost first: a METS may hold MODS
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
    rb"<(?:!--(?:.*?-->|.*\Z)|!\[CDATA\[(?:.*?\]\]>|.*\Z)|!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>|\?.*?\?>"
    rb"|(?P<end>/)?(?P<name>[^\s/>!?<=\"']++)(?:[^\"'>]++|\"[^\"]*\"|'[^']*')*+>)",
    re.DOTALL,
)
_DECLARED = re.compile(rb"""\s(xmlns(?::[^\s=]+)?)\s*=\s*("[^"]*"|'[^']*')""")
_NO_MARKUP = (b" ", b"\t", b"\r", b"\n", b"<", b"=", *(b"%d" % digit for digit in range(10)))
"""What follows a less-than sign that should have been written otherwise."""
_PREFIX = re.compile(rb"""\smetadataPrefix\s*=\s*["']([^"']+)["']""")
_ENCODING = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._\-]+)["']""")
_MARC = re.compile(rb"<(?:[^\s:<>]+:)?(?:controlfield|datafield)\s")
_PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True, remove_pis=True
)


class _Start(NamedTuple):
    """The start of an element in the head of a file; `parent` is an index, -1 of the root."""

    namespace: str
    name: str
    parent: int


class _Shape(NamedTuple):
    """The form of a file's records, and the local names of their elements."""

    form: str
    names: frozenset[bytes]


class _Cut(NamedTuple):
    """A record as it stands in its file. `outer` has what is declared around it, as a tag."""

    place: str
    name: bytes
    tag: bytes
    data: bytes
    outer: bytes
    prefix: str | None


def recognise(head: bytes, name: str = "", is_declared: bool = False) -> bool:
    """Return whether a file begins as XML; pages and maps of sites are left to others."""
    data = _recode(head, None)
    starts = _list_starts(data) if data[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else []
    return bool(starts) and (is_declared or starts[0].name.lower() not in _OTHERS)


def read(source: ByteSource, options: ReadOptions) -> Iterator[RecordItem]:
    """Yield the records of a file, and its faults. Raises RecordsError if the file is cut off."""
    with open_source(source) as stream:
        head = stream.read(HEAD)
        encoding = _find_encoding(head, options.encoding)
        shape = _find_shape(_recode(head, encoding), options.element)
        for cut in _cut(_recode_stream(head, stream, encoding), shape):
            digest = hash_record(shape.form, cut.outer + (cut.prefix or "").encode() + cut.data)
            if options.is_known(digest):
                yield KnownRecord(digest)
                continue
            try:
                place = read_place(b"<a/>", cut.outer, cut.tag, cut.name)
                text = place.cut(cut.data).text
                element = etree.fromstring(text.encode(), _PARSER)
                yield from _read_record(cut, shape.form, text, element, digest)
            except (ValueError, etree.XMLSyntaxError, Broken, expat.ExpatError) as error:
                yield RecordFault(cut.place, "bad-record", None, f"it is not XML: {error}")


def _read_record(
    cut: _Cut, form: str, text: str, element: etree._Element, digest: bytes
) -> Iterator[RecordItem]:
    """Yield a record, and what is wrong with it. Raises Broken."""
    identifier, sets, is_deleted, prefix = None, tuple[str, ...](), False, None
    if form == "oai":
        header = element.find("{*}header")
        identifier = (element.findtext("{*}header/{*}identifier") or "").strip() or None
        sets = tuple(
            spec.text.strip() for spec in element.findall("{*}header/{*}setSpec") if spec.text
        )
        is_deleted = header is not None and header.get("status") == "deleted"
        metadata, prefix, form = cut_fragments(text).metadata, cut.prefix, "xml"
        if metadata is None and not is_deleted:
            yield RecordFault(cut.place, "bad-record", "metadata", "it has no metadata")
            return
        text = metadata.text if metadata and not is_deleted else ""
        if text:
            element = etree.fromstring(text.encode(), _PARSER)
            form = _name_form(
                str(etree.QName(element).namespace or ""), etree.QName(element).localname
            )
    content: MarcRecord | etree._Element = element
    if form == "marc":
        content = record = read_marcxml(element)
        leader = element.findtext("{*}leader") or ""
        if len(leader) != 24:
            yield RecordFault(
                cut.place, "repaired-record", "leader", f"not of 24 characters: {leader!r}"
            )
        is_deleted = is_deleted or record.leader[5] == "d"
        text = text if etree.QName(element).namespace == NAMESPACE else write_marcxml(record)
    yield SourceRecord(cut.place, form, content, text, identifier, prefix, sets, is_deleted, digest)


def _find_encoding(head: bytes, declared: str | None) -> str:
    """Return the encoding of a file: a mark counts, then the configuration, then the XML itself."""
    if bom := detect_bom(head):
        return {"utf-8": "utf-8-sig"}.get(bom, "utf-16")
    unmarked = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}.get(head[:2])
    match = _ENCODING.match(head)
    return unmarked or declared or (match[1].decode() if match else "utf-8")


def _recode(head: bytes, encoding: str | None) -> bytes:
    """Return the first bytes of a file in UTF-8."""
    name = encoding or _find_encoding(head, None)
    try:
        return codecs.getincrementaldecoder(name)("replace").decode(head).encode()
    except LookupError:
        return head


def _recode_stream(head: bytes, stream: IO[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the bytes of a file in UTF-8. What cannot be decoded spoils its own record alone.

    Raises RecordsError.
    """
    try:
        is_utf8 = codecs.lookup(encoding).name in ("utf-8", "ascii")
        decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
    except LookupError as error:
        raise RecordsError(f"it declares the encoding {encoding}, which is none") from error
    while head:
        text = "" if is_utf8 else decoder.decode(head)
        yield head if is_utf8 else text.encode("utf-8", "surrogatepass")
        head = stream.read(CHUNK)


def _list_starts(head: bytes) -> list[_Start]:
    """Return the starts of elements up to the first error in the head of a file."""
    starts, path = list[_Start](), [-1]

    def start(name: str, _: object) -> None:
        namespace, _, local = name.rpartition(" ")
        starts.append(_Start(namespace, local, path[-1]))
        path.append(len(starts) - 1)

    parser = expat.ParserCreate("UTF-8", " ")
    parser.StartElementHandler, parser.EndElementHandler = start, lambda _: path.pop()
    with suppress(expat.ExpatError):
        parser.Parse(head, False)
    return starts


@lru_cache(maxsize=1 << 10)
def _name_form(namespace: str, name: str) -> str:
    """Return the form of a record with such an element, "xml" if it is none of those known."""
    rows = (row for row in _ROWS if name in row[2].split() and re.fullmatch(row[1], namespace))
    return next((form for form, *_ in rows), "xml")


def _find_shape(head: bytes, element: str | None) -> _Shape:
    """Return how the records of a file are cut.

    Without a declared element it is the outermost of a form of records, else the outermost one
    that is repeated and has elements, else the root.
    """
    starts = _list_starts(head)
    if not starts:
        raise RecordsError("it is not XML")
    root = starts[0]
    if element:
        forms = (
            _name_form(start.namespace, start.name) for start in starts if start.name == element
        )
        return _Shape(next(forms, "xml"), frozenset({element.encode()}))
    if root.name == "OAI-PMH":
        return _Shape("oai", frozenset({b"record"}))
    if root.name in ("record", "collection") and not root.namespace and _MARC.search(head):
        return _Shape("marc", frozenset({b"record"}))
    for start in starts:
        if (form := _name_form(start.namespace, start.name)) != "xml":
            names = next(row[2] for row in _ROWS if row[0] == form)
            return _Shape(form, frozenset(names.encode().split()))
    parents = {start.parent for start in starts}
    counts = Counter(
        (start.parent, start.name) for at, start in enumerate(starts) if at in parents and at
    )
    repeated = (name for (_, name), number in counts.items() if number > 1)
    return _Shape("xml", frozenset({next(repeated, root.name).encode()}))


class _Buffer:
    """A part of a file, and a place in it; what is before that is forgotten with the next part."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._line, self._counted = pieces, 1, 0
        self.data, self.at = next(pieces, b""), 0

    def refill(self) -> bool:
        """Read on. Return whether there was more, and one record may be so long."""
        more = next(self._pieces, b"")
        self.tell_line()
        self.data, self.at, self._counted = self.data[self.at :] + more, 0, 0
        return bool(more) and len(self.data) <= LONGEST

    def tell_line(self) -> int:
        """Return the number of the line of this place, from 1 on."""
        self._line += self.data.count(b"\n", self._counted, self.at)
        self._counted = self.at
        return self._line


def _cut(pieces: Iterator[bytes], shape: _Shape) -> Iterator[_Cut]:
    """Yield the records of a file in UTF-8. Raises RecordsError if it is cut off."""
    buffer, number, outer, prefix = _Buffer(pieces), 0, tuple[bytes, ...](), None
    while True:
        start = buffer.data.find(b"<", buffer.at)
        mark = _MARKUP.match(buffer.data, start) if start >= 0 else None
        if mark is None or (mark.end() == len(buffer.data) and not mark["name"]):
            is_text = start >= 0 and buffer.data[start + 1 : start + 2] in _NO_MARKUP
            buffer.at = start + is_text if start >= 0 else len(buffer.data)
            if not is_text and not buffer.refill():
                break
            continue
        name, tag = mark["name"], mark[0]
        buffer.at = start if name else mark.end()
        if name and not mark["end"] and name.rpartition(b":")[2] in shape.names:
            end = _find_end(buffer, name, tag, shape.form in ("oai", "xml"))
            if end < 0:
                break
            number += 1
            place = f"element {number}, line {buffer.tell_line()}"
            data = buffer.data[buffer.at : end]
            buffer.at = end
            yield _Cut(place, name, tag, data, _declare(outer), prefix)
        elif name:
            buffer.at = mark.end()
            match = _PREFIX.search(tag)
            prefix = match[1].decode() if match else prefix
            if not tag.endswith(b"/>"):
                outer = outer[:-1] if mark["end"] else (*outer, tag)
    if outer or buffer.data[buffer.at :].strip():
        raise RecordsError(f"it is cut off at line {buffer.tell_line()}")


def _find_end(buffer: _Buffer, name: bytes, tag: bytes, can_nest: bool) -> int:
    """Return the end of the element that begins at this place, -1 if the file ends before.

    Where another record begins before the end, though they do not nest or no end follows, the end
    is missing.
    """
    if tag.endswith(b"/>"):
        return buffer.at + len(tag)
    close = re.compile(rb"</%s\s*>" % re.escape(name))
    opening = re.compile(rb"<%s[\s/>]" % re.escape(name))
    while True:
        data, start = buffer.data, buffer.at
        first = close.search(data, start)
        following = opening.search(data, start + 1, first.end() if first else len(data))
        if following and not can_nest:
            return following.start()
        if first and not following and data.find(b"<!", start, first.end()) < 0:
            return first.end()
        depth = 0
        for mark in _MARKUP.finditer(data, start) if first else ():
            if mark["name"] == name:
                depth += -1 if mark["end"] else not mark[0].endswith(b"/>")
                if not depth:
                    return mark.end()
        if not buffer.refill():
            following = opening.search(buffer.data, buffer.at + 1)
            return following.start() if following else -1


@lru_cache(maxsize=64)
def _declare(outer: tuple[bytes, ...]) -> bytes:
    """Return one tag with the namespaces that these outer tags declare, the inner ones last."""
    declared = dict(pair for tag in outer for pair in _DECLARED.findall(tag))
    return b"".join((b"<a", *(b" %s=%s" % pair for pair in declared.items()), b">"))
