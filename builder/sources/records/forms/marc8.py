"""MARC-8 to Unicode, by the tables of pymarc.

pymarc's own decoder takes each byte in Python. It is asked for texts with escape sequences alone:
others are in Basic Latin and ANSEL, where one table does, in a fourth of the time. Both give the
same. A combining character stands before its letter in MARC-8, behind it in Unicode.
"""

import re
from contextlib import redirect_stderr
from io import StringIO
from unicodedata import normalize

from pymarc.marc8 import marc8_to_unicode
from pymarc.marc8_mapping import CODESETS, ODD_MAP

_LATIN, _ANSEL, _ESCAPE = CODESETS[0x42], CODESETS[0x45], b"\x1b"
_CODES = (*range(0x20, 0x81), *range(0xA0, 0x100))
_LETTERS = {
    code: (_ANSEL if code > 0x80 else _LATIN).get(code) or (ODD_MAP.get(code, ord(" ")), 0)
    for code in _CODES
}
_TABLE: dict[int, int | None] = dict.fromkeys(range(0x100)) | {
    code: letter for code, (letter, _) in _LETTERS.items()
}
_COMBINING = "".join({chr(letter) for letter, is_combining in _LETTERS.values() if is_combining})
_ORDER = re.compile(f"([{re.escape(_COMBINING)}]+)([^{re.escape(_COMBINING)}]?)")


def decode_marc8(data: bytes) -> str:
    """Return a text in MARC-8, in normal form C. Raises UnicodeDecodeError.

    What stands for nothing becomes a blank; control characters go.
    """
    if _ESCAPE in data:
        with redirect_stderr(StringIO()):  # where pymarc writes of a cut character
            return str(marc8_to_unicode(data, hide_utf8_warnings=True))
    text = data.decode("latin-1").translate(_TABLE)
    if text.isascii():
        return text
    return normalize("NFC", _ORDER.sub(_follow, text))


def _follow(match: re.Match[str]) -> str:
    """Return a letter and its combining characters, nothing if the letter is missing."""
    return match[2] + match[1] if match[2] else ""
