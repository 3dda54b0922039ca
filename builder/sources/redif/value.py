"""Values: the form that an attribute's kind requires, plain text, and handles.

Handles name archives, series, documents, persons and institutions.
"""

import hashlib
import html
import re
from functools import lru_cache

_AUTHORITIES = {"repec": "RePEc", "relis": "ReLIS", "mapin": "mapin"}
_PERSON = re.compile(r"((?:RePEc|ReLIS|mapin):per:\d{4}-\d\d-\d\d:)(.*)", re.DOTALL)

_ARCHIVE = r"(?:RePEc|ReLIS|mapin):[a-z]{3}"
_SERIES = _ARCHIVE + r":[a-z\d]{6}"
_HANDLE_CODE = r"[!\"%&'()*+,\-./:<>=?@\\_`{}~\da-z]+"
HANDLE_FORMS: dict[str, re.Pattern[str]] = {
    "archive": re.compile(_ARCHIVE, re.IGNORECASE),
    "series": re.compile(_SERIES, re.IGNORECASE),
    "document": re.compile(f"{_SERIES}:{_HANDLE_CODE}", re.IGNORECASE),
    "institution": re.compile(_ARCHIVE + r":[a-z\d]{7}", re.IGNORECASE),
    "person": re.compile(_ARCHIVE + r":\d{4}-[01]\d-[0-3]\d:\S+|p[a-z]+\d+", re.IGNORECASE),
}
"""The form of a whole handle, by kind."""


def canonical_handle(handle: str) -> str:
    """Return the canonical form of a handle.

    It is in lower case except for the authority, which has its own spelling, and the name of a
    person by date (RePEc:per:1974-08-14:...), which is in upper case. White space becomes single
    spaces: such a handle is invalid, but still recognised.
    """
    lower = " ".join(handle.split()).lower()
    head, colon, tail = lower.partition(":")
    if colon and head in _AUTHORITIES:
        lower = f"{_AUTHORITIES[head]}:{tail}"
        if tail.startswith("per:") and (match := _PERSON.fullmatch(lower)):
            return match[1] + match[2].upper()
    return lower


class Handles:
    """The handles read so far, each with the position of its first template.

    Each takes some two hundred bytes, whatever its length.
    """

    def __init__(self) -> None:
        self._files: list[str] = []
        self._places: dict[int, int] = {}

    def add(self, handle: str, file: str, line: int) -> tuple[str, int] | None:
        """Note a canonical handle; return file and line of its first template, None if new.

        Two handles are confused with a probability of one in 10^19 for each pair.
        """
        key = int.from_bytes(
            hashlib.blake2b(handle.encode("utf-8", "replace"), digest_size=8).digest(), "big"
        )
        earlier = self._places.get(key)
        if earlier is not None:
            return self._files[earlier >> 32], earlier & 0xFFFFFFFF
        if not self._files or self._files[-1] != file:
            self._files.append(file)
        self._places[key] = (len(self._files) - 1) << 32 | line
        return None


_URL_HEAD = re.compile(r"URL:", re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:a|abbr|b|big|blockquote|br|center|cite|code|dd|div|dl|dt|em|font|h[1-6]|hr|i|img|li|ol|"
    r"p|pre|q|s|small|span|strong|sub|sup|table|tbody|td|th|tr|tt|u|ul)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_LINE_TAG = re.compile(r"<(?:br|p|li|div|tr|h[1-6]|/p|/div|/li)\b", re.IGNORECASE)
_SIZE = re.compile(
    r"([\d.,]{1,20})\s*(bytes?|b|k|kb|kbytes?|kilobytes?|m|mb|mbytes?)?\.?", re.IGNORECASE
)
_SEPARATORS = re.compile(r"[,;:.\s]+")
_CODE = r"[A-Za-z]\d{0,2}"

_FORMS: dict[str, re.Pattern[str]] = {
    "url": re.compile(
        r"(?:https?|ftp|gopher)://[^/?#\s:<>{}|\\^\[\]]+(?::\d+)?(?:[/?#]\S*)?", re.I
    ),
    "email": re.compile(r"[\w#+.=%&'*/!?^{|}~-]+@[\w.=-]+\.[\w=-]+"),
    "date": re.compile(r"\d{4}(?:-(?:0\d|1[0-2])(?:-[0-3]\d)?|(?:0\d|1[0-2])(?:[0-3]\d)?)?"),
    "jel": re.compile(rf"{_CODE}(?:[,;:.\s]+{_CODE})*[,;:.\s]*"),
    "mime": re.compile(r"[\w.+-]+/[\w.+-]*(?:\s*;.*)?"),
    "status": re.compile(r"(?:forthcoming|published).*", re.IGNORECASE),
    "type": re.compile(r"ReDIF-(?:Paper|Article|Chapter|Book|Software)(?: 1\.0)?", re.IGNORECASE),
    "doi": re.compile(r"(?:doi:\s*|https?://(?:dx\.)?doi\.org/)?10\.\d{4,9}/\S+", re.IGNORECASE),
    **HANDLE_FORMS,
}
KINDS: dict[str, str] = {
    "url": "a URL (http, https, ftp or gopher)",
    "email": "an e-mail address",
    "date": "a date (yyyy-mm-dd, yyyy-mm or yyyy)",
    "jel": "JEL codes",
    "mime": "a MIME type",
    "status": "a status (it begins with Published or Forthcoming)",
    "type": "a type of templates (as ReDIF-Paper)",
    "doi": "a DOI",
    "archive": "an archive's handle (RePEc:aaa)",
    "series": "a series' handle (RePEc:aaa:ssssss)",
    "document": "a document's handle (RePEc:aaa:ssssss:code)",
    "institution": "an institution's handle (RePEc:edi:sssssss)",
    "person": "a person's handle or short-id",
}
"""The name of each kind, for people."""


def normalize(value: str, kind: str) -> str | None:
    """Return a value in the canonical form of its kind, or None if it does not fit.

    Dates get hyphens, JEL codes capitals and single spaces, media types lower case. Handles become
    canonical, sizes bytes if possible. The caller removes white space around and within.
    """
    if kind == "size":
        in_bytes = parse_size(value)
        return collapse_space(value) if in_bytes is None else f"{in_bytes} bytes"
    if _FORMS[kind].fullmatch(value) is None:
        return None
    if kind == "url":
        return value
    if kind == "date":
        return value if "-" in value else "-".join(filter(None, (value[:4], value[4:6], value[6:])))
    if kind == "jel":
        return " ".join(_SEPARATORS.split(value.upper())).strip()
    if kind == "mime":
        return value.lower()
    return canonical_handle(value) if kind in HANDLE_FORMS else value


normalize_cached = lru_cache(1 << 12)(normalize)
"""`normalize` with a cache, for short values: dates, media types and institutions recur."""
SHORT = 120
"""Characters of a value that is worth caching."""


def collapse_space(value: str) -> str:
    """Return a value with each run of white space, line ends included, as one space.

    White space means tabs, line ends, and normal and non-breaking spaces.
    """
    if "\n" in value:
        value = " ".join(map(str.strip, value.split("\n")))
    for character in "\t\r\u00a0":
        if character in value:
            value = value.replace(character, " ")
    while "  " in value:
        value = value.replace("  ", " ")
    return value.strip(" ")


def clean_url(value: str) -> str:
    """Clean a URL by ReDIF's rule: remove all white space and a leading `URL:`."""
    joined = "".join(value.split())
    return _URL_HEAD.sub("", joined, count=1) if joined[:4].upper() == "URL:" else joined


def breaks_at_hyphen(value: str) -> bool:
    """Tell whether a URL has white space behind a hyphen, which may not belong to the URL."""
    return any(part.endswith("-") for part in value.split()[:-1])


def plain_text(value: str) -> str:
    """Return a value as plain text: without HTML tags, with entities resolved, in one line.

    Only HTML's own tags are removed, so `a < b and c > d` stays. Entities are resolved once:
    `&amp;lt;` is `&lt;`. Other text is returned unchanged.
    """
    if "<" in value:
        value = _TAG.sub("", _LINE_TAG.sub(lambda match: f" {match[0]}", value))
    if "&" in value:
        value = html.unescape(value)
    return collapse_space(value)


def parse_size(value: str) -> int | None:
    """Return a File-Size in bytes, None if it has no number.

    The unit is kilobytes of 1,024 bytes, unless it names another.
    """
    match = _SIZE.fullmatch(collapse_space(value))
    if match is None:
        return None
    unit = (match[2] or "k").lower()
    digits = match[1].replace(",", "")
    try:
        number = float(digits)
    except ValueError:
        return None
    return round(number * (1 if unit[0] == "b" else 1 << 20 if unit[0] == "m" else 1 << 10))
