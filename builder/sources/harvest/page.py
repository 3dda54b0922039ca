"""Parser of OAI-PMH 2.0 responses: returns records as parsed values and as the original XML.

The tree is built by the standard library in C, which is fast but does not keep the original text.
So the record elements are also located in the bytes. This is safe because in well-formed XML only
markup begins with a less-than sign. The envelope is recognised by local names, because some
repositories omit its namespace.
"""

import mmap
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from builder.sources.harvest.errors import Broken
from builder.sources.harvest.version import DC

_DC_NAMES = {f"{{http://purl.org/dc/elements/1.1/}}{name}": name for name in DC}
_UNBOUND = 27  # XML_ERROR_UNBOUND_PREFIX
_NAME = rb"[^\s<>/:=\"'!?]+"
_HTML = re.compile(rb"\s*<(?:!doctype\s+)?html\b", re.IGNORECASE)
_TAG = re.compile(rb"<(?:(%s):)?%s((?:\s(?:[^>\"']|\"[^\"]*\"|'[^']*')*)?)>" % (_NAME, _NAME))
_DECLARED = re.compile(rb"\sxmlns(?::(%s))?\s*=\s*(?:\"([^\"]*)\"|'([^']*)')" % _NAME)
_ELEMENT = rb"<(?:(?P<end>/?)%s(?=[\s/>])(?:[^>\"']++|\"[^\"]*\"|'[^']*')*+>"
_APART = rb"|!--.*?-->|!\[CDATA\[.*?\]\]>|\?.*?\?>|(?P<type>!DOCTYPE))"
_PLAIN = b"<record>"
_LISTS = frozenset({"ListRecords", "GetRecord"})
_DOCTYPE = "it declares a document type, which OAI-PMH does not allow"

Scope = list[tuple[bytes, bytes, str]]
"""For each namespace in scope: the prefix of its declaration and of its use, and the declaration.
"""


class PageEntry(NamedTuple):
    """A record, or a header without `text` if only identifiers are listed.

    The members up to `text` are those of a HarvestedRow. `text` is the record's element with the
    namespaces that it needs. `start` and `end` are its offsets in the bytes of the response.
    `fault` describes what was repaired in it. `bare` means that the record is not deleted, and yet
    has no element in its metadata.
    """

    identifier: str
    datestamp: str
    deleted: bool
    sets: tuple[str, ...]
    dc: Mapping[str, tuple[str, ...]]
    text: str = ""
    start: int = 0
    end: int = 0
    fault: str | None = None
    bare: bool = False


@dataclass(frozen=True, slots=True)
class ListPage:
    """A response. `token` is None if there is no such element, and "" if it is empty.

    `rows` are the fields of sets and formats; Identify has one row, and all its `emails` and
    `descriptions`, each an element with the namespaces that it needs. `lost` are the identifiers of
    unreadable records, each with the reason. `torn` means that the list is cut off.
    """

    date: str | None = None
    errors: tuple[tuple[str, str], ...] = ()
    entries: tuple[PageEntry, ...] = ()
    rows: tuple[Mapping[str, str], ...] = ()
    emails: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    token: str | None = None
    size: int | None = None
    lost: tuple[tuple[str, str], ...] = ()
    torn: bool = False


def read(data: bytes) -> ListPage:
    """Read a response in UTF-8, whatever encoding it declares. Raises Broken."""
    root = _tree(data)
    if _local(root.tag) != "OAI-PMH":
        raise Broken(f"not OAI-PMH, but a document <{_local(root.tag)[:40]}>")
    date: str | None = None
    errors: list[tuple[str, str]] = []
    verb, listed = "", None
    for child in root:
        name = _local(child.tag)
        if name == "responseDate":
            date = _text(child)
        elif name == "error":
            errors.append((child.get("code", ""), " ".join(_text(child).split())))
        elif name != "request":
            verb, listed = name, child
    if listed is None:
        return ListPage(date, tuple(errors))
    token = next((element for element in listed if _local(element.tag) == "resumptionToken"), None)
    rows = [listed] if verb == "Identify" else []
    if verb in ("ListSets", "ListMetadataFormats"):
        rows = [element for element in listed if _local(element.tag) != "resumptionToken"]
    return ListPage(
        date=date,
        errors=tuple(errors),
        entries=_entries(verb, listed, data),
        rows=tuple(map(_fields, rows)),
        emails=tuple(_text(field) for field in listed if _local(field.tag) == "adminEmail"),
        descriptions=tuple(_descriptions(data)) if verb == "Identify" else (),
        token=None if token is None else _text(token),
        size=None if token is None else size(token.get("completeListSize", "").strip()),
    )


def records(file: mmap.mmap) -> Iterator[PageEntry]:
    """Yield the `record` elements of a file, each with its namespaces. Raises Broken."""
    for start, end in spans(file, rb"(?:%s:)?record" % _NAME):
        yield record(file[start:end].decode(), start, end)


def record(text: str, start: int, end: int) -> PageEntry:
    """Read a stand-alone `record` element, found at these offsets. Raises Broken."""
    return _entry(_tree(text.encode()), text, start, end)


def _tree(data: bytes) -> Element:
    parser = ElementTree.XMLParser(encoding="utf-8")
    try:
        parser.feed(data)
        return parser.close()
    except ElementTree.ParseError as error:
        is_page = _HTML.match(data[:1000])
        reason = "it is a page of HTML" if is_page else str(error)
        raise Broken(f"not XML: {reason}", unbound=error.code == _UNBOUND) from error
    except UnicodeDecodeError as error:  # expat raises this for some encodings
        raise Broken(f"not XML: not UTF-8: {error.reason}") from error


def _entries(verb: str, listed: Element, data: bytes) -> tuple[PageEntry, ...]:
    if verb == "ListIdentifiers":
        headers = (element for element in listed if _local(element.tag) == "header")
        return tuple(_entry([header], "", 0, 0) for header in headers)
    if verb not in _LISTS:
        return ()
    elements = [element for element in listed if _local(element.tag) == "record"]
    where = places(data, len(elements))
    around = scope(data[: where[0][0]] if where else b"")
    return tuple(
        _entry(element, needing(data[start:end], around), start, end)
        for element, (start, end) in zip(elements, where, strict=True)
    )


def places(data: bytes, count: int) -> list[tuple[int, int]]:
    """Return the offsets of the records of a response. Raises Broken unless `count` are found.

    A plain search for the tags is enough if nothing else looks like a record's tag.
    """
    alike = {data.count(b"<record>"), data.count(b"<record"), data.count(b"</record")}
    if alike == {count} and b":record" not in data and b"<!DOCTYPE" not in data:
        offsets, end = [], 0
        for _ in range(count):
            start = data.index(_PLAIN, end)
            end = data.index(b">", data.index(b"</record", start)) + 1
            offsets.append((start, end))
        return offsets
    first = _TAG.search(data)
    offsets = list(spans(data, b"%s:record" % first[1] if first and first[1] else b"record"))
    if len(offsets) != count:  # some repositories give their records other prefixes
        offsets = list(spans(data, rb"(?:%s:)?record" % _NAME))
    if len(offsets) != count:
        raise Broken(f"{count:,} records, but only {len(offsets):,} could be located")
    return offsets


def _entry(record: Element | list[Element], text: str, start: int, end: int) -> PageEntry:
    values: dict[str, tuple[str, ...]] = {}
    dc: dict[str, tuple[str, ...]] = {}
    deleted, bare = False, bool(text)
    for part in record:
        name = _local(part.tag)
        if name == "header":
            deleted = part.get("status", "").strip().lower() == "deleted"
            for field in part:
                name = _local(field.tag)
                values[name] = (*values.get(name, ()), _text(field))
        elif name == "metadata":
            bare = bare and not len(part)
            for element in (child for metadata in part for child in metadata):
                term = _DC_NAMES.get(element.tag)
                if term is not None and (content := _text(element)):
                    dc[term] = (*dc.get(term, ()), content)
    return PageEntry(
        values["identifier"][0] if "identifier" in values else "",
        values["datestamp"][0] if "datestamp" in values else "",
        deleted,
        values.get("setSpec", ()),
        dc,
        text,
        start,
        end,
        bare=bare and not deleted,
    )


def _descriptions(data: bytes) -> Iterator[str]:
    """Yield the elements within the descriptions of an Identify response."""
    if b"<!DOCTYPE" in data:
        return
    head = b""
    for start, end in spans(data, rb"(?:%s:)?description" % _NAME):
        head = head or data[:start]
        outer = _TAG.match(data, start)
        inner = data[outer.end() if outer else end : data.rindex(b"<", start, end)]
        if outer and (first := _TAG.search(inner)):
            yield needing(inner[first.start() :].strip(), scope(head + outer[0]))


def _fields(row: Element) -> dict[str, str]:
    fields: dict[str, str] = {}
    for field in row:
        if not len(field):
            fields.setdefault(_local(field.tag), _text(field))
    return fields


def _text(element: Element) -> str:
    return ("".join(element.itertext()) if len(element) else element.text or "").strip()


@cache
def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def size(text: str) -> int | None:
    """Return a completeListSize, or None if it is invalid."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def spans(data: bytes | mmap.mmap, name: bytes, at: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the outermost elements of that name in well-formed XML, from `at` on.

    `name` is a regular expression for that of their tags. Raises Broken for a document type.
    """
    depth = start = 0
    for match in _find_tags(name).finditer(data, at):
        if match["type"]:
            raise Broken(_DOCTYPE)
        if match["end"] is None:
            continue
        if match["end"]:
            depth -= 1
        else:
            start = start if depth else match.start()
            depth += data[match.end() - 2 : match.end() - 1] != b"/"
        if not depth:
            yield start, match.end()


@lru_cache
def _find_tags(name: bytes) -> re.Pattern[bytes]:
    """Return the expression for tags of that name, and for markup that may look alike."""
    return re.compile(_ELEMENT % name + _APART, re.DOTALL)


def scope(head: bytes) -> Scope:
    """Return the namespaces that are declared before the first record."""
    declarations: dict[bytes, str] = {}
    for tag in _TAG.finditer(head):
        for prefix, double, single in _DECLARED.findall(tag[2]):
            uri = (double or single).replace(b'"', b"&quot;")
            name = b"xmlns:" + prefix if prefix else b"xmlns"
            declarations[prefix] = (b' %s="%s"' % (name, uri)).decode()
    return [
        (b"xmlns:" + prefix if prefix else b"xmlns", prefix and prefix + b":", text)
        for prefix, text in declarations.items()
    ]


def needing(element: bytes, scope: Scope) -> str:
    """Return an element with those namespaces of its scope that it uses."""
    if element.startswith(_PLAIN):
        added = "".join([text for _, use, text in scope if use in element])
        return f"<record{added}{element[len(_PLAIN) - 1 :].decode()}"
    tag = _TAG.match(element)
    assert tag is not None  # every element begins with a tag
    own = {
        b"xmlns:" + declaration[0] if declaration[0] else b"xmlns"
        for declaration in _DECLARED.findall(tag[2])
    }
    added = "".join([text for name, use, text in scope if name not in own and use in element])
    at = tag.start(2)
    return f"{element[:at].decode()}{added}{element[at:].decode()}"
