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
from functions.content.protocols import NEWEST, OUTBACK, PYWB, Dialect
from functions.content.terms import (
    MATCHES,
    Collapse,
    Filter,
    NoScope,
    NoSelfRedirect,
    ResumeKey,
    Scope,
)
from functions.http.http_message import show
from functions.snapshot import surt
from functions.snapshot.errors import SheafError
from functions.snapshot.instant import from_digits

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
    filters: Sequence[Filter | NoSelfRedirect]
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


def _date(rest: str, text: str) -> int:
    """Return the digits of a date, with the missing ones as in `rest`."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 14):
        raise ValueError("1 to 14 digits of a date")
    return int(text + rest[len(text) :])


def _moment(text: str) -> int:
    moment = _date("00000101000000", text)
    try:
        from_digits(f"{moment:014}")
    except ValueError as error:
        raise ValueError("a date of 4 to 14 digits") from error
    return moment


def _limit(text: str) -> int:
    try:
        _count(1, text.removeprefix("-"))
    except ValueError as error:
        raise ValueError(f"{error}, or the negative of one for the last lines") from error
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
    "from": partial(_date, "0" * 14),
    "to": partial(_date, "9" * 14),
    "filter": str,
    "limit": _limit,
    "fl": _fields,
    "output": str,
    "sort": _one_of("default", "reverse", "closest"),
    "closest": _moment,
    "collapse": terms.parse_collapse,
    "showResumeKey": _flag,
    "resumeKey": str,
    "page": partial(_count, 0),
    "pageSize": partial(_count, 1),
    "showNumPages": _flag,
    "resolveRevisits": _flag,
    "reverse": _flag,
    "omitSelfRedirects": _flag,
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

_LOOSE: Mapping[str, str] = {**ALIASES, "collapseToFirst": "collapse"}
"""OutbackCDX's other names of some parameters."""

_REPEATED = frozenset({"filter", "collapse"})


def parse_query(
    pairs: Iterable[tuple[str, str]], namespace: str, stores: Sequence[str], dialect: Dialect = PYWB
) -> Query:
    """Parse a query from names and values. Raises BadQuery.

    Resume keys must be of that namespace, and of a store with one of these ids.
    """
    arguments: dict[str, Any] = {}
    for name, text in _loose_wishes(pairs) if dialect.is_loose else _wishes(pairs):
        if name in arguments and name not in _REPEATED:
            raise BadQuery(f"{name} is given more than once.")
        parse = PARAMETERS[name]
        if name == "filter":
            parse = partial(terms.parse_filter, whole=dialect.is_whole)
            parse = terms.parse_loose_filter if dialect.is_loose else parse
        elif name == "output":
            parse = _one_of(*dialect.outputs)
        try:
            value = parse(text)
        except ValueError as error:
            raise BadQuery(f"{name} is {show(text)}, expected {error}.") from error
        if name in _REPEATED:
            arguments.setdefault(name, []).append(value)
        else:
            arguments[name] = value
    query = _query(arguments, dialect)
    return replace(
        query, resume=_resume(arguments.get("resumeKey"), query.scope, namespace, stores)
    )


def _wishes(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs that affect an answer, by the names in PARAMETERS. Raises BadQuery."""
    wishes = []
    for written, text in pairs:
        name = ALIASES.get(written, written)
        if name in UNSUPPORTED and _FLAGS.get(text.lower()) is not False:
            raise BadQuery(f"{name} {UNSUPPORTED[name]}.")
        if name not in PARAMETERS and name not in IGNORED and name not in UNSUPPORTED:
            names = ", ".join(PARAMETERS)
            raise BadQuery(f"{show(name)} is not a parameter here; the parameters are {names}.")
        if name in PARAMETERS:
            wishes.append((name, text))
    if ("closest", "") in wishes:
        # pywb sends an empty `closest` if it has no date.
        wishes = [pair for pair in wishes if pair not in (("closest", ""), ("sort", "closest"))]
    return wishes


def _loose_wishes(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs that OutbackCDX reads, and those that continue a list.

    It passes over the others. A method and a body are arguments of the URL.
    """
    wishes, arguments = [], dict(pairs)
    method = arguments.get("method", "").upper() or "GET"
    for written, text in pairs:
        name = _LOOSE.get(written, written)
        if name == "url" and method != "GET":
            raw = text.encode("utf-8", "surrogateescape")
            named = surt.request_url(raw, method, arguments.get("requestBody"))
            text = named.decode("utf-8", "surrogateescape")
        elif name in ("matchType", "sort"):
            text = text.lower()
        elif name in ("from", "to", "closest"):
            text = text[:14]
        is_default = (name, text) == ("matchType", "default")
        is_unknown = name not in PARAMETERS or (name == "output" and text not in OUTBACK.outputs)
        if not (is_default or is_unknown):
            wishes.append((name, text))
    return _wishes(wishes)


def _query(arguments: Mapping[str, Any], dialect: Dialect) -> Query:
    if "url" not in arguments:
        raise BadQuery("url is missing: the URL of the captures.")
    try:
        scope = terms.parse_scope(arguments["url"], arguments.get("matchType", ""))
    except NoScope as error:
        raise BadQuery(f"{error}.") from error
    limit, closest = arguments.get("limit"), arguments.get("closest")
    sort = arguments.get("sort", "default" if closest is None else "closest")
    if arguments.get("reverse"):
        sort = "reverse"
    is_last = limit is not None and limit < 0
    output = dialect.outputs[arguments["output"]] if "output" in arguments else dialect.output
    _check({**arguments, "sort": sort, "output": output}, scope, is_last=is_last)
    return Query(
        scope=scope,
        since=max(arguments.get("from", 0), dialect.since),
        until=arguments.get("to", NEWEST),
        filters=(
            *arguments.get("filter", ()),
            *([NoSelfRedirect()] if arguments.get("omitSelfRedirects") else []),
        ),
        limit=None if limit is None else abs(limit),
        is_last=is_last,
        fields=arguments.get("fl"),
        output=output,
        is_reverse=is_last or sort == "reverse",
        closest=closest,
        collapses=tuple(arguments.get("collapse", ())),
        resume=None,
        shows_key=arguments.get("showResumeKey", False),
        page=arguments.get("page"),
        page_size=arguments.get("pageSize", 1),
        counts_pages=arguments.get("showNumPages", False),
        resolves=arguments.get("resolveRevisits", False),
    )


def _check(arguments: Mapping[str, Any], scope: Scope, *, is_last: bool) -> None:
    """Raise BadQuery for parameters that exclude each other."""
    sort, output = arguments["sort"], arguments["output"]
    is_closest = sort == "closest"
    problems = {
        "sort=closest needs closest, a date, and closest no other sort": (
            is_closest != ("closest" in arguments)
        ),
        "sort=closest is for the captures of one URL": is_closest and scope.match != "exact",
        "sort=closest has no resumeKey": is_closest and "resumeKey" in arguments,
        "a negative limit cannot be combined with sort or collapse": (
            is_last and (sort != "default" or "collapse" in arguments)
        ),
        f"collapse is given more than {terms.MARKS} times": (
            len(arguments.get("collapse", ())) > terms.MARKS
        ),
        "page has no resumeKey, no reverse order and no negative limit": (
            "page" in arguments and ("resumeKey" in arguments or is_last or sort == "reverse")
        ),
        "fl is not for output=cdx, which has fields of its own": (
            "fl" in arguments and FORMS[output].is_fixed
        ),
    }
    for problem, is_so in problems.items():
        if is_so:
            raise BadQuery(f"{problem}.")


def _resume(
    text: str | None, scope: Scope, namespace: str, stores: Sequence[str]
) -> ResumeKey | None:
    """Parse a resume key, which must lie within the query's ranges. Raises BadQuery."""
    if text is None:
        return None
    keys = (ResumeKey.from_text(text, namespace, store) for store in stores)
    key = next((key for key in keys if key is not None), None)
    cut = terms.cut_surt
    if key is None or not any(
        cut(first) <= key.place.surt <= cut(last) for first, last in scope.ranges
    ):
        raise BadQuery("resumeKey is not a key that this server issued for this url.")
    return key
