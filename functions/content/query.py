"""Parses the query of a search for captures.

The parameters are those of pywb's server and the Internet Archive's. A parameter whose answer would
cost more than a page is refused with the reason, and so is an unknown one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from functions.content import terms
from functions.content.capture_row import FORMS
from functions.content.protocols import NEWEST, PYWB, Dialect
from functions.content.terms import MATCHES, Collapse, Filter, NoScope, NoSieve, ResumeKey, Scope
from functions.oai.request import show
from functions.snapshot.errors import SheafError
from functions.snapshot.instant import from_digits

_LEAST, _MOST = "0" * 14, "9" * 14
_FIRST = "00000101000000"
_SORTS = ("default", "reverse", "closest")
_MANY = 1_000_000_000


class BadQuery(SheafError):
    """The query is invalid; the text is a one-line reason."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query to the index of captures.

    `limit` is the number of lines, None for all. With `is_last`, these are the last lines before
    `resume`. `closest` is a date in 14 digits; lines are sorted by their distance from it. `fields`
    are the names as given, None for the format's defaults. `page` is a page's number, from 0, and
    `page_size` its size in blocks (pages.PageBounds).
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
    collapses: Sequence[Collapse]
    resume: ResumeKey | None
    shows_key: bool
    page: int | None = None
    page_size: int = 1
    counts_pages: bool = False
    resolves: bool = False


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
        from_digits(whole)
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
    if not all(map(terms.is_field, names)) or len(set(names)) < len(names):
        raise ValueError("names of fields with commas between them, each once")
    return tuple(names)


def _one_of(*names: str) -> Callable[[str], str]:
    def choose(text: str) -> str:
        if text not in names:
            raise ValueError(f"one of {', '.join(names)}")
        return text

    return choose


def _flag(text: str) -> bool:
    if (word := text.lower()) not in _FLAGS:
        raise ValueError("true or false")
    return _FLAGS[word]


def _count(least: int, text: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(_MANY))
    if not (is_number and least <= int(text) <= _MANY):
        raise ValueError(f"a number from {least} to {_MANY}")
    return int(text)


_FLAGS = {"true": True, "1": True, "false": False, "0": False}

PARAMETERS: Mapping[str, Callable[[str], Any]] = {
    "url": str,
    "matchType": _one_of(*MATCHES),
    "from": _since,
    "to": _until,
    "filter": str,
    "limit": _limit,
    "fl": _fields,
    "output": str,
    "sort": _one_of(*_SORTS),
    "closest": _moment,
    "collapse": terms.parse_collapse,
    "showResumeKey": _flag,
    "resumeKey": str,
    "page": partial(_count, 0),
    "pageSize": partial(_count, 1),
    "showNumPages": _flag,
    "resolveRevisits": _flag,
    "reverse": _flag,
}
"""Parsers of the parameters; ValueError states what was expected."""

ALIASES: Mapping[str, str] = {"fields": "fl", "from_ts": "from"}
"""pywb's other names of some parameters."""

IGNORED = frozenset({"gzip", "fastLatest", "allowFuzzy"})
"""Flags without effect: clients negotiate gzip, last captures cost no more, searches are exact."""

_BY_KEY = "use showResumeKey and resumeKey instead"
UNSUPPORTED: Mapping[str, str] = {
    "offset": f"would read all skipped lines; {_BY_KEY}",
    "showPagedIndex": f"is not supported by this index; {_BY_KEY}",
    "showDupeCount": "is not supported",
    "showSkipCount": "is not supported",
    "lastSkipTimestamp": "is not supported",
    "collapseTime": "is not supported; use collapse=timestamp:N",
}
"""Refused parameters of the two servers, with the message; `false` and 0 are accepted."""

_REPEATED = frozenset({"filter", "collapse"})


def read(
    pairs: Iterable[tuple[str, str]], namespace: str, stores: Sequence[str], dialect: Dialect = PYWB
) -> Query:
    """Parse a query from names and values. Raises BadQuery.

    Resume keys must be of that namespace, and of a store with one of these ids.
    """
    given: dict[str, Any] = {}
    for name, text in _wishes(pairs):
        if name in given and name not in _REPEATED:
            raise BadQuery(f"{name} is given more than once.")
        try:
            value = _reader(name, dialect)(text)
        except (ValueError, NoSieve) as error:
            wanted = str(error) if isinstance(error, NoSieve) else f"expected {error}"
            raise BadQuery(f"{name} is {show(text)}, {wanted}.") from error
        if name in _REPEATED:
            given.setdefault(name, []).append(value)
        else:
            given[name] = value
    found = _query(given, dialect)
    return replace(found, resume=_resume(given.get("resumeKey"), found.scope, namespace, stores))


def _wishes(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs that affect an answer, by the names in PARAMETERS. Raises BadQuery."""
    found = []
    for given, text in pairs:
        name = ALIASES.get(given, given)
        if name in UNSUPPORTED and _FLAGS.get(text.lower()) is not False:
            raise BadQuery(f"{name} {UNSUPPORTED[name]}.")
        if name not in PARAMETERS and name not in IGNORED and name not in UNSUPPORTED:
            known = ", ".join(PARAMETERS)
            raise BadQuery(f"{show(name)} is not a parameter here; the parameters are {known}.")
        if name in PARAMETERS:
            found.append((name, text))
    if ("closest", "") in found:
        # pywb sends an empty `closest` if it has no date.
        found = [pair for pair in found if pair not in (("closest", ""), ("sort", "closest"))]
    return found


def _reader(name: str, dialect: Dialect) -> Callable[[str], Any]:
    if name == "filter":
        return partial(terms.parse_filter, whole=dialect.is_whole)
    if name == "output":
        return lambda text: dialect.outputs[_one_of(*dialect.outputs)(text)]
    return PARAMETERS[name]


def _query(given: Mapping[str, Any], dialect: Dialect) -> Query:
    if "url" not in given:
        raise BadQuery("url is missing: the URL of the captures.")
    try:
        found = terms.parse_scope(given["url"], given.get("matchType", ""))
    except NoScope as error:
        raise BadQuery(f"{error}.") from error
    limit, closest = given.get("limit"), given.get("closest")
    sort = given.get("sort", "default" if closest is None else "closest")
    if given.get("reverse"):
        sort = "reverse"
    is_last = limit is not None and limit < 0
    output = given.get("output", dialect.output)
    _check({**given, "sort": sort, "output": output}, found, is_last=is_last)
    return Query(
        scope=found,
        since=max(given.get("from", 0), dialect.since),
        until=given.get("to", NEWEST),
        filters=tuple(given.get("filter", ())),
        limit=None if limit is None else abs(limit),
        is_last=is_last,
        fields=given.get("fl"),
        output=output,
        is_reverse=is_last or sort == "reverse",
        closest=closest,
        collapses=tuple(given.get("collapse", ())),
        resume=None,
        shows_key=given.get("showResumeKey", False),
        page=given.get("page"),
        page_size=given.get("pageSize", 1),
        counts_pages=given.get("showNumPages", False),
        resolves=given.get("resolveRevisits", False),
    )


def _check(given: Mapping[str, Any], found: Scope, *, is_last: bool) -> None:
    """Raise BadQuery for parameters that exclude each other."""
    sort, output = given["sort"], given["output"]
    is_closest = sort == "closest"
    problems = {
        "sort=closest needs closest, a date, and closest no other sort": (
            is_closest != ("closest" in given)
        ),
        "sort=closest is for the captures of one URL": is_closest and found.match != "exact",
        "sort=closest has no resumeKey": is_closest and "resumeKey" in given,
        "a negative limit cannot be combined with sort or collapse": (
            is_last and (sort != "default" or "collapse" in given)
        ),
        f"collapse is given more than {terms.MARKS} times": (
            len(given.get("collapse", ())) > terms.MARKS
        ),
        "page has no resumeKey, no reverse order and no negative limit": (
            "page" in given and ("resumeKey" in given or is_last or sort == "reverse")
        ),
        "fl is not for output=cdx, which has fields of its own": (
            "fl" in given and FORMS[output].is_fixed
        ),
    }
    for problem, is_so in problems.items():
        if is_so:
            raise BadQuery(f"{problem}.")


def _resume(
    text: str | None, found: Scope, namespace: str, stores: Sequence[str]
) -> ResumeKey | None:
    """Parse a resume key, which must lie within the query's ranges. Raises BadQuery."""
    if text is None:
        return None
    keys = (ResumeKey.from_text(text, namespace, store) for store in stores)
    key = next((key for key in keys if key is not None), None)
    cut = terms.cut_surt
    if key is None or not any(
        cut(first) <= key.place.surt <= cut(last) for first, last in found.ranges
    ):
        raise BadQuery("resumeKey is not a key that this server issued for this url.")
    return key
