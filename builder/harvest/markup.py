"""Repair of markup that is not well-formed within one record: tags, attributes, comments. Pure.

Two parsers were tried instead. In lxml's recovery, elements vanish behind an unquoted attribute,
and a doubled attribute is written out doubled. html.parser makes names lower case. Here no text is
lost: what is no tag becomes text, and an element without an end tag ends with its parent.
"""

import re
from collections.abc import Iterable

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
_NAME = rf"{_PART}(?::+{_PART})?"
_TOKEN = re.compile(
    rf"(?P<cdata><!\[CDATA\[.*?\]\]>)|<!--(?P<comment>.*?)-->|<\?(?P<instruction>.*?)\?>"
    rf"|(?P<declaration><![^<>]*>)|</(?P<end>{_NAME})\s*>"
    rf"|<(?P<start>{_NAME})(?P<attributes>(?:[\s/](?:[^<>\"']|\"[^\"]*\"|'[^']*')*)?)>"
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
    for token in _TOKEN.finditer(text):
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
            if re.fullmatch(_NAME, key):
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
