"""HTML by regular expressions: the attributes of a tag, and the head of a plain page.

Tags follow the standard's tokenizer (HTML, sections 13.2.5.6 to 13.2.5.40). They are read as bytes,
in any encoding whose bytes for `<`, `>`, `=`, `/` and quotes are ASCII and have no other meaning.

A plain page has only unambiguous markup up to its title's end: complete tags with quoted or simple
attributes, comments, scripts and styles without any `<`, and a title without `<`. Most pages are
plain so far, and the search in `html` takes many times as long for them.
"""

import re

SPACE = rb"\t\n\f\r "
"""White space of HTML, for a character class in a regular expression."""

TAG_NAME = rb"[a-zA-Z][^" + SPACE + rb"/>]*+"
"""A tag's name behind `<` or `</`, as a regular expression."""

# An unclosed quote runs to the end of the page.
_VALUE = rb"(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^" + SPACE + rb">\"'][^" + SPACE + rb">]*+)"
_EQUALS = rb"[" + SPACE + rb"]*+=[" + SPACE + rb"]*+"
_ATTRIBUTE = rb"[^" + SPACE + rb"/>][^" + SPACE + rb"/>=]*+(?:" + _EQUALS + _VALUE + rb"?+)?+"
_ATTRIBUTES = re.compile(rb"(?:[" + SPACE + rb"]++|/(?!>)|" + _ATTRIBUTE + rb")*+(/?)>")
_EACH = re.compile(
    rb"([^" + SPACE + rb"/>][^" + SPACE + rb"/>=]*+)(?:" + _EQUALS + rb"(" + _VALUE + rb"?+))?+"
)


def tag_end(page: bytes, at: int) -> tuple[int, bool] | None:
    """Return the end of a tag whose attributes begin at `at`, and whether it closes itself.

    None if the page ends first: then the tag does not count.
    """
    match = _ATTRIBUTES.match(page, at)
    return (match.end(), bool(match[1])) if match else None


def tag_attributes(page: bytes, at: int, behind: int) -> dict[bytes, bytes]:
    """Return the attributes between `at` and `behind`, the end of their tag.

    Names are in lower case, values as written; the first of a repeated name counts.
    """
    found: dict[bytes, bytes] = {}
    for match in _EACH.finditer(page, at, behind - 1):
        value = match[2] or b""
        is_quoted = value[:1] in (b'"', b"'")
        found.setdefault(match[1].lower(), value[1:-1] if is_quoted else value)
    return found


_PLAIN_ATTRIBUTE = (
    rb"[ \t\r\n\f]++[a-zA-Z][a-zA-Z0-9:_\-]*+"
    rb"""(?:[ \t\r\n\f]*+=[ \t\r\n\f]*+(?:"[^"<>\x00]*+"|'[^'<>\x00]*+'|[a-zA-Z0-9_.:#;,\-]++))?+"""
)
_PLAIN_SPACE = rb"[ \t\r\n]*+"
_DOCTYPE = (
    rb"""(?:<\?xml [^<>?\x00]*+\?>)?+"""
    + _PLAIN_SPACE
    + rb"""(?:<!doctype[ \t\r\n\f]++html(?:[ \t\r\n\f]++public)?+"""
    rb"""(?:[ \t\r\n\f]++"[^"<>\x00]*+"){0,2}+[ \t\r\n\f]*+>)?+""" + _PLAIN_SPACE
)
_BEFORE_TITLE = (
    rb"(?:<(?:head|meta|link|base)(?:" + _PLAIN_ATTRIBUTE + rb")*+[ \t\r\n\f]*+/?+>"
    rb"|<!--(?:[^<>\-\x00]++|-[^<>\-\x00])*+-->"
    rb"|<script(?:" + _PLAIN_ATTRIBUTE + rb")*+[ \t\r\n\f]*+>[^<\x00]*+</script>"
    rb"|<style(?:" + _PLAIN_ATTRIBUTE + rb")*+[ \t\r\n\f]*+>[^<\x00]*+</style>"
    rb"|[ \t\r\n]++)*+"
)
_START = re.compile(
    _PLAIN_SPACE + _DOCTYPE + rb"(?:<html((?:" + _PLAIN_ATTRIBUTE + rb")*+)[ \t\r\n\f]*+>)?+",
    re.IGNORECASE,
)
_TITLE = re.compile(_BEFORE_TITLE + rb"<title>([^<\x00]*+)</title>", re.IGNORECASE)
_LANGUAGE = re.compile(
    rb"""[ \t\r\n\f](xml:)?lang[ \t\r\n\f]*+=[ \t\r\n\f]*+"""
    rb"""(?:"([^"]*+)"|'([^']*+)'|([^ \t\r\n\f"']++))""",
    re.IGNORECASE,
)
_SIMPLE_LANGUAGE = re.compile(rb"[a-zA-Z][a-zA-Z0-9_,\-]*")

PlainHead = tuple[bytes, bytes | None]
"""The bytes of the title and of the html element's language."""


def read_plain_head(head: bytes) -> PlainHead | None:
    """Return title and language of a page in an ASCII-compatible encoding; None if not plain."""
    start = _START.match(head)
    title = start and _TITLE.match(head, start.end())
    if not start or not title:
        return None
    attributes = start[1]
    if not attributes or b"lang" not in attributes.lower():
        return title[1], None
    found = _LANGUAGE.findall(attributes)
    if len(found) != attributes.lower().count(b"lang"):
        return None
    values = {prefix.lower(): a or b or c for prefix, a, b, c in reversed(found)}
    language = values.get(b"") or values.get(b"xml:")
    if language is None or not _SIMPLE_LANGUAGE.fullmatch(language):
        return None
    return title[1], language
