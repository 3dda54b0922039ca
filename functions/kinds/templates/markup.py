"""Markup in the values of templates: HTML's tags and entities, which archives often leave in.

A template is stored and published as it was written. Its values are shown as plain text.
"""

import html
import re
from collections.abc import Mapping
from typing import Any

from functions.kinds.kind import has_markup

_WORDS = (
    "a|abbr|acronym|address|alternatives|article|b|big|blockquote|body|bold|br|break|caption|center|"
    "cite|code|col|colgroup|dd|del|dfn|disp-formula|div|dl|dt|em|figcaption|figure|font|footer|"
    "h[1-6]|head|header|hr|html|i|img|inf|inline-formula|ins|italic|kbd|label|li|link|list|"
    "list-item|main|mark|math|mfrac|mi|mn|mo|mrow|msqrt|mstyle|msub|msubsup|msup|mtext|nobr|ol|p|"
    "pre|q|s|samp|sc|sec|section|semantics|small|span|strike|strong|style|sub|sup|table|tbody|td|"
    "tex-math|tfoot|th|thead|title|tr|tt|u|ul|underline|var|wbr"
)
"""Names of tags: of HTML, and of JATS and MathML, which publishers send too."""
_TAG = re.compile(
    rf"</?(?:(?:{_WORDS})|(?:html|jats|m|mml|o|xhtml):[a-z]+)"
    r"""(?:\s+[\w:.-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s<>"']+))*\s*/?>|<!--[^<>]*-->""",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"</?(?:[a-z]+:)?(?:address|article|blockquote|body|br|break|caption|center|dd|div|"
    r"dl|dt|figcaption|figure|footer|h[1-6r]|head|header|li|list|list-item|main|ol|p|pre|sec|"
    r"section|table|tbody|td|tfoot|th|thead|title|tr|ul)\b",
    re.IGNORECASE,
)
"""The tags at which a browser begins a new line or cell."""
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_AMPERSANDS = re.compile(r"&(?:amp;)+")
_ROUNDS = 4
"""How often text is resolved that was escaped several times."""

_INHERITED = ("journal", "series_name", "provider", "restriction")
"""Members of a template's document that come from its series and archive."""
_EXACT = re.compile(
    r"(?:.*-)?(?:url|homepage|email|handle|institution)|in-book|haschapter|followup|predecessor|"
    r"(?:author|editor)-(?:paper|article|software|book|chapter|series)"
)
"""Attributes that name or link something, so that each character counts."""


def plain_text(value: str) -> str:
    """Return a value as plain text: without tags, with entities resolved, in one line.

    A tag has a known name, and attributes of the form a=b. So `a < b`, `p<0.05` and
    `a <b and c> d` stay. Entities need their semicolon, so `R&D` stays. What was escaped several
    times is resolved as often.
    """
    for _ in range(_ROUNDS):
        before = value
        if "<" in value:
            value = _TAG.sub(lambda match: " " if _BREAK.match(match[0]) else "", value)
        if "&" in value:
            text = _AMPERSANDS.sub("&", value)
            value = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
        if value == before:
            break
    return " ".join(value.split())


def clean_template(document: dict[str, Any]) -> None:
    """Make the values of a template's document plain text.

    Left as written are its text and all that names or links something. Empty values are removed.
    """
    for name in _INHERITED:
        if name in document:
            cleaned = _clean(document[name])
            document[name] = None if cleaned == "" else cleaned
    fields = document.get("fields")
    if isinstance(fields, Mapping):
        document["fields"] = clean_fields(fields)


def clean_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a template, by attribute and cluster, as plain text."""
    return {
        name: values if _EXACT.fullmatch(name) else _clean(values)
        for name, values in fields.items()
    }


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return plain_text(value) if has_markup(value) else value
    if isinstance(value, list):
        return [*filter(None, map(_clean, value))]
    return clean_fields(value) if isinstance(value, Mapping) else value
