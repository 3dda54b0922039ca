"""Values: the forms that an attribute's kind asks for, and what a value says in plain text."""

import html
import re
from functools import lru_cache

from builder.sources.redif import handle

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
    **handle.HANDLE_FORMS,
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
"""What each kind is called for people."""


def normalize(value: str, kind: str) -> str | None:
    """Return a value of its kind, in the one form that says the same, or None if it is none.

    Dates get hyphens, JEL codes capitals and single spaces between, media types are in lower case,
    handles canonical, sizes in bytes where they are any. White space around or within is the
    caller's to remove.
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
    return handle.canonical_handle(value) if kind in handle.HANDLE_FORMS else value


normalize_cached = lru_cache(1 << 12)(normalize)
"""The same, remembered, for short values: most dates, media types and institutions come again."""
SHORT = 120
"""Characters of a value that is worth remembering."""


def collapse_space(value: str) -> str:
    """Return a value with every stretch of white space, line ends included, as one space.

    White space is that of keyboards: spaces, tabs, line ends, and spaces that do not break.
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
    """Return a URL by ReDIF's rule: all white space and a leading `URL:` removed."""
    joined = "".join(value.split())
    return _URL_HEAD.sub("", joined, count=1) if joined[:4].upper() == "URL:" else joined


def breaks_at_hyphen(value: str) -> bool:
    """Tell whether a URL has white space behind a hyphen: nobody knows whose the hyphen is."""
    return any(part.endswith("-") for part in value.split()[:-1])


def plain_text(value: str) -> str:
    """Return a value as plain text: tags of HTML removed, its entities resolved, one line.

    Only tags that HTML has are removed, so that `a < b and c > d` stays. Entities are resolved
    once: `&amp;lt;` is `&lt;`. Text without either is returned as it is.
    """
    if "<" in value:
        value = _TAG.sub("", _LINE_TAG.sub(lambda match: f" {match[0]}", value))
    if "&" in value:
        value = html.unescape(value)
    return collapse_space(value)


def parse_size(value: str) -> int | None:
    """Return a File-Size in bytes, None where it says none.

    It is in kilobytes, of 1,024 bytes, unless it names another unit.
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
