"""Paths to the values of a record, in the language of its content.

MARC: `001`, `leader/6`, `008/35-37` (characters, from 0), `245$ab` (subfields of a field, joined by
a space in their order), `650$ax(--)` (by two dashes), `020$a` (each such subfield), `650` (all
subfields joined), `100$a/9-12`, `856[40]$u` (indicators: `_` is a blank, `?` any). Within a field:
`$ab`, `/0-3`.

XML: an XPath 1.0 from the record's element. Prefixes are those of NAMESPACES and of the document,
and `*:title` is an element of any namespace. A bare name (`title`) stands for all descendants of
that local name, and `A -> B` for the values of B at each element of A. Values are the texts of
elements, with white space normalised.

Columns: the name of a column, or several (`title|name`): the first counts that has a value.

In all of them, a text in single quotes is a constant, and `:url` a value of the context.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import product
from operator import add
from typing import Any

from lxml import etree

from builder.sources.records.record import MarcField, MarcRecord, SourceRecord
from functions.snapshot.errors import SheafError

NAMESPACES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "oai_dc": "http://www.openarchives.org/OAI/2.0/oai_dc/",
    "mods": "http://www.loc.gov/mods/v3",
    "marc": "http://www.loc.gov/MARC21/slim",
    "mets": "http://www.loc.gov/METS/",
    "ead": "urn:isbn:1-931666-22-9",
    "datacite": "http://datacite.org/schema/kernel-4",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
}
"""Prefixes that paths may use without a declaration."""

Context = Mapping[str, str]
"""What a record does not say: `identifier` (of OAI-PMH), `url`, `repository` (its name), and what
is declared for records that lack it, by names of Dublin Core: `rights`, `language`, `type`."""
NOTHING: Context = {}
Values = Callable[[Any, Context], Sequence[str]]
"""Returns the values of a path, from a MarcIndex, a field of MARC, an element, or columns."""
Nodes = Callable[[Any], Sequence[Any]]
"""Returns the fields or elements of a path, likewise."""
MarcIndex = Mapping[str, Sequence[MarcField]]
"""The fields of a record by tag, and its leader as a control field of that name."""

_MARC = re.compile(
    r"(?:(leader|[0-9A-Za-z]{3})(?:\[([^\]]{2})\])?)?"
    r"(?:\$([0-9A-Za-z]+)(?:\(([^)]+)\))?)?(?:/(\d+)(?:-(\d+))?)?"
)
_NAME = re.compile(r"[^\W\d][\w-]*")
_PREFIXES = re.compile(r"([A-Za-z_][\w.-]*):(?=[A-Za-z_*])")
_ANY_NAMESPACE = re.compile(r"(?<![\w)\]])\*:([\w-]+)")
_BRACES = re.compile(r"\{([^{}]+)\}")
_STRING = etree.XPath("string()")


class PathError(SheafError):
    """A path is not one of the language of the record."""


_latest: tuple[MarcRecord | None, MarcIndex] = (None, {})
"""The record that was indexed last: all its paths are asked for one after another."""


def index_fields(record: MarcRecord) -> MarcIndex:
    """Return the record's fields by tag."""
    global _latest
    if (latest := _latest)[0] is record:
        return latest[1]
    index = {"leader": [MarcField("leader", "", record.leader, ())]}
    for marc_field in record.fields:
        index.setdefault(marc_field[0], []).append(marc_field)
    _latest = (record, index)
    return index


def open_record(record: SourceRecord) -> tuple[str, Any]:
    """Return the language of paths of a record, marc, xml or columns, and what they begin at."""
    content = record.content
    if isinstance(content, MarcRecord):
        return "marc", index_fields(content)
    return "xml" if isinstance(content, etree._Element) else "columns", content


@lru_cache(4096)
def compile_path(text: str) -> Callable[[SourceRecord], list[str]]:
    """Return what gives the values of a path in a record, in order; empty ones are left out.

    Raises PathError, when it is called, for what is no path of the record's language.
    """

    def read(record: SourceRecord) -> list[str]:
        language, node = open_record(record)
        texts = compile_values(language, text)(node, NOTHING)
        return [value for raw in texts if (value := raw.strip())]

    return read


@lru_cache(4096)
def compile_pattern(text: str) -> Callable[[SourceRecord], list[str]]:
    """Return what fills the paths in braces of a pattern: `https://example.org/{001}`.

    One result for each value of a path that has several; none if a path has no value. Raises
    PathError, when it is called.
    """
    parts = _BRACES.split(text)
    paths = [compile_path(part) for part in parts[1::2]]

    def fill(record: SourceRecord) -> list[str]:
        rows = product(*[path(record) for path in paths])
        texts = ("".join(map(add, parts[::2], (*row, ""))) for row in rows)
        return list(dict.fromkeys(texts))

    return fill


@cache
def compile_values(language: str, text: str) -> Values:
    """Return what gives the values of a path: a MarcIndex or field, an element, or columns."""
    if text[:1] == text[-1:] == "'" and len(text) > 1:
        return lambda node, context: (text[1:-1],)
    if text[:1] == ":":
        return lambda node, context: (context[text[1:]],) if text[1:] in context else ()
    if language == "marc":
        return _marc_values([text])
    if language == "xml":
        return _xml_values(text)
    names = (text, *text.split("|"))
    return lambda row, context: next((row[name] for name in names if row.get(name)), ())


def compile_union(language: str, paths: Sequence[str]) -> Values:
    """Return what gives the values of several paths, one after the other."""
    if language == "marc" and all(path[:1] not in "':" for path in paths):
        return _marc_values(paths)
    reads = [compile_values(language, path) for path in paths]
    if len(reads) == 1:
        return reads[0]
    return lambda node, context: [value for read in reads for value in read(node, context)]


@cache
def compile_nodes(language: str, text: str) -> Nodes:
    """Return what gives the fields or elements that a path of MARC or of XML leads to."""
    if language != "marc":
        return _xml_nodes(text)
    tag, indicators, *_ = _split_marc(text)
    matches = _match_indicators(indicators)
    if matches is None:
        return lambda index: index.get(tag, ())
    return lambda index: [f for f in index.get(tag, ()) if matches(f[1])]


def _split_marc(text: str) -> tuple[str, str, str, str, slice | None]:
    match = _MARC.fullmatch(text)
    if not match or not text:
        raise PathError(f"{text}: expected a path of MARC, such as 001, 245$ab or leader/6")
    tag, indicators, codes, separator, first, last = match.groups()
    window = slice(int(first), int(last or first) + 1) if first else None
    return tag or "", indicators or "??", codes or "", separator or " ", window


def _match_indicators(pattern: str) -> Callable[[str], Any] | None:
    """Return what tells whether indicators are those of a path; None if any are."""
    if pattern == "??":
        return None
    return re.compile(re.escape(pattern).replace(r"\?", ".").replace("_", " ")).fullmatch


def _marc_values(paths: Sequence[str]) -> Values:
    """Compile paths to a function with as few calls as can be, since it runs for each element."""
    if len(paths) == 1 and re.fullmatch(r"\$[0-9A-Za-z]", paths[0]):
        single = paths[0][1]
        return lambda marc_field, context: [v for code, v in marc_field[3] if code == single]
    steps = [
        (tag, _match_indicators(indicators), codes, len(codes) == 1, separator, window)
        for tag, indicators, codes, separator, window in map(_split_marc, paths)
    ]

    def read(node: Any, context: Context) -> Sequence[str]:
        values = []
        for tag, matches, codes, is_single, separator, window in steps:
            for _, indicators, data, subfields in node.get(tag, ()) if tag else (node,):
                if matches and not matches(indicators):
                    continue
                texts = []
                for code, value in subfields:
                    if code in codes or not codes:
                        texts.append(value)
                if not is_single and (texts or not codes):
                    texts = [separator.join(texts) or data]
                values += [value[window] for value in texts] if window else texts
        return values

    return read


def _xml_nodes(text: str) -> Nodes:
    if _NAME.fullmatch(text):
        return lambda element: [*element.iterdescendants(f"{{*}}{text}")]
    expanded = _ANY_NAMESPACE.sub(r"*[local-name()='\1']", text)
    prefixes = {p for p in _PREFIXES.findall(expanded) if p not in NAMESPACES}

    def select(element: Any) -> Sequence[Any]:
        spaces = tuple((p, element.nsmap[p]) for p in prefixes if p in element.nsmap)
        try:
            result = _xpath(expanded, spaces)(element)
        except etree.XPathError as error:
            if "prefix" in str(error):  # of a namespace that this document does not have
                return ()
            raise PathError(f"{text}: expected an XPath 1.0 ({error})") from error
        return result if isinstance(result, list) else [result]

    return select


@lru_cache(1024)
def _xpath(text: str, spaces: tuple[tuple[str, str], ...]) -> etree.XPath:
    return etree.XPath(text, namespaces={**NAMESPACES, **dict(spaces)})


def _xml_values(text: str) -> Values:
    outer, _, inner = text.partition(" -> ")
    select = _xml_nodes(outer)
    if inner:
        read = _xml_values(inner)
        return lambda element, context: [v for n in select(element) for v in read(n, context)]

    def text_of(node: Any) -> str:
        if isinstance(node, etree._Element):
            node = _STRING(node) if len(node) else node.text or ""
        return " ".join((f"{node:g}" if isinstance(node, float) else str(node)).split())

    return lambda element, context: [v for n in select(element) if (v := text_of(n))]
