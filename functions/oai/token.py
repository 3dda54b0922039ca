"""Resumption tokens: stateless, never expiring, not trusted (OAI-PMH 2.0, section 3.5).

A token is a checksum and packed fields, as base64url, which neither URLs nor XML escape. The
checksum covers the namespace and the store's id: positions have a meaning in one store only. It
finds slips, not forgeries, so every field is tested as well.

The fields are: the letter of the verb; the token's version; and snapshot, cursor, size, position,
start and end as numbers of 7 bits a byte, lowest first. Start and end are in seconds plus one; 0
means None. Last are prefix, set and `after`, each behind its length. A set that would make the
token longer than LONGEST is shortened to its first characters and a digest.
"""

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain

from functions.oai import request
from functions.oai.request import BAD_TOKEN, OAIError, error
from functions.reading.as_of import PointerReading
from functions.reading.repository import Repository
from functions.snapshot import oai_name
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Manifest

LIVE, EMPTIED, NAMED = range(3)
"""Stages of a list: sets with live records, sets without, sets that are only configured."""

_MARKS = "+/="  # characters that no setSpec contains
_PLACE = re.compile(r"(0|[1-9][0-9]{0,9})([+/=])(.+)", re.DOTALL)
_SOUGHT = 1000  # sets read at a time to resolve a token's shortened set
LONGEST = 196
"""Maximum length of a token in characters, unless its metadataPrefix has more than fifty."""

_VERSION = 2
_LETTERS = {request.LIST_RECORDS: b"r", request.LIST_IDENTIFIERS: b"i", request.LIST_SETS: b"s"}
_VERBS = {letter: verb for verb, letter in _LETTERS.items()}
_EPOCH = datetime(1, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_PREFIX = re.compile(r"[A-Za-z0-9\-_.!~*'()]+")
_SHORTENED = re.compile(r"([A-Za-z0-9\-_.!~*'():]*),([0-9a-f]{16})")
_AFTER = re.compile(r"([0-9]*[^A-Za-z0-9]?)(.*)", re.DOTALL)  # start of a place, and its set
_HIGHEST = 2**63 - 1
_LONGEST_READ = 8192
_CHECK_BYTES = 4
_DIGEST_LETTERS = 17  # with the comma before them


@dataclass(frozen=True, slots=True)
class SetCursor:
    """Position behind the set `spec` in a stage of a list; the list began at publish `sequence`."""

    sequence: int
    stage: int
    spec: str

    def to_text(self) -> str:
        """Return the cursor as text for a token."""
        return f"{self.sequence}{_MARKS[self.stage]}{self.spec}"

    @staticmethod
    def from_text(text: str) -> "SetCursor | None":
        """Parse the text of `to_text`; None if it is invalid."""
        match = _PLACE.fullmatch(text)
        if match is None or not oai_name.is_set(match[3]):
            return None
        return SetCursor(int(match[1]), _MARKS.index(match[2]), match[3])


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A list and where it continues.

    The next record is the first at or behind `position` in `snapshot`. The next set is the one
    behind `after`, a place as text. `cursor` counts the records before, `size` those of the whole
    list. In a parsed token `set` and `after` may be shortened; `with_set` restores them. Tokens are
    refused by repositories of another `namespace` or `store` id.
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
    namespace: str = ""
    store: str = ""

    def to_text(self) -> str:
        """Return the token as harvesters get it; equal tokens have equal texts."""
        data = self._pack()
        excess = len(data) + _CHECK_BYTES - LONGEST * 3 // 4
        if excess > 0 and (self.set or self.after):
            short = replace(
                self,
                set=_shorten(self.set, excess) if self.set else None,
                after=_parse_after(self.after) + _shorten(_set_of(self.after), excess)
                if self.after
                else "",
            )
            data = short._pack()
        return _text(data, self.namespace, self.store)

    def with_set(self, specs: Iterable[str]) -> "Token":
        """Return the token with its set in full, which must be one of `specs`.

        Raises OAIError badResumptionToken if no specification matches.
        """
        wanted = self.shortened
        if wanted is None:
            return self
        start, digest = wanted
        for spec in specs:
            if spec.startswith(start) and _digest(spec) == digest:
                if self.after:
                    return replace(self, after=_parse_after(self.after) + spec)
                return replace(self, set=spec)
        raise refusal()

    @property
    def shortened(self) -> tuple[str, str] | None:
        """Start and digest of a shortened set; None if the set is in full."""
        match = _SHORTENED.fullmatch(self.set or _set_of(self.after))
        return (match[1], match[2]) if match else None

    def _pack(self) -> bytes:
        numbers = (self.snapshot, self.cursor, self.size, self.position)
        seconds = (_seconds(self.start), _seconds(self.end))
        texts = (self.prefix, self.set or "", self.after)
        return b"".join(
            (
                _LETTERS[self.verb],
                *map(_number, (_VERSION, *numbers, *seconds)),
                *(_number(len(text)) + text.encode("ascii") for text in texts),
            )
        )

    @staticmethod
    def from_text(text: str, verb: str, namespace: str, store: str = "") -> "Token":
        """Parse the text of `to_text` for `verb`. Raises OAIError badResumptionToken if invalid."""
        token = _read(text, namespace, store)
        # One text for each token: base64 has spare bits that could otherwise vary.
        if token is None or token.verb != verb or _text(token._pack(), namespace, store) != text:
            raise refusal()
        return token

    @staticmethod
    def of_store(text: str, verb: str, manifest: Manifest) -> "Token":
        """Parse a token of the store of `manifest`, under its present id or a former one.

        A former id is valid for the snapshots published under it: up to there the store has the
        same history as any other with that id. Raises OAIError badResumptionToken.
        """
        for store in dict.fromkeys((manifest.store, *(name for _, name in manifest.former))):
            with suppress(OAIError):
                token = Token.from_text(text, verb, manifest.namespace, store)
                if manifest.store_of(token.snapshot) == store:
                    return token
        raise refusal()


def refusal() -> OAIError:
    """Return the error for a token that this repository did not issue for this verb."""
    return error(BAD_TOKEN, "This repository did not issue this resumption token for this verb.")


def is_known(repository: Repository, snapshot: int, reading: PointerReading) -> bool:
    """Return whether a token's snapshot was ever in effect, or is by any allowed clock."""
    current = repository.manifest(max(reading.reached, reading.entry.snapshot))
    return snapshot <= reading.reached and snapshot not in current.skipped


def find_manifest(
    repository: Repository, snapshot: int, reading: PointerReading
) -> tuple[Manifest, bool]:
    """Return a snapshot's manifest, or the current one if it was retired, and whether it was."""
    if not reading.pointer.is_retired(snapshot):
        try:
            return repository.manifest(snapshot), False
        except MissingObject:
            if snapshot >= reading.entry.snapshot:
                raise  # the snapshot in effect is never retired, so the store is damaged
    return repository.manifest(reading.entry.snapshot), True


def name_set(
    repository: Repository, manifest: Manifest, token: Token, more: Sequence[str] = ()
) -> Token:
    """Return the token with its set in full, from the repository or `more`.

    Raises OAIError if no set matches.
    """
    if token.shortened is None:
        return token

    def list_sets(after: str) -> list[str]:
        return [row.spec for row in repository.sets(manifest, after, _SOUGHT)]

    def list_origin_sets(after: str) -> list[str]:
        return [spec for spec, _ in repository.origin_sets(manifest, after, _SOUGHT)]

    parts = (_beginning(each, token.shortened[0]) for each in (list_sets, list_origin_sets))
    return token.with_set(chain(more, *parts))


def _beginning(list_specs: Callable[[str], list[str]], start: str) -> Iterator[str]:
    after = start
    while specs := list_specs(after):
        for spec in specs:
            if not spec.startswith(start):
                return
            yield spec
        after = specs[-1]


def _text(data: bytes, namespace: str, store: str = "") -> str:
    whole = _check(data, namespace, store) + data
    return base64.urlsafe_b64encode(whole).rstrip(b"=").decode("ascii")


def _shorten(spec: str, excess: int) -> str:
    length = max(0, len(spec) - excess - _DIGEST_LETTERS)
    return f"{spec[:length]},{_digest(spec)}"


def _parse_after(after: str) -> str:
    return _AFTER.fullmatch(after)[1]  # type: ignore[index]


def _set_of(after: str) -> str:
    return _AFTER.fullmatch(after)[2]  # type: ignore[index]


def _digest(spec: str) -> str:
    return hashlib.sha256(spec.encode("ascii")).hexdigest()[:16]


def _read(text: str, namespace: str, store: str) -> Token | None:
    if not text.isascii() or len(text) > _LONGEST_READ:
        return None
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        check, data = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
        if check != _check(data, namespace, store):
            return None
        token = _unpack(data)
    except (binascii.Error, ValueError, IndexError, KeyError, OverflowError):
        return None
    if token is None or not _sound(token):
        return None
    return replace(token, namespace=namespace, store=store)


def _unpack(data: bytes) -> Token | None:
    """Return the token of packed fields; None or a look-up error if they are invalid."""
    numbers, place = [], 1
    for _ in range(7):
        number, place = _read_number(data, place)
        numbers.append(number)
    texts = []
    for _ in range(3):
        length, place = _read_number(data, place)
        texts.append(data[place : place + length].decode("ascii"))
        place += length
    version, snapshot, cursor, size, position, start, end = numbers
    if version != _VERSION or place != len(data):
        return None
    return Token(
        verb=_VERBS[data[:1]],
        snapshot=snapshot,
        cursor=cursor,
        size=size,
        position=position,
        start=_instant(start),
        end=_instant(end),
        prefix=texts[0],
        set=texts[1] or None,
        after=texts[2],
    )


def _sound(token: Token) -> bool:
    """Return whether this repository could have issued these fields."""
    if not (token.snapshot >= 1 and 1 <= token.cursor < token.size):
        return False
    if token.verb == request.LIST_SETS:
        bare = token.position == 0 and not (token.prefix or token.set or token.start or token.end)
        is_place = SetCursor.from_text(f"{_parse_after(token.after)}a") is not None
        return bare and is_place and _is_set(_set_of(token.after))
    return (
        token.position >= 1
        and not token.after
        and _PREFIX.fullmatch(token.prefix) is not None
        and (token.set is None or _is_set(token.set))
        and (token.start is None or token.end is None or token.start <= token.end)
    )


def _is_set(text: str) -> bool:
    return oai_name.is_set(text) or _SHORTENED.fullmatch(text) is not None


def _check(data: bytes, namespace: str, store: str) -> bytes:
    # A store that Sheaf 0.1.0 published has no id: its tokens stay valid.
    issuer = f"{namespace} {store}" if store else namespace
    return zlib.crc32(data, zlib.crc32(issuer.encode())).to_bytes(_CHECK_BYTES, "big")


def _number(number: int) -> bytes:
    packed = bytearray()
    while number > 0x7F:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)
    return bytes(packed)


def _read_number(data: bytes, place: int) -> tuple[int, int]:
    """Return the number at `place` and the place behind it."""
    number = shift = 0
    while data[place] & 0x80:
        number |= (data[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    number |= data[place] << shift
    if number > _HIGHEST:
        raise OverflowError
    return number, place + 1


def _seconds(when: datetime | None) -> int:
    return 0 if when is None else (when - _EPOCH) // _SECOND + 1


def _instant(seconds: int) -> datetime | None:
    return _EPOCH + (seconds - 1) * _SECOND if seconds else None
