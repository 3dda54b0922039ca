"""Forms of requests: how names and values are written, and what a date or a URI is.

A part of the model in protocol.py, and as apart from this program as that.
"""

import re
from contextlib import suppress
from datetime import datetime
from urllib.parse import unquote_to_bytes

NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
PLAIN = re.compile("[^\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffd]+")
_LEVEL = r"[A-Za-z0-9\-_.!~*'()]+"
PREFIX = re.compile(_LEVEL)
SPEC = re.compile(f"{_LEVEL}(:{_LEVEL})*")
_CHARACTER = r"[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2}"
_AUTHORITY = r"//([A-Za-z0-9\-._~!$&'()*+,;=:]+@)?[A-Za-z0-9\-._~]+(:[0-9]{1,5})?(?=[/?#]|\Z)"
_URI = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.\-]*:({_AUTHORITY}|(?!//))({_CHARACTER})*(#({_CHARACTER})*)?"
)


def is_plainly_uri(text: str) -> bool:
    """Tell whether nobody could take `text` for anything but a URI (RFC 3986, RFC 2396)."""
    return _URI.fullmatch(text) is not None and not text.endswith(":")


_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:T([0-9]{2}):([0-9]{2}):([0-9]{2})Z)?", re.ASCII
)


def is_date(text: str) -> bool:
    """Tell whether `text` is a UTCdatetime of either granularity (3.3).

    The year 0 is no date to the schema, nor is a leap second.
    """
    match = _DATE.fullmatch(text)
    with suppress(ValueError):
        return match is not None and bool(datetime(*(int(n or 0) for n in match.groups())))
    return False


def decoded(text: bytes) -> list[tuple[str | None, str | None]]:
    """Return names and values of a form (WHATWG, URL standard, section 5.1).

    None stands for a name or value whose bytes are no UTF-8.
    """
    pairs = []
    for piece in text.split(b"&"):
        if piece:
            name, _, value = piece.partition(b"=")
            pairs.append((_characters(name), _characters(value)))
    return pairs


def _characters(raw: bytes) -> str | None:
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        return None
