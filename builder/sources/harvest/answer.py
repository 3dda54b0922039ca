"""Parsing of OAI-PMH responses, with repair of malformed XML. Pure.

A well-formed response is not changed. A response that cannot be repaired is split into records, and
the markup of each is repaired by itself. What has no end is counted as lost.

Markup of a record that is not well-formed is repaired. Two parsers were tried instead. In lxml's
recovery, elements vanish behind an unquoted attribute, and a doubled attribute is written out
doubled. html.parser makes names lower case. Here no text is lost: what is no tag becomes text, and
an element without an end tag ends with its parent.
"""

import codecs
import contextlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import unescape
from html.entities import html5

from builder.sources.harvest.errors import Broken
from builder.sources.harvest.page import ListPage, PageEntry, read

NAMESPACES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "marc": "http://www.loc.gov/MARC21/slim",
    "mods": "http://www.loc.gov/mods/v3",
    "oai_dc": "http://www.openarchives.org/OAI/2.0/oai_dc/",
    "thesis": "http://www.ndltd.org/standards/metadata/etdms/1.0/",
    "xlink": "http://www.w3.org/1999/xlink",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
}
"""Prefixes that repositories use without declaring them."""
_UNKNOWN = "urn:x-sheaf:undeclared:"
_PART = r"[^\W\d][\w.-]*"
_TAG_NAME = rf"{_PART}(?::+{_PART})?"
_MARKUP = re.compile(
    rf"(?P<cdata><!\[CDATA\[.*?\]\]>)|<!--(?P<comment>.*?)-->|<\?(?P<instruction>.*?)\?>"
    rf"|(?P<declaration><![^<>]*>)|</(?P<end>{_TAG_NAME})\s*>"
    rf"|<(?P<start>{_TAG_NAME})(?P<attributes>(?:[\s/](?:[^<>\"']|\"[^\"]*\"|'[^']*')*)?)>"
    r"|(?P<text><|\]\]>)",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s=/\"'<>]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))?")
_DASHES = re.compile(r"-(?=-|$)")
_COLONS = re.compile(":+")
_DEEPEST = 300
"""Levels that an end tag may close; deeper records are refused anyway (fragment.py)."""
_EMPTY = frozenset({"br", "hr", "img", "wbr"})
"""Elements of HTML that have no end tag."""


def mend_markup(text: str, prefixes: Iterable[str]) -> str:
    """Return a record with well-formed markup; only white space changes in well-formed tags.

    `prefixes` are those that are declared around the record. References must be right already.
    """
    mender = _MarkupMender(frozenset({"xml", "xmlns", *prefixes}))
    out: list[str] = []
    at = 0
    for token in _MARKUP.finditer(text):
        out += text[at : token.start()], mender.mend(token)
        at = token.end()
    return "".join([*out, text[at:], mender.end_all()])


class _MarkupMender:
    """Reader of a record's tokens that remembers the open elements and their prefixes."""

    def __init__(self, prefixes: frozenset[str]) -> None:
        self._open: list[tuple[str, frozenset[str]]] = [("", prefixes)]

    def mend(self, token: re.Match[str]) -> str:
        """Return what is written for a token."""
        match token.lastgroup:
            case "comment":
                return f"<!--{_DASHES.sub('- ', token['comment'])}-->"
            case "instruction":
                target = re.match(_PART, token["instruction"])
                return "" if target is None or target[0].lower() == "xml" else token[0]
            case "declaration":
                return ""
            case "end":
                name = _COLONS.sub(":", token["end"])
                levels = range(len(self._open) - 1, max(0, len(self._open) - _DEEPEST), -1)
                depth = next((level for level in levels if self._open[level][0] == name), 0)
                if not depth:
                    return ""
                ended = "".join(f"</{inner}>" for inner, _ in reversed(self._open[depth:]))
                del self._open[depth:]
                return ended
            case "attributes":
                return self._start(token)
            case "text":
                return token[0].replace("<", "&lt;").replace(">", "&gt;")
            case _:
                return token[0]

    def end_all(self) -> str:
        """Return the end tags of all open elements."""
        return "".join(f"</{name}>" for name, _ in reversed(self._open[1:]))

    def _start(self, token: re.Match[str]) -> str:
        name, inside = _COLONS.sub(":", token["start"]), token["attributes"].rstrip()
        empty = inside.endswith("/") or name in _EMPTY
        values: dict[str, str] = {}
        for attribute in _ATTRIBUTE.finditer(inside.removesuffix("/")):
            key, value = _COLONS.sub(":", attribute[1]), attribute[2] or attribute[1]
            if re.fullmatch(_TAG_NAME, key):
                quoted = value if value[0] in "\"'" else f'"{value}"'
                values.setdefault(key, quoted.replace("<", "&lt;"))
        bound = self._open[-1][1] | {key[6:] for key in values if key.startswith("xmlns:")}
        used = {key.partition(":")[0] for key in (name, *values) if ":" in key}
        for prefix in sorted(used - bound):
            values[f"xmlns:{prefix}"] = f'"{NAMESPACES.get(prefix, _UNKNOWN + prefix)}"'
        if not empty:
            self._open.append((name, bound | used))
        written = "".join(f" {key}={value}" for key, value in values.items())
        return f"<{name}{written}{'/' if empty else ''}>"


BYTES = "bytes that are not UTF-8 were read as windows-1252"
CHARACTERS = "characters that XML does not allow were removed"
ENTITIES = "entities that XML does not define were replaced"
PREFIXES = "prefixes that are not declared were declared"
TAGS = "tags, attributes or comments that are not well-formed were repaired"
MARKUP = "an ampersand or a less-than sign was escaped"
_XML = frozenset({"amp", "lt", "gt", "quot", "apos"})
_DECLARATION = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._:-]+)[\"'][^>]*\?>")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"\0<\0?", "utf-16-be"),
    (b"<\0?\0", "utf-16-le"),
)
_TEXT_ROOT = re.compile(r"<((?:[A-Za-z_][\w.-]*:)?OAI-PMH)(?=[\s>])[^>]*>")
_DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_SURROGATES = "(?:\udced[\udca0-\udcbf][\udc80-\udcbf])+"
_ILLEGAL = "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"
_ODD = re.compile(
    rf"(?P<plain><!\[CDATA\[|\]\]>|<!--.*?-->|<\?.*?\?>)|(?P<illegal>{_ILLEGAL}|{_SURROGATES})"
    r"|(?P<byte>[\udc80-\udcff])"
    r"|(?P<number>&#(?:x[0-9A-Fa-f]+|[0-9]+);)|(?P<name>&[A-Za-z][A-Za-z0-9]*;)"
    r"|(?P<sign>&(?!#?\w+;)|<(?![A-Za-z_/!?]))",
    re.DOTALL,
)
_BEGIN = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?record\b[^>]*>\s*<(?:[A-Za-z_][\w.-]*:)?header\b")
_TAG = re.compile(rb"<(/?)(?:[A-Za-z_][\w.-]*:)?record(?=[\s/>])[^>]*?(/?)>")
_AFTER = re.compile(
    rb"(?:\s|<!--.*?-->)*(?:\Z|<(?:[A-Za-z_][\w.-]*:)?(?:record(?=[\s>])|resumptionToken\b)"
    rb"|</(?:[A-Za-z_][\w.-]*:)?(?:ListRecords|GetRecord|OAI-PMH)\b)",
    re.DOTALL,
)
"""What follows a record of a list; what follows a record within its metadata is something else."""
_PREFIX = re.compile(rb"\sxmlns:([\w.-]+)\s*=")
_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?OAI-PMH\b[^>]*>")
_NAME = re.compile(rb"<([^\s>]+)")
_TOKEN = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?resumptionToken\b([^>]*?)(?:/>|>(.*?)</)", re.DOTALL)
_SIZE = re.compile(rb"completeListSize\s*=\s*[\"']\s*([0-9]{1,15})\s*[\"']")
_LIST_END = re.compile(rb"</(?:[A-Za-z_][\w.-]*:)?(?:ListRecords|GetRecord|OAI-PMH)\s*>")
_DATE = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?responseDate\s*>\s*([^<]*?)\s*</")
_IDENTIFIER = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?identifier\b[^>]*>\s*(.*?)\s*</", re.DOTALL)
_SHOWN = 200
UNREADABLE = "its element is not XML"


@dataclass(frozen=True, slots=True)
class Repaired:
    """A response in UTF-8, with the offset and a description of each repair, in order.

    `bound` are the prefixes that are now declared on the root.
    """

    data: bytes
    places: tuple[int, ...]
    words: tuple[str, ...]
    bound: tuple[str, ...] = ()

    def fault(self, start: int, end: int) -> str | None:
        """Return a description of the repairs between two offsets, or None."""
        words = self.words[bisect_left(self.places, start) : bisect_left(self.places, end)]
        return "; ".join(sorted(set(words))) or None


def page(data: bytes, charset: str | None) -> ListPage:
    """Read a response and repair it if necessary. Raises Broken.

    `charset` is that of the Content-Type. After Broken, `take_apart` reads what is still readable.
    """
    unbound = False
    # In UTF-16 and UTF-32, byte offsets of a parser differ.
    if not any(data.startswith(mark) for mark, code in _MARKS if code != "utf-8"):
        try:
            return read(data)
        except Broken as error:
            unbound = error.unbound
    repaired = repair(data, charset, unbound)
    try:
        response = read(repaired.data)
    except Broken as error:
        if unbound or not error.unbound:
            raise
        repaired = repair(data, charset, unbound=True)
        response = read(repaired.data)
    return replace(
        response, entries=tuple(_with_fault(entry, repaired) for entry in response.entries)
    )


def take_apart(data: bytes, charset: str | None) -> ListPage | None:
    """Return the records, each repaired by itself; None without root or records."""
    repaired = repair(data, charset)
    text = repaired.data
    root = _ROOT.search(text)
    spans = _record_spans(text)
    if root is None or not spans:
        return None
    last = spans[-1][0]
    closes = _LIST_END.search(text, last)
    name = _NAME.match(root[0])
    assert name is not None  # _ROOT matched, so there is a name
    before, after = root[0] + b"<ListRecords>", b"</ListRecords></" + name[1] + b">"
    prefixes = [prefix.decode() for prefix in _PREFIX.findall(root[0])]
    entries: list[PageEntry] = []
    lost: list[tuple[str, str]] = []
    for start, end, ended in spans:
        entry = None
        for mended in (False, True) if ended else ():
            fragment = text[start:end]
            if mended:
                fragment = mend_markup(fragment.decode(), prefixes).encode()
            with contextlib.suppress(Broken, ValueError):
                (entry,) = read(before + fragment + after).entries
                entry = entry._replace(start=start, end=end)
                entry = _with_fault(entry, repaired, [TAGS] if mended else [])
                break
        if entry is not None:
            entries.append(entry)
        elif ended or closes:  # otherwise the response is cut off here
            match = _IDENTIFIER.search(text, start, end)
            lost.append((unescape(match[1].decode())[:_SHOWN] if match else "", UNREADABLE))
    token = _TOKEN.search(text, last)
    size = _SIZE.search(token[1]) if token else None
    date = _DATE.search(text)
    return ListPage(
        date=date[1].decode() if date else None,
        entries=tuple(entries),
        token=unescape((token[2] or b"").decode()).strip() if token else None,
        size=int(size[1]) if size else None,
        lost=tuple(lost),
        torn=closes is None,
    )


def _record_spans(data: bytes) -> list[tuple[int, int, bool]]:
    """Return the offsets of a broken list's records, and whether each has its end tag.

    Metadata may have elements `record` of its own. So a record ends at the end tag that belongs to
    its start tag, if something follows that can follow a record; otherwise at the last end tag
    before the next start.
    """
    ends: dict[int, int] = {}
    opened: list[int] = []
    closing: list[int] = []
    for tag in _TAG.finditer(data):
        if tag[1]:
            closing.append(tag.end())
            if opened:
                ends[opened.pop()] = tag.end()
        elif not tag[2]:
            opened.append(tag.start())
    spans, begin = [], _BEGIN.search(data)
    while begin is not None:
        start, end = begin.start(), ends.get(begin.start())
        if end is not None and _AFTER.match(data, end):
            spans.append((start, end, True))
            begin = _BEGIN.search(data, end)
            continue
        begin = _BEGIN.search(data, begin.end())
        limit = len(data) if begin is None else begin.start()
        within = closing[bisect_right(closing, start) : bisect_right(closing, limit)]
        spans.append((start, within[-1] if within else limit, bool(within)))
    return spans


def _with_fault(entry: PageEntry, repaired: Repaired, more: Sequence[str] = ()) -> PageEntry:
    bound = any(
        f' xmlns:{prefix}="{NAMESPACES[prefix]}"' in entry.text for prefix in repaired.bound
    )
    faults = [repaired.fault(entry.start, entry.end), *more, PREFIXES if bound else None]
    return entry._replace(fault="; ".join(filter(None, faults)) or None)


def repair(data: bytes, charset: str | None, unbound: bool = False) -> Repaired:
    """Replace or drop what XML does not allow.

    `charset` is that of the Content-Type. With `unbound` the root declares well-known prefixes.
    """
    text = _within(_decode(data, charset))
    bound: Sequence[str] = ()
    if unbound:
        text, bound = _bind_prefixes(text)
    out, at = bytearray(), 0
    places: list[int] = []
    words: list[str] = []
    literal = False
    for match in _ODD.finditer(text):
        kind = match.lastgroup
        if kind == "plain":
            literal = match[0] == "<![CDATA[" or (literal and match[0] != "]]>")
            continue
        replacement = _instead(kind, match[0], literal)
        if replacement is None:
            continue
        out += text[at : match.start()].encode()
        at = match.end()
        places.append(len(out))
        words.append(replacement[1])
        out += replacement[0].encode()
    out += text[at:].encode()
    return Repaired(bytes(out), tuple(places), tuple(words), tuple(bound))


def _instead(kind: str | None, odd: str, literal: bool) -> tuple[str, str] | None:
    """Return the replacement and the reason, or None if the text may stay."""
    if kind == "illegal":
        return _pair_surrogates(odd), CHARACTERS
    if kind == "byte":
        return bytes([ord(odd) - 0xDC00]).decode("cp1252", "replace"), BYTES
    if literal:
        return None
    if kind == "number":
        number = odd[2:-1]
        code = int(number[1:], 16) if number[0] == "x" else int(number[:9])
        return None if _is_character(code) else ("", CHARACTERS)
    if kind == "name":
        if odd[1:-1] in _XML:
            return None
        character = html5.get(odd[1:])
        return (f"&amp;{odd[1:]}", MARKUP) if character is None else (_escape(character), ENTITIES)
    return _escape(odd), MARKUP


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _is_character(code: int) -> bool:
    """Return whether XML 1.0 allows the character (section 2.2)."""
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )


def _pair_surrogates(odd: str) -> str:
    """Return the text of surrogates that are each encoded in UTF-8; "" if they are unpaired."""
    if odd[0] < "\udc80" or odd[0] > "\udcff":
        return ""
    halves = odd.encode("utf-8", "surrogateescape").decode("utf-8", "surrogatepass")
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def _decode(data: bytes, charset: str | None) -> str:
    """Return the text; each undecodable byte becomes a lone surrogate (PEP 383)."""
    for mark, code in _MARKS:
        if data.startswith(mark):
            marked = data.decode(code, "surrogateescape" if code == "utf-8" else "replace")
            return marked.removeprefix("\ufeff")
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    declared = _DECLARATION.search(data[:1000])
    for name in (declared[1].decode() if declared else None, charset):
        try:
            if name and codecs.lookup(name).name not in ("utf-8", "ascii"):
                return data.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return data.decode("utf-8", "surrogateescape")


def _within(text: str) -> str:
    """Return the root element without the text around it, if there is a root."""
    root = _TEXT_ROOT.search(text)
    if root is None:
        return _DOCTYPE.sub("", text, count=1)
    end = text.rfind(f"</{root[1]}")
    close = text.find(">", end)
    return text[root.start() : close + 1] if end >= 0 and close >= 0 else text[root.start() :]


def _bind_prefixes(text: str) -> tuple[str, Sequence[str]]:
    """Declare the prefixes that are declared nowhere, else those that the root does not declare."""
    root = _TEXT_ROOT.search(text)
    if root is None:
        return text, ()
    used = [p for p in NAMESPACES if f"{p}:" in text and not _declares(root[0], p)]
    missing = [p for p in used if not _declares(text, p)] or used
    at = root.start() + 1 + len(root[1])
    added = "".join(f' xmlns:{prefix}="{NAMESPACES[prefix]}"' for prefix in missing)
    return text[:at] + added + text[at:], missing


def _declares(text: str, prefix: str) -> bool:
    return re.search(rf"\sxmlns:{prefix}\s*=", text) is not None
