"""Parses the arguments of a content request: item, file, time and form.

The identifier is in the path or in the argument `id`. A gateway may decode the path, so it is then
unknown which characters the identifier had escaped.
"""

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote

from functions.http.message import Call, FormError
from functions.oai.errors import show
from functions.snapshot.errors import SheafError

PATH = "/content"
_NAMES = ("id", "file", "at", "coded")
_LONGEST = 8192
_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?Z)?)?)?"
)
_STAMP = re.compile(
    r"([0-9]{4})(?:([0-9]{2})(?:([0-9]{2})(?:([0-9]{2})(?:([0-9]{2})([0-9]{2})?)?)?)?)?"
)


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


def read(call: Call) -> ContentRequest:
    """Return the request in a call to PATH. Raises ArgumentError."""
    try:
        pairs = call.pairs()
    except FormError as error:
        raise ArgumentError(str(error)) from error
    given: dict[str, str] = {}
    for name, value in pairs:
        if name not in _NAMES:
            raise ArgumentError(
                f"{show(name)} is not an argument here; the arguments are {', '.join(_NAMES)}."
            )
        if name in given:
            raise ArgumentError(f"{name} is given more than once.")
        given[name] = value
    path = call.path.removeprefix(PATH).removeprefix("/")
    if bool(path) == ("id" in given):
        raise ArgumentError(f"Ask for {PATH}/IDENTIFIER or {PATH}?id=IDENTIFIER.")
    identifiers = [given["id"]] if "id" in given else [*dict.fromkeys((path, unquote(path)))]
    if not identifiers[0] or max(len(given.get("id", path)), len(given.get("file", ""))) > _LONGEST:
        raise ArgumentError(f"An identifier and a file have from 1 to {_LONGEST} characters.")
    coded = given.get("coded", "0")
    if coded not in ("0", "1"):
        raise ArgumentError(f"coded is {show(coded)}, expected 0 or 1.")
    return ContentRequest(
        identifiers, given.get("file", ""), _instant(given.get("at", "")), coded == "1"
    )


def _instant(text: str) -> datetime | None:
    """Return the last second of a date: W3CDTF in UTC, or up to 14 digits. Raises ArgumentError."""
    if not text:
        return None
    match = _DATE.fullmatch(text) or _STAMP.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        given = [int(part) if part else None for part in match.groups()]
        year, month = given[0] or 0, 12 if given[1] is None else given[1]
        day = calendar.monthrange(year, month)[1] if given[2] is None else given[2]
        hour, minute, second = (
            most if part is None else part
            for part, most in zip(given[3:], (23, 59, 59), strict=True)
        )
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise ArgumentError(
            f"at is {show(text)}, expected a date as 2026-11-22T10:00:00Z or 20261122100000."
        ) from None
