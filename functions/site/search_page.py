"""The page of a search: words, filters, and the items that were found."""

from dataclasses import dataclass
from typing import Any

from functions.kinds import CAPTURES
from functions.reading.repository import PublishedRecord
from functions.search.hits import SearchHit
from functions.search.query import SearchQueryError, WordQuery, mark, parse
from functions.search.search import NoWordsError
from functions.site.page import PageError, PageRequest, SitePage
from functions.snapshot.manifest import Manifest

_MANY = 20
"""Hits on a page."""
_SHOWN = 300
"""Characters of a title or a URL."""


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


def show(request: PageRequest) -> SitePage:
    """Return the page for the arguments q, set, kind, since, until and after. Raises PageError."""
    arguments = request.arguments
    typed = {name: arguments.get(name, "").strip() for name in ("set", "kind", "since", "until")}
    text = arguments.get("q", "").strip()
    values: dict[str, Any] = {
        "q": text,
        "given": typed,
        "options": [kind for kind, n in sorted(request.manifest.kinds().items()) if n],
        "problem": "",
        "rows": None,
        "more": None,
        "total": None,
    }
    title = request.text("search.title")
    if not text:
        return SitePage("search.html", title, values)
    try:
        query = parse(text, typed["set"], typed["kind"], typed["since"], typed["until"])
        words = request.parts.words
        if words is None:
            raise PageError(request.text("search.none"), 404)
        after = request.number("after") if request.arguments.get("after") else None
        page = words(request.manifest, query, after, _MANY)
    except SearchQueryError as error:
        problem = request.text(f"query.{error.code}", **error.values)
        return SitePage("search.html", title, {**values, "problem": problem})
    except NoWordsError as error:
        raise PageError(request.text("search.none"), 404) from error
    filters = {name: value or None for name, value in typed.items()}
    more = request.address.page("/search", q=text, **filters, after=page.after)
    values |= {
        "rows": [_describe(request, hit, query) for hit in page.hits],
        "more": more if page.after is not None else None,
        "total": page.total,
    }
    return SitePage("search.html", f"{text[:80]} – {title}", values)


def has_words(manifest: Manifest) -> bool:
    """Return whether a snapshot can be searched."""
    return bool(manifest.tables.get("words"))


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
