"""URLs of files: how one that stands in a template becomes the id of the file behind it.

White space goes, for templates wrap URLs; what WHATWG's parser makes of the rest is written with
its escapes in one form and without fragment. Nothing that a server could tell apart is made alike.
The only file that imports ada_url.
"""

import re
from dataclasses import dataclass

import ada_url

BAD, USERINFO, SCHEME = "bad-file-url", "userinfo", "unsupported-scheme"
"""Why a URL is the id of no file."""

_PREFIX = re.compile(r"URL:", re.IGNORECASE)
_FETCHED = re.compile(r"(https?|ftp)://[^/?#]", re.IGNORECASE)
_OTHER = re.compile(r"(?!https?:|ftp:)[a-z][a-z0-9+.-]*://", re.IGNORECASE)
# An escape that follows on what could be the beginning of another stays, or it would complete that.
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_BEGUN = re.compile(r"%[0-9A-Fa-f]?\Z")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True, slots=True)
class Url:
    """What became of a URL: the id of a file or, where it is None, what is wrong with it.

    `spaced` tells that there was white space within a line of it.
    """

    id: str | None
    fault: str | None = None
    spaced: bool = False


def normalised(raw: str) -> Url:
    """Return the id of the file behind a URL as it was written. What it returns, it leaves so."""
    text = raw.strip()
    if _PREFIX.match(text):
        text = text[4:].strip()
    spaced = any(len(line.split()) > 1 for line in text.splitlines())
    text = "".join(text.split())
    if not _FETCHED.match(text):
        return Url(None, SCHEME if _OTHER.match(text) else BAD, spaced)
    try:
        found = ada_url.URL(text)
    except (ValueError, UnicodeEncodeError):
        return Url(None, BAD, spaced)
    if found.username or found.password:
        return Url(None, USERINFO, spaced)
    return Url(_escapes(found.href.partition("#")[0]), None, spaced)


def _escapes(text: str) -> str:
    """Return it with upper-case escapes, and none of what needs none (RFC 3986, 6.2.2)."""

    def written(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        begun = _BEGUN.search(text, max(0, match.start() - 2), match.start())
        return character if character in _UNRESERVED and not begun else match[0].upper()

    return _ESCAPE.sub(written, text)
