"""URLs that differ only by what a browser adds against caches, such as `style.css?1393844276741`.

Pages write such numbers anew with every visit, so no crawler has the very URL that a reader's
browser asks for. The rules are pywb's for all sites; but it ignores the queries of all file names,
and these only those of styles, scripts, fonts, images and media. They read SURTs, which are in
lower case and have sorted arguments.
"""

import re

from functions.content.terms import Range
from functions.snapshot import surt

_FILE = re.compile(
    r"[^?]*\.(?:css|m?js|map|swf|woff2?|ttf|otf|eot|png|jpe?g|gif|webp|avif|svg|ico|bmp|"
    r"mp[34]|m4[av]|web[mp]|og[gv]|wav|flac|vtt)"
)
"""Paths of files whose query says no more than a version."""
_VARIED = re.compile(
    r"(?:(?P<name>_=|cb=|uncache=)[0-9]+"
    r"|(?P<source>(?:utm_[a-z]+|fbclid|gclid)=).*"
    # A time in seconds, in milliseconds or in digits: a short number may name a page.
    r"|(?P<time>(?:(?:v|ver|version|t|time|rev|no_?cache|rnd|rand|random)=)?)[0-9]{10,17}"
    r"|(?P<bust>[a-z_]{0,20}(?:bust|ts)[a-z_]{0,20}=)1[0-9]{9,15}"
    r"|(?P<chance>(?:rnd|rand|random|r)=0?\.)[0-9]{4,})"
)
"""Arguments that say nothing; what is in a group stays the same in all of them."""
_CALLBACK = re.compile(
    r"([a-z_]{1,20}=[a-z_.]{0,20}(?:jsonp|jquery|callback)[a-z_.]{0,20})[0-9][0-9_]*"
)
"""Names of functions that are called with the answer (JSONP), but for their number."""


def normal_key(key: str) -> str:
    """Return what SURTs that mean the same have in common."""
    path, _, query = key.partition("?")
    if _is_file(path, query):
        return path
    texts = (text for text in query.split("&") if not _VARIED.fullmatch(text))
    return "?".join(filter(None, (path, "&".join(_CALLBACK.sub(r"\1", t) for t in texts))))


def variant_range(key: str) -> Range:
    """Return the range in which SURTs with the same normal key and a query are looked for.

    They begin as this one up to its first varied value, or as its path if nothing varies.
    """
    path, _, query = key.partition("?")
    start = before = f"{path}?"
    for text in () if _is_file(path, query) else query.split("&"):
        if match := _VARIED.fullmatch(text) or _CALLBACK.fullmatch(text):
            start = before + (match[match.lastindex] if match.lastindex else "")
            break
        before += f"{text}&"
    return start, f"{start}\x7f"


def _is_file(path: str, query: str) -> bool:
    return _FILE.fullmatch(path) is not None and surt.METHOD not in query
