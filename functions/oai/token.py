"""Resumption tokens: stateless, never expiring, and not trusted (OAI-PMH 2.0, section 3.5).

A token is its fields, a version and a checksum, as base64url without padding: characters that
neither a URL nor XML escapes. The checksum is no secret and finds slips, not forgers; so every
field is tested as well, and a forged token that passes asks for nothing that a request could not.
"""

import base64
import binascii
import re
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from functions.oai import request
from functions.oai.errors import BAD_TOKEN, OAIError, error
from functions.oai.place import Place
from functions.snapshot import setspec

_VERSION = "1"
_LETTERS = {request.LIST_RECORDS: "r", request.LIST_IDENTIFIERS: "i", request.LIST_SETS: "s"}
_VERBS = {letter: verb for verb, letter in _LETTERS.items()}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_SECONDS = re.compile(r"0|-?[1-9][0-9]{0,11}")
_PREFIX = re.compile(r"[A-Za-z0-9\-_.!~*'()]+")
_HIGHEST = 2**63 - 1
_LONGEST = 8192
_CHECK_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Where a list goes on, and what list it is.

    The next record is the first one at `position` or behind it in `snapshot`; the next set is the
    one behind `after`, a place as text. `cursor` records came before, `size` is what the whole list
    has.
    """

    verb: str
    snapshot: int
    cursor: int
    size: int
    prefix: str = ""
    set: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    position: int = 0
    after: str = ""

    def to_text(self) -> str:
        """Return the token as harvesters get it; equal tokens give the same text."""
        fields = (
            _VERSION + _LETTERS[self.verb],
            *map(str, (self.snapshot, self.cursor, self.size, self.position)),
            _seconds(self.start),
            _seconds(self.end),
            self.prefix,
            self.set or "",
            self.after,
        )
        data = " ".join(fields).encode("ascii")
        return base64.urlsafe_b64encode(_check(data) + data).rstrip(b"=").decode("ascii")

    @staticmethod
    def from_text(text: str, verb: str) -> "Token":
        """Read what `to_text` wrote for `verb`. Raises OAIError badResumptionToken for the rest."""
        token = _read(text)
        # One text for each token: base64 has spare bits that would otherwise be free.
        if token is None or token.verb != verb or token.to_text() != text:
            raise refusal()
        return token


def refusal() -> OAIError:
    """Return the error for a token that this repository did not give for such a request."""
    return error(BAD_TOKEN, "This repository gave no such resumption token for this verb.")


def _read(text: str) -> Token | None:
    if not text.isascii() or len(text) > _LONGEST:
        return None
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        check, data = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
        fields = data.decode("ascii").split(" ")
    except (binascii.Error, ValueError):
        return None
    if check != _check(data) or len(fields) != 10 or fields[0][:1] != _VERSION:
        return None
    numbers = [int(field) for field in fields[1:5] if _NUMBER.fullmatch(field)]
    start, end = _instant(fields[5]), _instant(fields[6])
    verb = _VERBS.get(fields[0][1:])
    if verb is None or len(numbers) != 4 or max(numbers) > _HIGHEST:
        return None
    if (fields[5] and start is None) or (fields[6] and end is None):
        return None
    token = Token(
        verb=verb,
        snapshot=numbers[0],
        cursor=numbers[1],
        size=numbers[2],
        position=numbers[3],
        start=start,
        end=end,
        prefix=fields[7],
        set=fields[8] or None,
        after=fields[9],
    )
    return token if _sound(token) else None


def _sound(token: Token) -> bool:
    """Tell whether the fields could have come out of an answer."""
    if not (token.snapshot >= 1 and 1 <= token.cursor < token.size):
        return False
    if token.verb == request.LIST_SETS:
        bare = token.position == 0 and not (token.prefix or token.set or token.start or token.end)
        return bare and Place.from_text(token.after) is not None
    return (
        token.position >= 1
        and not token.after
        and _PREFIX.fullmatch(token.prefix) is not None
        and (token.set is None or setspec.is_valid(token.set))
        and (token.start is None or token.end is None or token.start <= token.end)
    )


def _check(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECK_BYTES, "big")


def _seconds(when: datetime | None) -> str:
    return "" if when is None else str((when - _EPOCH) // timedelta(seconds=1))


def _instant(text: str) -> datetime | None:
    if not _SECONDS.fullmatch(text):
        return None
    try:
        return _EPOCH + timedelta(seconds=int(text))
    except OverflowError:
        return None
