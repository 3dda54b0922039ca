"""Representations: which one a request asks for, its headers, and its body in pieces.

RFC 9110, sections 8 (metadata) and 13 (conditions). A request names an item, a file, a time and a
form. The identifier is in the path or in the argument `id`. A gateway may decode the path, so it
is then unknown which characters the identifier had escaped.

A body is read in pieces of bounded size.
"""

import calendar
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO
from urllib.parse import unquote

from functions.content import header_fields
from functions.content.protocols import Content, ContentError
from functions.http import http_message
from functions.http.http_message import Call, FormError, show
from functions.snapshot.errors import SheafError

_TAG = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')

_UNFIT = re.compile(r"[^\x21\x23-\x7e]")
PATH = "/content"
_NAMES = ("id", "file", "at", "coded")
_LONGEST = 8192
_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?Z)?)?)?"
)
_STAMP = re.compile(
    r"([0-9]{4})(?:([0-9]{2})(?:([0-9]{2})(?:([0-9]{2})(?:([0-9]{2})([0-9]{2})?)?)?)?)?"
)
PIECE = 1 << 16
"""Bytes of one read."""


@dataclass(frozen=True, slots=True)
class Representation:
    """A content with its codings undone, or as it is stored (`coded`).

    `fixed` is true if it never changes, except by withdrawal.
    """

    content: Content
    coded: bool
    fixed: bool

    @property
    def tag(self) -> str:
        """Its ETag, from the digest of the stored bytes; "" without a digest.

        It is strong, so that clients can combine parts.
        """
        if not self.content.digest:
            return ""
        form = "" if self.is_stored else "-plain"
        return f'"{_UNFIT.sub("", header_fields.plain_value(self.content.digest + form))}"'

    @property
    def is_stored(self) -> bool:
        """True if its bytes are the payload as stored, which has the digest."""
        return self.coded or not self.content.facts.get("coded")

    @property
    def size(self) -> int | None:
        """Number of bytes, if known."""
        content = self.content
        if not self.coded or self.is_plain:
            return content.size
        payload = content.original or content.capture
        return None if payload is None else payload.length

    @property
    def is_plain(self) -> bool:
        """True if the stored bytes are exactly those to be sent."""
        return self.content.stretch is not None

    @property
    def file_name(self) -> str:
        """The name under which a client saves it."""
        if self.content.name:
            return header_fields.clean_name(self.content.name)
        return header_fields.file_name(self.content.url)

    def headers(self, base: str, seconds: int) -> dict[str, str]:
        """Return the headers of every answer with it, whole or in part.

        `base` is the base URL of the paths here; `seconds` is the cache time of a fixed one.
        """
        content = self.content
        media_type = header_fields.media_type(content.media_type)
        headers = {
            **header_fields.rename_headers(content.headers),
            "Content-Type": media_type,
            "Content-Disposition": header_fields.disposition(media_type, self.file_name),
            "Accept-Ranges": "bytes",
            "Cache-Control": http_message.withdrawable_control(seconds if self.fixed else 0),
            **header_fields.memento_headers(base, content.url, content.date),
        }
        if content.status is not None:
            headers[header_fields.STATUS] = str(content.status)
        if content.digest:
            headers["ETag"] = self.tag
            headers[header_fields.DIGEST] = header_fields.plain_value(content.digest)
            if self.is_stored:
                headers.update(header_fields.repr_digest(content.digest))
        for name, value in content.facts.items():
            headers[f"X-Archive-{name.capitalize()}"] = header_fields.plain_value(value)
        return headers

    def matches(self, headers: Mapping[str, str]) -> bool:
        """Return whether If-Match allows the call; the comparison is strong (section 13.1.1)."""
        wanted = headers.get("if-match")
        if wanted is None or wanted.strip() == "*":
            return True
        return self.tag != "" and ("", self.tag) in _TAG.findall(wanted)

    def continues(self, headers: Mapping[str, str]) -> bool:
        """Return whether Range applies; with If-Range, only for exactly the same bytes."""
        wanted = headers.get("if-range")
        return wanted is None or (self.tag != "" and wanted.strip() == self.tag)


class ArgumentError(SheafError):
    """The arguments are invalid; the text is a one-line reason."""


@dataclass(frozen=True, slots=True)
class ContentRequest:
    """A request for content; `identifiers` are possible identifiers of the item, likeliest first.

    `at` is the last instant of the given date.
    """

    identifiers: Sequence[str]
    file: str = ""
    at: datetime | None = None
    coded: bool = False


def read_request(call: Call) -> ContentRequest:
    """Return the request in a call to PATH. Raises ArgumentError."""
    try:
        pairs = call.pairs
    except FormError as error:
        raise ArgumentError(str(error)) from error
    arguments: dict[str, str] = {}
    for name, value in pairs:
        if name not in _NAMES:
            raise ArgumentError(
                f"{show(name)} is not an argument here; the arguments are {', '.join(_NAMES)}."
            )
        if name in arguments:
            raise ArgumentError(f"{name} is given more than once.")
        arguments[name] = value
    path = call.path.removeprefix(PATH).removeprefix("/")
    if bool(path) == ("id" in arguments):
        raise ArgumentError(f"Ask for {PATH}/IDENTIFIER or {PATH}?id=IDENTIFIER.")
    identifiers = (
        [arguments["id"]] if "id" in arguments else [*dict.fromkeys((path, unquote(path)))]
    )
    if (
        not identifiers[0]
        or max(len(arguments.get("id", path)), len(arguments.get("file", ""))) > _LONGEST
    ):
        raise ArgumentError(f"An identifier and a file have from 1 to {_LONGEST} characters.")
    coded = arguments.get("coded", "0")
    if coded not in ("0", "1"):
        raise ArgumentError(f"coded is {show(coded)}, expected 0 or 1.")
    return ContentRequest(
        identifiers, arguments.get("file", ""), _instant(arguments.get("at", "")), coded == "1"
    )


def _instant(text: str) -> datetime | None:
    """Return the last second of a date: W3CDTF in UTC, or up to 14 digits. Raises ArgumentError."""
    if not text:
        return None
    match = _DATE.fullmatch(text) or _STAMP.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        parts = [int(part) if part else None for part in match.groups()]
        year, month = parts[0] or 0, 12 if parts[1] is None else parts[1]
        day = calendar.monthrange(year, month)[1] if parts[2] is None else parts[2]
        hour, minute, second = (
            most if part is None else part
            for part, most in zip(parts[3:], (23, 59, 59), strict=True)
        )
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise ArgumentError(
            f"at is {show(text)}, expected a date as 2026-11-22T10:00:00Z or 20261122100000."
        ) from None


def skip_bytes(source: BinaryIO, count: int) -> None:
    """Skip `count` bytes, or all up to the end."""
    while count > 0:
        count -= len(data := source.read(min(count, PIECE)))
        if not data:
            return


def count_rest(source: BinaryIO, most: int) -> int | None:
    """Return the number of remaining bytes, by reading them; None if there are more than `most`.

    The limit is needed because a few bytes can inflate to any number of bytes.
    """
    count = 0
    while data := source.read(PIECE):
        count += len(data)
        if count > most:
            return None
    return count


def body_pieces(source: BinaryIO, length: int | None, whole: int | None = None) -> Iterator[bytes]:
    """Yield the next `length` bytes (None: to the end), one piece behind the reads.

    An error is therefore raised before the last piece is sent. A client that got the announced
    number of bytes knows that they are correct. If `whole` is given and there are more bytes than
    that, ContentError is raised before the extra bytes are sent.
    """
    last, count = b"", 0
    while length is None or length > 0:
        data = source.read(PIECE if length is None else min(length, PIECE))
        if not data:
            break
        count += len(data)
        if whole is not None and count > whole:
            raise ContentError("damaged", f"there are more than the {whole} declared bytes")
        if length is not None:
            length -= len(data)
        if last:
            yield last
        last = data
    if last:
        yield last


class Body:
    """The body of an answer: the pieces in `ready`, then `further` pieces as they are read.

    At the end `source` is closed, then `ended` is called once with the number of bytes sent and the
    error, if any. Errors while reading are raised. Several threads may read it in turn, each in the
    context (contextvars) in which it was created.
    """

    def __init__(
        self,
        ready: list[bytes],
        further: Iterator[bytes],
        source: ExitStack,
        ended: Callable[[int, Exception | None], None],
    ) -> None:
        self._ready = ready[::-1]
        self._further = further
        self._source = source
        self._ended: Callable[[int, Exception | None], None] | None = ended
        self._sent = 0
        self._context = copy_context()

    def __iter__(self) -> "Body":
        return self

    def __next__(self) -> bytes:
        if self._ended is None:
            raise StopIteration
        try:
            piece = self._ready.pop() if self._ready else self._context.run(next, self._further)
        except Exception as error:
            self._end(None if isinstance(error, StopIteration) else error)
            raise
        self._sent += len(piece)
        return piece

    def close(self) -> None:
        """Close the source; harmless if it is closed already."""
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        ended, self._ended = self._ended, None
        if ended is None:
            return
        try:
            self._context.run(self._source.close)
        finally:
            ended(self._sent, error)
