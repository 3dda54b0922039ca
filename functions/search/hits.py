"""Hits: which records match a query, and what of them is shown."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from functions.kinds import find_kind
from functions.reading.record_rows import DOCUMENT
from functions.search import words
from functions.search.query import WordQuery
from functions.snapshot import oai_name

_YEAR = re.compile(r"\d{4}")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A URL with matching captures side by side, or another item.

    `captures` is the number of the matching captures that were read, 1 for another item. The other
    values are those of the newest of them: `date` is W3CDTF or a year, None if it is unknown. `url`
    is None for an item without an address, `title` empty for a capture without one.
    """

    position: int
    identifier: str
    kind: str
    title: str
    url: str | None
    date: str | None
    sets: tuple[str, ...]
    captures: int


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Hits of a search. `after` is where the next search continues, None if there is no more.

    `total` is the number of all hits if this page has them all, else None.
    """

    hits: tuple[SearchHit, ...]
    after: int | None
    total: int | None


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A matching record, and what the captures of one URL have in common."""

    hit: SearchHit
    url: str


class HitCollector:
    """Collects the hits of one search, which may read `groups_left` row groups of records."""

    def __init__(self, limit: int, groups: int) -> None:
        self._limit = limit
        self._groups: list[list[FoundRecord]] = []
        self.groups_left = groups

    def add(self, record: FoundRecord) -> bool:
        """Add a matching record; return False, and leave it, if the page is full."""
        last = self._groups[-1][-1] if self._groups else None
        if last and record.url and last.url == record.url:
            self._groups[-1].append(record)
        elif self.is_full:
            return False
        else:
            self._groups.append([record])
        return True

    @property
    def is_full(self) -> bool:
        """True if another URL or item has no room."""
        return len(self._groups) >= self._limit

    def hits(self) -> Iterator[SearchHit]:
        """Yield the hits, one for each group."""
        for group in self._groups:
            hits = (record.hit for record in group)
            newest = max(hits, key=lambda hit: (hit.date or "", hit.position))
            yield replace(newest, captures=len(group))


def examine(
    query: WordQuery, record: Mapping[str, Any], documents: Mapping[str, str]
) -> FoundRecord | None:
    """Return the record as found if it matches the query."""
    name, sets = record["kind"], tuple(record["sets"] or ())
    if record["deleted"] or query.kind not in (None, name):
        return None
    if query.set and not any(oai_name.is_within_set(spec, query.set) for spec in sets):
        return None
    position, identifier, kind = record["position"], record["identifier"], find_kind(name)
    if kind.is_capture:
        title, url, date = record["title"] or "", record["url"], record["fetch_date"]
        pieces = [words.pieces(title), words.url_pieces(record["url_host_name"], url or "")]
        key = record["url_surtkey"] or url or ""
    else:
        fields = kind.find(record.get(DOCUMENT) or documents.get(identifier))
        texts = kind.list_texts(fields, identifier)
        title, url, key = texts[0], kind.url(fields), ""
        date = (kind.search_date or kind.date)(fields)
        url = url if isinstance(url, str) else None
        date = date if isinstance(date, str) and _YEAR.match(date) else None
        pieces = [words.pieces(text) for text in texts]
    if not query.holds(date) or not query.matches([*map(words.units, pieces)]):
        return None
    return FoundRecord(SearchHit(position, identifier, name, title, url, date, sets, 1), key)
