"""Keys: where the bytes of an object lie, computed from its id and a time alone.

A tist is the start of a run in whole seconds since 1970. Its decimal digits are reversed and split
after the third and the sixth: these are the folders. The escaped id is the name. The last digits
change fastest, so the keys spread over a bucket.

An option gives a tist as seconds, a day or an instant.
"""

import hashlib
import re
from urllib.parse import quote, unquote

from builder.errors import UsageError
from functions.snapshot import instant, obi
from functions.snapshot.errors import SheafError

ROOT = "obi/"
"""Prefix of the obi store in the store."""
RUNS = f"{ROOT};runs/"
"""Prefix of the runs. Escaped ids have no semicolon, so no object can be mistaken for a run."""
PACKS = obi.PACKS

FILES = f"{ROOT};files/"
"""Prefix of the derived tables of files, see builder.sources.fulltexts.file_table."""

LONGEST = 240
"""Longest escaped id, in characters, that is a name unshortened; file systems allow 255."""
SHORTENED = 160
"""Characters that stay of a longer one, before its digest."""
_MARK = ";"
REDIRECT = ";redirect"
"""Suffix of the name of a redirect."""
_DIGITS = range(9, 12)
_TABLE = re.compile(r"([0-9]{9,11})-([0-9a-f]{64})\.parquet")
_DOTS = {".": "%2E", "..": "%2E%2E"}  # not valid as file names; no other id gives these
_TIST_SECONDS = re.compile(r"[0-9]{9,11}")
_TIST_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
DAY_START, DAY_END = "00:00:00", "23:59:59"
"""The seconds of a day that a day can stand for."""


class BadTist(SheafError):
    """A time that no run can have."""


def escape(identifier: str) -> str:
    """Return an id with all but A-Z a-z 0-9 - . _ ~ as %XX of its UTF-8 form (RFC 3986).

    The result is that of uri_escape_utf8 in Perl's URI::Escape. The ids `.` and `..` are the
    exception: their dots are escaped as well. The id is not normalised before.
    """
    return _DOTS.get(identifier) or quote(identifier, safe="")


def name(identifier: str) -> str:
    """Return the name of an id: the escaped id or, if that is too long, its start and digest."""
    text = escape(identifier)
    if len(text) <= LONGEST:
        return text
    start = text[:SHORTENED]
    percent = start.rfind("%", SHORTENED - 2)  # the last escape may be cut in two
    start = start if percent < 0 else start[:percent]
    return f"{start}{_MARK}{hashlib.sha256(identifier.encode()).hexdigest()}"


def folder(tist: int) -> str:
    """Return the folders of a tist, with a final slash. Raises BadTist."""
    digits = str(tist)
    if tist < 0 or len(digits) not in _DIGITS:
        raise BadTist(
            f"{tist} is not a time of a run: expected seconds since 1970 of 9 to 11 digits"
        )
    turned = digits[::-1]
    return f"{turned[:3]}/{turned[3:6]}/{turned[6:]}/"


def key(tist: int, identifier: str) -> str:
    """Return the key of the object's version that was recorded at `tist`."""
    return ROOT + folder(tist) + name(identifier)


def redirect(tist: int, identifier: str) -> str:
    """Return the key of the redirect of a URL that was recorded at `tist`."""
    return key(tist, identifier) + REDIRECT


def run(tist: int) -> str:
    """Return the prefix of the run's own objects. Raises BadTist."""
    return f"{RUNS}{folder(tist).replace('/', '')}/"


def pack(sha256: str) -> str:
    """Return the key of a pack."""
    return PACKS + sha256


def run_of(key: str) -> int | None:
    """Return the tist of the run that a key below RUNS belongs to; None for a stray key."""
    turned, slash, rest = key.removeprefix(RUNS).partition("/")
    return _tist(turned) if key.startswith(RUNS) and slash and rest else None


def file_table(tist: int, digest: str) -> str:
    """Return the key of the table of files after the run `tist`, by the SHA-256 of its bytes."""
    return f"{FILES}{tist}-{digest}.parquet"


def parse_file_table(key: str) -> tuple[int, str] | None:
    """Return the tist and the SHA-256 of a key of a table of files; None for any other key."""
    match = _TABLE.fullmatch(key.removeprefix(FILES)) if key.startswith(FILES) else None
    return None if match is None else (int(match[1]), match[2])


def parse(key: str) -> tuple[int, str | None] | None:
    """Return the tist and the id of a key of content; None for any other key.

    The id is None if the name is shortened: only the log of the run has the whole id.
    """
    tist, text = tist_of(key), key.rpartition("/")[2]
    if tist is None or not text:
        return None
    if _MARK in text:
        digest = text.rpartition(_MARK)[2]
        return (tist, None) if len(digest) == 64 and text.count(_MARK) == 1 else None
    try:
        identifier = unquote(text, errors="strict")
    except UnicodeDecodeError:
        return None
    return (tist, identifier) if escape(identifier) == text else None


def tist_of(key: str) -> int | None:
    """Return the tist of the run whose folders contain the key; None for any other key."""
    parts = key.split("/")
    if len(parts) != 5 or parts[0] + "/" != ROOT or [*map(len, parts[1:3])] != [3, 3]:
        return None
    return _tist("".join(parts[1:4]))


def _tist(turned: str) -> int | None:
    if not (turned.isascii() and turned.isdecimal() and len(turned) in _DIGITS):
        return None
    digits = turned[::-1]
    return None if digits.startswith("0") else int(digits)


def parse_tist(text: str, option: str, second: str) -> int:
    """Return the time in an option; of a day, its `second`. Raises UsageError."""
    if _TIST_SECONDS.fullmatch(text):
        return int(text)
    try:
        moment = instant.from_text(f"{text}T{second}Z" if _TIST_DAY.fullmatch(text) else text)
    except ValueError:
        raise UsageError(
            f"{option} {text}: expected a date such as 2025-01-05, an instant such as "
            "2025-01-05T12:00:00Z, or seconds since 1970"
        ) from None
    return int(moment.timestamp())
