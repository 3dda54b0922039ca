"""The page of a search: words, filters, and the items that were found."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functions.kinds import CAPTURES
from functions.reading.repository import PublishedRecord
from functions.search.hits import SearchHit
from functions.search.place import parse_place
from functions.search.query import SearchQueryError, WordQuery, mark, parse
from functions.search.search import NoWordsError
from functions.site.page import PageError, PageRequest, SitePage
from functions.snapshot.manifest import Manifest

_MANY = 20
"""Hits on a page."""
_SHOWN = 300
"""Characters of a title or a URL."""
_VALUES = 8
"""Values of a filter that have links."""
_WORD = re.compile(r'(?<!\S)([^\W\d_]{3,})(?!\S)(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""A word of a query that is no part of a phrase; one behind - stays."""
_FILTERS = ("set", "kind", "media", "since", "until")
_FACETS: Mapping[str, tuple[str, ...]] = {
    "kind": ("kind",),
    "media": ("media",),
    "year": ("since", "until"),
}
"""What hits are counted by, and the filters that choose one of its values."""


@dataclass(frozen=True, slots=True)
class HitLine:
    """A hit: the pieces of its title and URL, each with whether the query matches it."""

    identifier: str
    kind: str
    title: list[tuple[str, bool]]
    url: list[tuple[str, bool]]
    date: str
    captures: int
    copy: str | None
    all: str | None


@dataclass(frozen=True, slots=True)
class FacetLink:
    """A value of a filter: how many hits have it, and the search with only these.

    For a value that was chosen it is the search without the filter.
    """

    name: str
    value: str
    count: int
    is_chosen: bool
    address: str


def show(request: PageRequest) -> SitePage:
    """Return the page for q, set, kind, media, since, until and after. Raises PageError.

    If q names one thing, this is a redirect to its page.
    """
    arguments = request.arguments
    typed = {name: arguments.get(name, "").strip() for name in _FILTERS}
    text = arguments.get("q", "").strip()
    values: dict[str, Any] = {
        "q": text,
        "given": typed,
        "options": [kind for kind, n in sorted(request.manifest.kinds().items()) if n],
        "problem": "",
        "rows": None,
        "more": None,
        "result": None,
        "facets": [],
        "is_wider": False,
    }
    title = request.text("search.title")
    if not text:
        return SitePage("search.html", title, values)
    from functions.site import shortcut  # a cold start to other pages has no time for its forms

    filters = {name: value or None for name, value in typed.items()}
    try:
        if (address := shortcut.find_page(request, text)) is not None:
            return SitePage("search.html", title, values, 302, headers={"Location": address})
        query = parse(text, **filters)
        words = request.parts.words
        if words is None:
            raise PageError(request.text("search.none"), 404)
        after = parse_place(arguments["after"]) if arguments.get("after") else None
        page = words(request.manifest, query, after, _MANY)
        if not page.total and page.is_whole and (wider := _WORD.sub(r"\1*", text)) != text:
            # What begins so is better than nothing: many languages inflect.
            query = parse(wider, **filters)
            page = words(request.manifest, query, after, _MANY)
            text, values["is_wider"] = wider, page.total != 0
    except SearchQueryError as error:
        problem = request.text(f"query.{error.code}", **error.values)
        return SitePage("search.html", title, {**values, "problem": problem})
    except NoWordsError as error:
        raise PageError(request.text("search.none"), 404) from error
    following = page.after.to_text() if page.after else None
    more = request.address.page("/search", q=text, **filters, after=following)
    values |= {
        "rows": [_describe(request, hit, query) for hit in page.hits],
        "more": more if following else None,
        "result": page,
        "facets": _link_facets(request, text, filters, page.facets),
    }
    return SitePage("search.html", f"{text[:80]} – {title}", values)


def has_words(manifest: Manifest) -> bool:
    """Return whether a snapshot can be searched."""
    return bool(manifest.tables.get("words"))


def _link_facets(
    request: PageRequest,
    text: str,
    filters: Mapping[str, str | None],
    facets: Mapping[str, Mapping[str, int]],
) -> Sequence[Sequence[FacetLink]]:
    """Return the links of each facet of which the hits have several values, or one was chosen."""
    rows = []
    for name, arguments in _FACETS.items():
        links = []
        for value, count in list(facets[name].items())[:_VALUES]:
            is_chosen = all(filters[argument] == value for argument in arguments)
            chosen = dict.fromkeys(arguments, None if is_chosen else value)
            address = request.address.page("/search", q=text, **{**filters, **chosen})
            links.append(FacetLink(name, value, count, is_chosen, address))
        if len(links) > 1 or any(link.is_chosen for link in links):
            rows.append(links)
    return rows


def _describe(request: PageRequest, hit: SearchHit, query: WordQuery) -> HitLine:
    title, url = hit.title or hit.url or hit.identifier, hit.url or ""
    fields = {"url": hit.url, "fetch_date": hit.date}
    record = PublishedRecord(
        hit.position, hit.identifier, hit.kind, request.manifest.effective, False, hit.sets, fields
    )
    is_capture = hit.kind in CAPTURES
    return HitLine(
        hit.identifier,
        hit.kind,
        mark(title[:_SHOWN], query),
        mark(url[:_SHOWN], query),
        (hit.date or "")[:10],
        hit.captures,
        request.find_view(record) if is_capture else None,
        request.address.page("/captures", url=hit.url, match="exact")
        if is_capture and request.parts.calendar is not None
        else None,
    )
