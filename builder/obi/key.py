"""Keys: where the bytes of an object of interest lie, computed from its id and a time alone.

A tist is whole seconds since 1970 of a run's start. Its decimal digits reversed, cut behind the
third and the sixth, are the folders; the escaped id is the name. The last digits change fastest,
so the keys of a bucket spread.
"""

import hashlib
from urllib.parse import quote, unquote

from functions.snapshot.errors import SheafError

ROOT = "obi/"
"""Where the obi store lies in the store."""
RUNS = f"{ROOT};runs/"
"""Where its runs lie. No escaped id has a semicolon, so no object can be taken for one of them."""

LONGEST = 240
"""Characters of an escaped id that are its name as they are; file systems allow 255."""
_SHORTENED = 160
_MARK = ";"
REDIRECT = ";redirect"
"""What the name of a redirect ends with."""
_DIGITS = range(9, 12)
_DOTS = {".": "%2E", "..": "%2E%2E"}  # no file can be called so; no other id has these names


class BadTist(SheafError):
    """A time that no run can have."""


def escape(identifier: str) -> str:
    """Return an id with all but A-Z a-z 0-9 - . _ ~ as %XX of its UTF-8 form (RFC 3986).

    It is what uri_escape_utf8 of Perl's URI::Escape gives, but for the ids `.` and `..`, whose dots
    are escaped as well. Nothing is normalised before.
    """
    return _DOTS.get(identifier) or quote(identifier, safe="")


def name(identifier: str) -> str:
    """Return the name of an id: it escaped or, where that is too long, its beginning and digest."""
    text = escape(identifier)
    if len(text) <= LONGEST:
        return text
    start = text[:_SHORTENED]
    percent = start.rfind("%", _SHORTENED - 2)  # the last escape may be cut in two
    start = start if percent < 0 else start[:percent]
    return f"{start}{_MARK}{hashlib.sha256(identifier.encode()).hexdigest()}"


def folder(tist: int) -> str:
    """Return the folders of a tist, with a slash at the end. Raises BadTist."""
    digits = str(tist)
    if tist < 0 or len(digits) not in _DIGITS:
        raise BadTist(f"{tist} is no time of a run: expected seconds since 1970 of 9 to 11 digits")
    turned = digits[::-1]
    return f"{turned[:3]}/{turned[3:6]}/{turned[6:]}/"


def key(tist: int, identifier: str) -> str:
    """Return where in the store the version of an object lies that was noted at `tist`."""
    return ROOT + folder(tist) + name(identifier)


def redirect(tist: int, identifier: str) -> str:
    """Return where it is written down that a URL led elsewhere at `tist`."""
    return key(tist, identifier) + REDIRECT


def run(tist: int) -> str:
    """Return the prefix of what belongs to the run of `tist` itself. Raises BadTist."""
    return f"{RUNS}{folder(tist).replace('/', '')}/"


def run_of(key: str) -> int | None:
    """Return the tist of the run to which an object below RUNS belongs, None for a stray one."""
    turned, slash, rest = key.removeprefix(RUNS).partition("/")
    if not (key.startswith(RUNS) and slash and rest):
        return None
    return _tist(turned)


def parse(key: str) -> tuple[int, str | None] | None:
    """Return the tist and the id that a key of content was made of; None for any other key.

    The id is None where the name is a shortened one: the log of the run has it whole.
    """
    tist, text = tist_of(key), key.rpartition("/")[2]
    if tist is None or not text:
        return None
    if _MARK in text:
        digest = text.rpartition(_MARK)[2]
        return (tist, None) if len(digest) == 64 and text.count(_MARK) == 1 else None
    identifier = unquote(text, errors="strict") if _is_utf8(text) else ""
    return (tist, identifier) if escape(identifier) == text else None


def tist_of(key: str) -> int | None:
    """Return the tist of the run in whose folders an object lies, None where it is in none."""
    parts = key.split("/")
    if len(parts) != 5 or parts[0] + "/" != ROOT or [*map(len, parts[1:3])] != [3, 3]:
        return None
    return _tist("".join(parts[1:4]))


def is_redirect(key: str) -> bool:
    """Tell whether the key is that of a redirect."""
    return key.endswith(REDIRECT) and parse(key.removesuffix(REDIRECT)) is not None


def _tist(turned: str) -> int | None:
    if not (turned.isascii() and turned.isdecimal() and len(turned) in _DIGITS):
        return None
    digits = turned[::-1]
    return None if digits.startswith("0") else int(digits)


def _is_utf8(text: str) -> bool:
    try:
        unquote(text, errors="strict")
    except UnicodeDecodeError:
        return False
    return True
