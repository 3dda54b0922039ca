"""Style sheets: replaces the references by url() and @import, and leaves the rest unchanged.

The grammar is that of CSS Syntax Module Level 3, section 4; an unterminated string ends with its
line. The time is linear in the length of the text, whatever the text contains.
"""

import re
from collections.abc import Callable

Reference = Callable[[str], str | None]
"""Returns the replacement of a reference, or None to keep it."""

_DOUBLE = r'"(?P<{0}>(?:[^"\\\n]|\\.)*+)"'
_SINGLE = r"'(?P<{0}>(?:[^'\\\n]|\\.)*+)'"
_TOKEN = re.compile(
    r"/\*.*?(?:\*/|\Z)"
    rf"|(?P<url>url\(\s*+(?:{_DOUBLE.format('a')}|{_SINGLE.format('b')}"
    r"|(?P<c>(?:[^\"'()\s\\]|\\[0-9A-Fa-f]{1,6}\s?|\\.)*+))\s*+\))"
    rf"|(?P<imports>@import\s*+)(?:{_DOUBLE.format('d')}|{_SINGLE.format('e')})"
    r"|\"(?:[^\"\\\n]|\\.)*+(?:\"|\n|\Z)|'(?:[^'\\\n]|\\.)*+(?:'|\n|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:([0-9A-Fa-f]{1,6})(?:\r\n|\s)?|(\n)|(.))", re.DOTALL)
_UNSAFE = re.compile(r"[\"\\\x00-\x1f\x7f]")


def rewritten(text: str, reference: Reference) -> str:
    """Return a style sheet or declaration list with its references replaced by `reference`."""

    def replace_reference(match: re.Match[str]) -> str:
        if match["url"] is None and match["imports"] is None:
            return match[0]
        written = next((match[name] for name in "abcde" if match[name] is not None), "")
        found = reference(_ESCAPE.sub(_unescape, written))
        if found is None:
            return match[0]
        quoted = f'"{_UNSAFE.sub(lambda odd: f"%{ord(odd[0]):02X}", found)}"'
        return f"url({quoted})" if match["url"] is not None else f"{match['imports']}{quoted}"

    return _TOKEN.sub(replace_reference, text)


def _unescape(match: re.Match[str]) -> str:
    """Return the characters of an escape (section 4.3.7)."""
    if match[1]:
        code = int(match[1], 16)
        return "�" if not 0 < code <= 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code)
    return match[3] or ""
