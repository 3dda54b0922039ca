"""Words: how a text is cut into units that a search compares, and the words of the table.

A text is folded: compatibility forms (NFKD) and case are removed, and so are the accents of Latin,
Greek and Cyrillic, the points of Hebrew and the vowel signs of Arabic. Letters such as ł or æ
become plain ones. Marks of other scripts stay, because they are vowels there.

A unit is a word of letters and digits, or one letter of a script without spaces (SPACELESS). Of
these, the table holds each two neighbours as one word, and the last letter of each series alone.

In the table, a word ends with its rank, a character from U+0001 to U+0004: 4 in the host of a home
page if it is the name of the domain, 3 if it is not, 2 in the title of that page, 1 in the title of
another page and in items that are no captures. Elsewhere it has none: a host or a path, and what is
no page, as its status is not 200. So the rows of a word lie side by side, by rank. Runs that an
earlier version of Sheaf wrote have no ranks.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

BEHIND = "\U0010ffff"
"""It sorts behind every word."""
LONGEST = 32
"""Characters of a word; of a longer one, only its beginning counts."""
MOST = 128
"""Units of a text; those behind it are not found."""
LONGEST_NUMBER = 10
"""Characters of a word with a digit in a URL; longer ones are mostly keys of sessions: no unit."""
PAGE, HOME, HOST, SITE = 1, 2, 3, 4
"""The ranks: of titles of pages, and of the title, the host and the domain of a home page."""
OK = 200
"""The HTTP status of a page; other captures may have none."""
HOME_PATH = ")/"
"""How the SURT of a home page ends."""

_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Kana, Bopomofo, Hangul and Han."""
_REMOVED = ((0x300, 0x36F), (0x591, 0x5C7), (0x64B, 0x65F), (0x670, 0x670), (0x6D6, 0x6ED))
PLAIN = {
    "ß": "ss",
    "æ": "ae",
    "œ": "oe",
    "ø": "o",
    "đ": "d",
    "ð": "d",
    "ł": "l",
    "þ": "th",
    "ħ": "h",
    "ŧ": "t",
    "ı": "i",
    "ŋ": "n",
    "ĸ": "k",
    "ƀ": "b",
    "ƶ": "z",
    "ɨ": "i",
    "ʉ": "u",
    "ə": "e",
    "ŀ": "l",
}
"""Letters without a decomposition, and what they become."""
_PIECES = re.compile(f"[{_SPACELESS}]+|[^{_SPACELESS} ]+")
_SPACELESS_RUN = re.compile(f"[{_SPACELESS}]")
_DIGIT = re.compile(r"\d")
_ACE = "xn--"


class _Letters(dict[int, str | None]):
    """What each character of a folded text becomes: itself, other letters, nothing or a space."""

    def __missing__(self, code: int) -> str | None:
        letter = chr(code)
        folded: str | None = PLAIN.get(letter)
        if folded is None and not any(first <= code <= last for first, last in _REMOVED):
            folded = letter if unicodedata.category(letter)[0] in "LNM" else " "
        self[code] = folded
        return folded


_LETTERS = _Letters()


def rank_page(status: int | None, surt: str | None) -> int:
    """Return the rank of a title: 2 on the home page of a host, 1 on another page, else 0."""
    if status not in (None, OK):
        return 0
    return HOME if (surt or "").endswith(HOME_PATH) else PAGE


def with_rank(word: str, rank: int) -> str:
    """Return a word as the table has it."""
    return word + chr(rank) if rank else word


def fold(text: str) -> str:
    """Return a text in the form that is compared; other characters than letters become spaces."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    letters = unicodedata.normalize("NFKD", decomposed).translate(_LETTERS)
    return unicodedata.normalize("NFC", letters)


def pieces(text: str) -> list[str]:
    """Return the words of a text, and its series of letters of scripts without spaces."""
    parts: list[str] = _PIECES.findall(fold(text))[:MOST]
    return [part if is_spaceless(part) else part[:LONGEST] for part in parts]


def is_spaceless(piece: str) -> bool:
    """Return whether a piece is of a script without spaces."""
    return _SPACELESS_RUN.match(piece) is not None


def units(parts: Sequence[str]) -> list[str]:
    """Return the units of pieces, in order, with an empty one between two series of letters."""
    units: list[str] = []
    is_behind = False
    for piece in parts:
        is_series = is_spaceless(piece)
        if is_series and is_behind:
            units.append("")
        units += piece if is_series else (piece,)
        is_behind = is_series
    return units[:MOST]


def url_pieces(host: str | None, url: str) -> list[str]:
    """Return the pieces of a URL: those of its host, then those behind it."""
    return [*host_pieces(host), *path_pieces(url)]


def host_pieces(host: str | None) -> list[str]:
    """Return the pieces of a host, without Punycode."""
    return pieces(" ".join(_decode_label(label) for label in (host or "").split(".")))


def site_word(domain: str | None) -> str | None:
    """Return the word before the public suffix of a domain, None if there are several."""
    parts = host_pieces((domain or "").partition(".")[0])
    return parts[0] if len(parts) == 1 and not is_spaceless(parts[0]) else None


def path_pieces(url: str) -> list[str]:
    """Return the pieces behind the first slash after the host of a URL; of all without a host."""
    scheme, separator, rest = url.partition("://")
    path = rest.partition("/")[2] if separator else scheme
    return without_keys(pieces(unquote(path)))


def without_keys(parts: Sequence[str]) -> list[str]:
    """Return pieces without those that have digits and are longer than LONGEST_NUMBER."""
    return [text for text in parts if len(text) <= LONGEST_NUMBER or not _DIGIT.search(text)]


def _decode_label(label: str) -> str:
    if label.startswith(_ACE):
        try:
            return label.removeprefix(_ACE).encode("ascii").decode("punycode")
        except (UnicodeError, OverflowError):
            return label
    return label


def table_words(parts: Sequence[str]) -> Iterator[str]:
    """Yield the words of the table for pieces; some may come twice."""
    left = MOST
    for piece in parts:
        if is_spaceless(piece):
            series = piece[:left]
            yield from (series[n : n + 2] for n in range(len(series)))
            left -= len(series)
        else:
            yield piece
            left -= 1
        if left <= 0:
            return
