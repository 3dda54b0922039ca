"""Tags of HTML, as the standard's tokenizer reads them (HTML, sections 13.2.5.6 to 13.2.5.40).

They are read from bytes, so they suit every encoding in which `<`, `>`, `=`, `/` and quotes are
ASCII bytes and nothing else.
"""

import re

SPACE = rb"\t\n\f\r "
"""White space of HTML, for a set of characters in a regular expression."""

TAG_NAME = rb"[a-zA-Z][^" + SPACE + rb"/>]*+"
"""A tag's name behind `<` or `</`, as a regular expression."""

# An open quote runs to the end of the page, where no tag ends.
_VALUE = rb"(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^" + SPACE + rb">\"'][^" + SPACE + rb">]*+)"
_EQUALS = rb"[" + SPACE + rb"]*+=[" + SPACE + rb"]*+"
_ATTRIBUTE = rb"[^" + SPACE + rb"/>][^" + SPACE + rb"/>=]*+(?:" + _EQUALS + _VALUE + rb"?+)?+"
_ATTRIBUTES = re.compile(rb"(?:[" + SPACE + rb"]++|/(?!>)|" + _ATTRIBUTE + rb")*+(/?)>")
_EACH = re.compile(
    rb"([^" + SPACE + rb"/>][^" + SPACE + rb"/>=]*+)(?:" + _EQUALS + rb"(" + _VALUE + rb"?+))?+"
)


def tag_end(page: bytes, at: int) -> tuple[int, bool] | None:
    """Return where a tag ends whose attributes begin at `at`, and whether it closes itself.

    None means that the page ends first: then the tag does not count.
    """
    match = _ATTRIBUTES.match(page, at)
    return (match.end(), bool(match[1])) if match else None


def tag_attributes(page: bytes, at: int, behind: int) -> dict[bytes, bytes]:
    """Return the attributes between `at` and `behind`, the end of their tag.

    Names are in lower case, values as written; of a name that is there twice the first counts.
    """
    found: dict[bytes, bytes] = {}
    for match in _EACH.finditer(page, at, behind - 1):
        value = match[2] or b""
        is_quoted = value[:1] in (b'"', b"'")
        found.setdefault(match[1].lower(), value[1:-1] if is_quoted else value)
    return found
