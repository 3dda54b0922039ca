"""Values of records: what a link, a language, a date and a readable text look like.

Doubtful values are taken for right ones: a false alarm costs more trust than a missed fault.
"""

import re
from datetime import date
from html.entities import html5
from urllib.parse import unquote_plus, urlsplit

from builder.http.secrets import PREFIXES, SECRETS

_LINK = re.compile(r"(?:https?\b|ftps?:|www\.)", re.IGNORECASE)
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)+\.?|localhost|\[?[0-9a-fA-F:]+\]?")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*|[xi]-[A-Za-z0-9-]+", re.IGNORECASE)
_ISO_639_1 = frozenset(
    """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da
    de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz
    ia id ie ig ii ik in io is it iu iw ja ji jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb
    lg li ln lo lt lu lv mg mh mi mk ml mn mo mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om
    or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw
    ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
    """.split()  # noqa: SIM905
)
_DATE = re.compile(
    r"[?~%]?(?:Y-?\d{5,}|-?([\dX]{4})(?:-[?~%]?([\dX]{2})(?:-[?~%]?([\dX]{2})"
    r"(?:T([01]\d|2[0-4]):[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?)?)?)[?~%]?"
)
"""A date of W3CDTF or EDTF; months may be seasons."""
_PERIOD = re.compile(r"\b(?:start|end|name|scheme)\s*=", re.IGNORECASE)
_CONTROL = re.compile(r"[\x7f-\x9f\ufdd0-\ufdef\ufffd-\uffff]")
_TRAIL = "\x80-\xbfŒœŠšŽžŸƒˆ˜–—‘’‚“”„†‡•…‰‹›€™"
_MOJIBAKE = re.compile(
    # UTF-8 that was read as Windows-1252. What may end a word before a quotation mark is left out.
    "Ã[\x80-\x9f¡-º¼-¿€‚ƒ„†‡ˆ‰ŠŒŽ˜™šœžŸ]|Â[\x80-\x9f¡-ª¬-º¼-¿]|â€[\x80-\x9f¦˜™œ“”¢]|â„¢|ï»¿|ï¿½|ðŸ"
    f"|(?:[ÄÅÎÏÐÑØÙ][{_TRAIL}]){{3}}"
)
_MARKUP = re.compile(
    r"&(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"
    r"|</?(?:jats:\w+|p|br|div|span|a|em|strong|i|b|u|ul|ol|li|sub|sup)(?:\s[^<>]*)?/?>"
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,15}://[^\s\"<>]+")
_PASSWORD = re.compile(r"://[^/?#\s:@]*:[^/?#\s@]+@")
_PARAMETER = re.compile(r"[?&;]([^=&;#?]+)=[^&;#]")


def is_link(text: str) -> bool:
    """Return whether a value that begins as an address is a whole one."""
    if not _LINK.match(text):
        return True
    try:
        url = urlsplit(text)
        host, _ = url.hostname or "", url.port
    except ValueError:
        return False
    whole = bool(url.scheme and _HOST.fullmatch(host)) and not re.search(r"\s", text)
    return whole and not re.match(r"/*https?:?/", url.path) and "/123456789/" not in url.path


def is_language(text: str) -> bool:
    """Return whether a value is a code of BCP 47 or ISO 639, or an address of one."""
    codes = [] if "://" in text else text.lower().split("/")  # OpenAIRE allows nld/dut
    heads = [code.partition("-")[0] for code in codes if _LANGUAGE.fullmatch(code)]
    right = [head for head in heads if len(head) != 2 or head in _ISO_639_1]
    return len(right) == len(codes)


def is_date(text: str) -> bool:
    """Return whether a value is a date or period of W3CDTF, EDTF or DCMI."""
    parts = re.sub(r"^info:eu-repo/date/\w+/", "", text).split("/", 1)
    return bool(_PERIOD.search(text)) or all(
        part in ("", "..", "open", "unknown") or is_day(part) for part in parts
    )


def is_day(text: str) -> bool:
    """Return whether a text is a date of W3CDTF or EDTF, and of the calendar."""
    match = _DATE.fullmatch(text)
    if not match or text == "0000":
        return False
    year, month, day = (part if part and part.isdigit() else None for part in match.groups()[:3])
    if month and int(month) > 20 and not match[3]:
        return int(month) <= 41  # seasons of EDTF
    try:
        return bool(date(int(year or 4) or 4, int(month or 1), int(day or 1)))
    except ValueError:
        return False


def is_plain(text: str) -> bool:
    """Return whether a text has no HTML: neither entities nor tags."""
    return not any(
        not match[1] or match[1].startswith("#") or f"{match[1]};" in html5
        for match in _MARKUP.finditer(text)
    )


def is_public(text: str) -> bool:
    """Return whether the URLs in a text have no secrets."""
    names = {
        unquote_plus(word).lower() for url in _URL.findall(text) for word in _PARAMETER.findall(url)
    }
    return not (
        _PASSWORD.search(text) or names & SECRETS or any(n.startswith(PREFIXES) for n in names)
    )


def is_whole(text: str) -> bool:
    """Return whether a text has no characters of a failed conversion."""
    return not _CONTROL.search(text) or not is_right_encoding(text)


def is_right_encoding(text: str) -> bool:
    """Return whether a text is not UTF-8 that was read as Windows-1252."""
    return not _MOJIBAKE.search(text)
