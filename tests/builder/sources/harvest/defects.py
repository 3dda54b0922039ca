"""What is wrong with repositories: each defect by its name, of lists here, of the wire in `wire`.

What troubles the wire does so when a request comes for the first time, and not the second time;
other defects stay.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.builder.sources.harvest import wire
from tests.builder.sources.harvest.element import Item
from tests.builder.sources.harvest.provider import (
    Answer,
    Before,
    Call,
    Fault,
    OfAnswer,
    OfPage,
    Page,
    Provider,
)

_ODD = "&odd=+%2F é&amp;\u2028?#="


@dataclass(frozen=True)
class Defect:
    """A switch: what it does to a repository, and by which of its hooks."""

    says: str
    before: Before | None = None
    page: OfPage | None = None
    answer: OfAnswer | None = None


def defective(some: Mapping[str, Item], *names: str, **more: Any) -> Provider:
    """Return a repository with these defects."""
    provider = Provider(dict(some), frozenset(names), **more)
    for name in names:
        defect = DEFECTS[name]
        provider.before += [defect.before] if defect.before else []
        provider.pages += [defect.page] if defect.page else []
        provider.answers += [defect.answer] if defect.answer else []
    return provider


def _is_last(page: Page) -> bool:
    return not page.token


def _extra(provider: Provider, call: Call, page: Page) -> Page:
    """Give the last page a token that leads to a page with nothing."""
    if not _is_last(page) or not page.items:
        return replace(page, token="") if not page.items else page
    given = provider.arguments(call)
    return replace(page, token=provider.token(given, provider.key(page.items[-1]), page.depth + 1))


def _extra_error(provider: Provider, call: Call, page: Page) -> Page:
    if not page.items:
        raise Fault("noRecordsMatch", "no more of them")
    return _extra(provider, call, page)


def _cycle(provider: Provider, call: Call, page: Page) -> Page:
    """After the last page comes the second one again."""
    if not _is_last(page) or not page.asked:
        return page
    given = provider.arguments(call)
    first = provider.wanted(given)[provider.page_size - 1]
    return replace(page, token=provider.token(given, provider.key(first), 1))


def _fresh_tokens(provider: Provider, call: Call, page: Page) -> Page:
    """The last page comes again and again, by a token that is another one each time."""
    if not _is_last(page) or not page.items:
        return page
    given = provider.arguments(call)
    after = given.get("after", "0")
    return replace(page, token=provider.token(given, after, page.depth + 1))


def _empty_pages(provider: Provider, call: Call, page: Page) -> Page:
    """After the last page come pages with nothing, without an end, each by another token."""
    if not _is_last(page):
        return page
    given = provider.arguments(call)
    return replace(page, token=provider.token(given, "9999", page.depth + 1))


def _single_use(provider: Provider, call: Call) -> None:
    token = call.arguments.get("resumptionToken")
    with provider.lock:
        if token in provider.used:
            raise Fault("badResumptionToken", "that was used before")
        if token is not None:
            provider.used.add(token)


def _numbered(provider: Provider, call: Call, page: Page) -> Page:
    """Give out another token each time."""
    if not page.token:
        return page
    plain = re.sub("&use=[0-9]+", "", page.token)
    return replace(page, token=f"{plain}&use={call.number}")


def _dying(status: int) -> Before:
    def refuse(provider: Provider, call: Call) -> None:
        token = "resumptionToken" in call.arguments
        if token and int(provider.arguments(call)["depth"]) >= provider.token_life:
            raise Fault("badResumptionToken", "it is too old", status)

    return refuse


def _from_earliest(provider: Provider, call: Call) -> None:
    since = provider.instant(call.arguments.get("from", ""), upper=False)
    if since is not None and since < provider.earliest():
        raise Fault("badArgument", "from is before the earliest datestamp")


def _until_future(provider: Provider, call: Call) -> None:
    until = provider.instant(call.arguments.get("until", ""), upper=False)
    if until is not None and until > provider.now:
        raise Fault("badArgument", "until is in the future")


def _no_dates(provider: Provider, call: Call) -> None:
    if call.arguments.keys() & {"from", "until"}:
        raise Fault("badArgument", "dates are not known here", 400)


def _as_status(status: int) -> OfAnswer:
    def change(provider: Provider, call: Call, answer: Answer) -> Answer:
        return replace(answer, status=status) if b"<error " in answer.body else answer

    return change


def _empty_list(provider: Provider, call: Call, answer: Answer) -> Answer:
    """Nothing to list is a list of nothing."""
    if b'"noRecordsMatch"' not in answer.body:
        return answer
    start, end = answer.body.index(b"<error "), answer.body.index(b"</OAI-PMH>")
    verb = call.verb.encode()
    body = answer.body[:start] + b"<%b></%b>" % (verb, verb) + answer.body[end:]
    return replace(answer, body=body)


def _offset(provider: Provider, call: Call, page: Page) -> Page:
    """The page begins where so many before it end, whatever changed meanwhile."""
    wanted = provider.wanted(provider.arguments(call))
    start = page.depth * provider.page_size
    some = tuple(wanted[start : start + provider.page_size])
    token: str | None = None if page.depth == 0 else ""
    if start + len(some) < len(wanted):
        given = provider.arguments(call)
        token = provider.token(given, provider.key(some[-1]), page.depth + 1)
    return replace(page, items=some, token=token, start=start, cursor=start)


def _no_order(provider: Provider, call: Call, page: Page) -> Page:
    """The list is in no order of datestamps: every third item comes first."""
    wanted = list(provider.wanted(provider.arguments(call)))
    mixed = [one for shift in (2, 0, 1) for one in wanted[shift::3]]
    return replace(page, items=tuple(mixed[page.start : page.start + len(page.items)]))


def _twice(provider: Provider, call: Call, page: Page) -> Page:
    """Each page begins with the last item of the page before it."""
    wanted = provider.wanted(provider.arguments(call))
    return replace(page, items=(*wanted[max(0, page.start - 1) : page.start], *page.items))


def _poisoned(provider: Provider, call: Call) -> None:
    """A page with a bad record is an error of the server's; headers alone are not."""
    if call.verb == "GetRecord" and call.arguments.get("identifier") in provider.poison:
        raise Fault("badArgument", "it cannot be shown", 500)
    if call.verb == "ListRecords":
        page = provider.plain_page(call)
        if any(one.identifier in provider.poison for one in page.items):
            raise Fault("badArgument", "one of them cannot be shown", 500)


def _cut_at_poison(provider: Provider, call: Call, answer: Answer) -> Answer:
    """The document ends in the midst of a bad record, each time."""
    if call.verb not in ("ListRecords", "GetRecord"):
        return answer
    for bad in provider.poison:
        start = answer.body.find(f"<identifier>{bad}</identifier>".encode())
        if start >= 0:
            return replace(answer, body=answer.body[: answer.body.index(b"<metadata>", start) + 14])
    return answer


def _token(change: str) -> OfPage:
    def changed(provider: Provider, call: Call, page: Page) -> Page:
        return replace(page, token=change.format(page.token)) if page.token else page

    return changed


def _exact(suffix: str) -> Before:
    """Refuse a token that did not come back as it was given."""

    def refuse(provider: Provider, call: Call) -> None:
        token = call.arguments.get("resumptionToken")
        if token is not None and not token.endswith(suffix):
            raise Fault("badResumptionToken", "it was changed on the way")

    return refuse


def _no_identify(provider: Provider, call: Call) -> None:
    if call.verb == "Identify":
        raise Fault("badVerb", "Identify is not known", 500)


def _windowless(provider: Provider, call: Call, page: Page) -> Page:
    """Lists have all items, whatever dates are asked for."""
    given = {k: v for k, v in provider.arguments(call).items() if k not in ("from", "until")}
    return _listed(provider, given, page, given.get("after"))


def _token_windowless(provider: Provider, call: Call, page: Page) -> Page:
    """The first page keeps to the dates; its token goes on behind as many of all items."""
    given = {k: v for k, v in provider.arguments(call).items() if k not in ("from", "until")}
    if page.asked:
        return _listed(provider, given, page, given.get("after"))
    every = provider.wanted(given)
    last = every[: len(page.items)][-1]
    return replace(page, token=provider.token(given, provider.key(last), 1) if page.token else None)


def _listed(provider: Provider, given: Mapping[str, str], page: Page, after: str | None) -> Page:
    """Return the page of another list that begins behind a key."""
    wanted = provider.wanted(given)
    start = 0 if after is None else sum(provider.key(one) <= after for one in wanted)
    some = tuple(wanted[start : start + provider.page_size])
    token: str | None = "" if page.asked else None
    if start + len(some) < len(wanted):
        token = provider.token(given, provider.key(some[-1]), page.depth + 1)
    return replace(page, items=some, token=token, start=start, cursor=start, size=len(wanted))


DEFECTS: Mapping[str, Defect] = {
    "no-last-token": Defect(
        "the last page has no element resumptionToken",
        page=lambda r, c, page: replace(page, token=None) if _is_last(page) else page,
    ),
    "wrong-cursor": Defect(
        "cursor is the number of the page",
        page=lambda r, c, page: replace(page, cursor=page.start // r.page_size),
    ),
    "no-size": Defect(
        "neither cursor nor completeListSize",
        page=lambda r, c, page: replace(page, cursor=None, size=None),
    ),
    "wrong-size": Defect(
        "completeListSize is too small",
        page=lambda r, c, page: replace(page, size=len(page.items) // 2),
    ),
    "day": Defect("datestamps are days"),
    "extra-empty-page": Defect("after the last page comes one of nothing", page=_extra),
    "extra-page-error": Defect("after the last page comes noRecordsMatch", page=_extra_error),
    "same-token": Defect(
        "the last page has the token that it came by",
        page=lambda r, c, page: (
            replace(page, token=page.asked) if _is_last(page) and page.asked else page
        ),
    ),
    "token-cycle": Defect("after the last page comes the second one", page=_cycle),
    "fresh-tokens": Defect("the last page comes for ever, by new tokens", page=_fresh_tokens),
    "empty-pages": Defect("pages of nothing come for ever, by new tokens", page=_empty_pages),
    "single-use-tokens": Defect("a token is good once", _single_use, _numbered),
    "tokens-die": Defect("a token of depth token_life is dead", before=_dying(200)),
    "tokens-die-401": Defect("such a token is an error of HTTP", before=_dying(401)),
    "tokens-die-404": Defect("such a token is an error of HTTP", before=_dying(404)),
    "tokens-die-422": Defect("such a token is an error of HTTP", before=_dying(422)),
    "tokens-die-500": Defect("such a token is an error of HTTP", before=_dying(500)),
    "from-earliest": Defect("from before the earliest datestamp is refused", before=_from_earliest),
    "until-future": Defect("until in the future is refused", before=_until_future),
    "no-dates": Defect("from and until are refused with HTTP 400", before=_no_dates),
    "ignores-dates": Defect("from and until are ignored", page=_windowless),
    "tokens-lose-dates": Defect("a token forgets from and until", page=_token_windowless),
    "errors-400": Defect("errors of OAI-PMH are HTTP 400", answer=_as_status(400)),
    "errors-404": Defect("errors of OAI-PMH are HTTP 404", answer=_as_status(404)),
    "errors-500": Defect("errors of OAI-PMH are HTTP 500", answer=_as_status(500)),
    "empty-list": Defect("a list of nothing instead of noRecordsMatch", answer=_empty_list),
    "offset-tokens": Defect("tokens count what came before", page=_offset),
    "no-order": Defect("lists are in no order of datestamps", page=_no_order),
    "overlapping-pages": Defect("pages begin with the last item before them", page=_twice),
    "bad-record-500": Defect("pages with one of `poison` are HTTP 500", before=_poisoned),
    "bad-record-cut": Defect("pages end at one of `poison`", answer=_cut_at_poison),
    "padded-token": Defect("white space around tokens", page=_token("\n   {}\n  ")),
    "odd-token": Defect("a token to be escaped", _exact(_ODD), _token("{}" + _ODD)),
    "no-identify": Defect("Identify is HTTP 500", before=_no_identify),
    **{name: Defect(says, answer=answer) for name, (says, answer) in wire.DEFECTS.items()},
}
