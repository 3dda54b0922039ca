"""The query of a search for captures: its parameters as a table, and what they come to.

They are those that pywb's server and the Internet Archive's have, as far as these have the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.content import resume, scope, sieve
from functions.content.line import FORMS
from functions.content.resume import Key
from functions.content.scope import MATCHES, NoScope, Scope
from functions.content.seam import NEWEST
from functions.content.sieve import Collapse, Filter, NoSieve
from functions.oai.errors import shown
from functions.snapshot.errors import SheafError

_LEAST, _MOST = "0" * 14, "9" * 14
_FIRST = "00000101000000"
_STAMP = "%Y%m%d%H%M%S"
_SORTS = ("default", "reverse", "closest")
_MANY = 1_000_000_000


class BadQuery(SheafError):
    """The parameters are no query; the text is one line that says why."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of an index of captures.

    `limit` is how many lines, None for as many as there are; with `is_last` the last ones of what
    lies before `resume`. `closest` is the date that lines are ordered by their distance from, in 14
    digits. `fields` are names as they were given, None for those that a form has by itself.
    """

    scope: Scope
    since: int
    until: int
    filters: Sequence[Filter]
    limit: int | None
    is_last: bool
    fields: Sequence[str] | None
    output: str
    is_reverse: bool
    closest: int | None
    collapse: Collapse | None
    resume: Key | None
    shows_key: bool


def _digits(text: str) -> str:
    if not (text.isascii() and text.isdecimal() and len(text) <= 14):
        raise ValueError("1 to 14 digits of a date")
    return text


def _since(text: str) -> int:
    return int(_digits(text) + _LEAST[len(text) :])


def _until(text: str) -> int:
    return int(_digits(text) + _MOST[len(text) :])


def _moment(text: str) -> int:
    whole = _digits(text) + _FIRST[len(text) :]
    try:
        datetime.strptime(whole, _STAMP)
    except ValueError as error:
        raise ValueError("a date of 4 to 14 digits") from error
    return int(whole)


def _limit(text: str) -> int:
    number = text.removeprefix("-")
    is_number = number.isascii() and number.isdecimal() and len(number) <= len(str(_MANY))
    if not (is_number and 0 < int(number) <= _MANY):
        raise ValueError(f"a number from 1 to {_MANY}, or the negative of one for the last lines")
    return int(text)


def _fields(text: str) -> Sequence[str]:
    names = text.split(",")
    if not all(map(sieve.is_field, names)) or len(set(names)) < len(names):
        raise ValueError("names of fields with commas between them, each once")
    return tuple(names)


def _one_of(*names: str) -> Callable[[str], str]:
    def choose(text: str) -> str:
        if text not in names:
            raise ValueError(f"one of {', '.join(names)}")
        return text

    return choose


def _flag(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


PARAMETERS: Mapping[str, Callable[[str], Any]] = {
    "url": str,
    "matchType": _one_of(*MATCHES),
    "from": _since,
    "to": _until,
    "filter": sieve.parse,
    "limit": _limit,
    "fl": _fields,
    "output": _one_of(*FORMS),
    "sort": _one_of(*_SORTS),
    "closest": _moment,
    "collapse": sieve.collapse,
    "showResumeKey": _flag,
    "resumeKey": str,
}
"""What each parameter's text is read by; ValueError, with what was expected, for what is none."""

_REPEATED = frozenset({"filter"})


def read(pairs: Iterable[tuple[str, str]], namespace: str) -> Query:
    """Return the query of names and values; keys are of that namespace. Raises BadQuery."""
    given: dict[str, Any] = {}
    filters: list[Filter] = []
    for name, text in pairs:
        if name not in PARAMETERS:
            known = ", ".join(PARAMETERS)
            raise BadQuery(f"{shown(name)} is no parameter here; those are {known}.")
        if name in given:
            raise BadQuery(f"{name} is given more than once.")
        try:
            value = PARAMETERS[name](text)
        except (ValueError, NoSieve) as error:
            raise BadQuery(f"{name} is {shown(text)}, {_expected(error)}.") from error
        if name in _REPEATED:
            filters.append(value)
        else:
            given[name] = value
    return _query(given, filters, namespace)


def _expected(error: Exception) -> str:
    return str(error) if isinstance(error, NoSieve) else f"expected {error}"


def _query(given: Mapping[str, Any], filters: Sequence[Filter], namespace: str) -> Query:
    if "url" not in given:
        raise BadQuery("url is missing: the URL whose captures are asked for.")
    try:
        found = scope.parse(given["url"], given.get("matchType", ""))
    except NoScope as error:
        raise BadQuery(f"{error}.") from error
    limit, closest = given.get("limit"), given.get("closest")
    sort = given.get("sort", "default" if closest is None else "closest")
    output, is_last = given.get("output", "cdxj"), limit is not None and limit < 0
    problems = {
        "sort=closest needs closest, a date, and closest no other sort": (
            (sort == "closest") != (closest is not None)
        ),
        "sort=closest is for the captures of one URL": (
            sort == "closest" and found.match != "exact"
        ),
        "sort=closest has no resumeKey": sort == "closest" and "resumeKey" in given,
        "a negative limit has no other sort, and no collapse": (
            is_last and (sort != "default" or "collapse" in given)
        ),
        f"fl is not for output={output}, which has fields of its own": (
            "fl" in given and FORMS[output].is_fixed
        ),
    }
    for problem, is_so in problems.items():
        if is_so:
            raise BadQuery(f"{problem}.")
    return Query(
        scope=found,
        since=given.get("from", 0),
        until=given.get("to", NEWEST),
        filters=tuple(filters),
        limit=None if limit is None else abs(limit),
        is_last=is_last,
        fields=given.get("fl"),
        output=output,
        is_reverse=is_last or sort == "reverse",
        closest=closest,
        collapse=given.get("collapse"),
        resume=_resume(given.get("resumeKey"), found, namespace),
        shows_key=given.get("showResumeKey", False),
    )


def _resume(text: str | None, found: Scope, namespace: str) -> Key | None:
    """Return the key that a text is, which lies within what is asked for. Raises BadQuery."""
    if text is None:
        return None
    key = Key.from_text(text, namespace)
    cut = resume.cut
    if key is None or not any(
        cut(first) <= key.place.surt <= cut(last) for first, last in found.ranges
    ):
        raise BadQuery("resumeKey is none that was given out for this url.")
    return key
