"""Character sets of ISO 2709: MARC-8, by the tables of pymarc, and those of UNIMARC.

pymarc's own decoder takes each byte in Python. It is asked for texts with escape sequences alone:
others are in Basic Latin and ANSEL, where one table does, in a fourth of the time. Both give the
same. In MARC-8 and ISO 5426 a combining character stands before its letter, in Unicode behind it.
"""

import codecs
import re
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from functools import cache
from io import StringIO
from unicodedata import normalize

from pymarc.marc8 import marc8_to_unicode
from pymarc.marc8_mapping import CODESETS, ODD_MAP

_LATIN, _ANSEL, _ESCAPE = CODESETS[0x42], CODESETS[0x45], b"\x1b"
_MARC8 = {
    code: (_ANSEL if code > 0x80 else _LATIN).get(code) or (ODD_MAP.get(code, ord(" ")), 0)
    for code in (*range(0x20, 0x81), *range(0xA0, 0x100))
}
"""Codes of Basic Latin and ANSEL: the character, and whether it combines."""
_LETTERS = " ¡„£$¥†§′‘“«♭©℗®ʻʼ‚   ‡·″’”»♯ʹʺ¿"
_MARKS = (
    "\u0309\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u0308\u030a\u0315\u0312\u030b\u031b\u030c"
    "\u0327\u031c\u0326\u0328\u0325\u032e\u0323\u0324\u0332\u0333\u0329\u032d \ufe20\ufe21\ufe23"
)
_ISO5426 = {
    # Extended Latin, as bibliographic codecs map it; 88 and 89 are around what is not sorted.
    **{code: (code, 0) for code in (*range(0x20, 0x80), 0x88, 0x89)},
    **{0xA0 + at: (ord(letter), 0) for at, letter in enumerate(_LETTERS)},
    **{0xC0 + at: (ord(mark), 1) for at, mark in enumerate(_MARKS)},
    **{0xE0 + at: (ord(letter), 0) for at, letter in enumerate(" ÆĐ   Ĳ ŁØŒ Þ    æđð ıĳ łøœßþ")},
}
_UNIMARC = {"50": "utf-8", "79": "cp866", "89": "cp1251", "99": "koi8-r"}
"""Codes in positions 26-29 of field 100, $a: of UNIMARC, and from 79 on of RUSMARC."""

Decoder = Callable[[bytes], str]
"""Decodes the bytes of a subfield or of a control field. Raises UnicodeDecodeError."""


@cache
def _find_prefixed(name: str) -> Decoder:
    """Return the decoder of a set whose combining characters come first: marc-8 or iso5426."""
    letters: Mapping[int, tuple[int, int]] = {"marc-8": _MARC8, "iso5426": _ISO5426}[name]
    table: dict[int, int | None] = dict.fromkeys(range(0x100))
    table |= {code: letter for code, (letter, _) in letters.items()}
    marks = re.escape("".join({chr(letter) for letter, combines in letters.values() if combines}))
    order = re.compile(f"([{marks}]+)([^{marks}]?)")

    def decode(data: bytes) -> str:
        text = data.decode("latin-1").translate(table)
        if text.isascii():
            return text
        # Marks that no letter follows are left out, as pymarc does.
        return normalize("NFC", order.sub(lambda m: m[2] + m[1] if m[2] else "", text))

    return decode


def decode_marc8(data: bytes) -> str:
    """Return a text in MARC-8, in normal form C. Raises UnicodeDecodeError.

    What stands for nothing becomes a blank; control characters go.
    """
    if _ESCAPE not in data:
        return _find_prefixed("marc-8")(data)
    with redirect_stderr(StringIO()):  # where pymarc writes of a cut character
        return str(marc8_to_unicode(data, hide_utf8_warnings=True))


@cache
def find_decoder(name: str) -> Decoder:
    """Return the strict decoder of an encoding by its name. Raises LookupError."""
    if name.lower() in ("marc-8", "marc8"):
        return decode_marc8
    if name.lower().replace("-", "").replace("_", "") == "iso5426":
        return _find_prefixed("iso5426")
    info = codecs.lookup(name)
    return lambda data: info.decode(data)[0]


def find_unimarc(coded: str) -> str:
    """Return the name of the encoding that a UNIMARC record declares by field 100, $a."""
    return _UNIMARC.get(coded[26:28], "iso5426")
