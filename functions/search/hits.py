"""Hits: which records match a query, how well, and what of them is shown."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from functions.kinds import find_kind
from functions.reading.record_rows import DOCUMENT
from functions.search import words
from functions.search.query import Term, WordQuery
from functions.snapshot import oai_name

_YEAR = re.compile(r"\d{4}")
_TITLE, _OTHER, _HOST, _URL = 60, 40, 40, 20
"""Points for the place of a term: in the title, another text, the host, or elsewhere in the URL."""
_EXACT, _PAGE, _HOME, _DEPTH, _NAMED, _WHOLE, _SERIES = 10, 20, 15, 2, 15, 20, 10
"""Points for a whole word, for HTML, for a home page, for each level of a path up to _DEEPEST that
is not there, for a site with the name of the query, for the part of the title that the query is, at
most, and for its terms side by side."""
_DEEPEST = 5
_ANSWERED = 500
"""Points for what is no archived error or redirect: more than all others together."""
_RANK = 2 * _ANSWERED
_PLACES = ("url_host_name", "url_host_registered_domain", "url_surtkey", "fetch_status")
"""Columns that weigh a capture besides its title, URL and media type."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A URL with matching captures side by side, or another item.

    `captures` is the number of the matching captures that were read, 1 for another item. The other
    values are those of the newest of them: `date` is W3CDTF or a year, None if it is unknown. `url`
    is None for an item without an address, `title` empty for a capture without one. `media` is the
    media type of a capture, "" if it is unknown.
    """

    position: int
    identifier: str
    kind: str
    title: str
    url: str | None
    date: str | None
    sets: tuple[str, ...]
    captures: int
    media: str = ""


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A matching record: its rank, its points, and what the captures of one URL have in common."""

    hit: SearchHit
    url: str
    rank: int
    points: int

    @property
    def order(self) -> tuple[int, int]:
        """What records are sorted by; the highest is the best."""
        return self.points, self.hit.position


def join_captures(records: Iterable[FoundRecord]) -> list[FoundRecord]:
    """Return the best record of each URL or item, with its newest hit, the best one first."""
    groups: dict[str, list[FoundRecord]] = {}
    for record in records:
        groups.setdefault(record.url or record.hit.identifier, []).append(record)
    joined = []
    for group in groups.values():
        best = max(group, key=lambda record: record.order)
        alike = best.points // _ANSWERED
        hits = (record.hit for record in group if record.points // _ANSWERED == alike)
        newest = max(hits, key=lambda hit: (hit.date or "", hit.position))
        hit = replace(newest, captures=len(group))
        joined.append((best.order, replace(best, hit=hit)))
    return [record for _, record in sorted(joined, key=lambda pair: pair[0], reverse=True)]


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
    media = record["content_mime_type"] or record["content_mime_detected"] or ""
    if kind.is_capture:
        title, url, date = record["title"] or "", record["url"], record["fetch_date"]
        key = record["url_surtkey"] or url or ""
    else:
        fields = kind.find(record.get(DOCUMENT) or documents.get(identifier))
        texts = kind.list_texts(fields, identifier)
        # "Lebowski, Jeffrey" is also found as the phrase that a reader writes.
        names = (name.partition(",") for name in kind.authors(fields) if "," in name)
        texts += [f"{forename} {surname}" for surname, _, forename in names]
        title, url, key = texts[0], kind.url(fields), ""
        date = (kind.search_date or kind.date)(fields)
        url = url if isinstance(url, str) else None
        date = date if isinstance(date, str) and _YEAR.match(date) else None
    if not query.holds(date) or not query.takes(media):
        return None
    if kind.is_capture:
        places = tuple(record[column] for column in _PLACES)
        weight = _weigh_capture(query, title, url or "", media, *places)
    else:
        units = [words.units(words.pieces(text)) for text in texts]
        weights = [_TITLE] + [_OTHER] * (len(units) - 1)
        is_hit = query.matches(units)
        points = _ANSWERED + _PAGE + _weigh(query.wanted, units, weights)
        weight = (words.PAGE, points) if is_hit else None
    if weight is None:
        return None
    hit = SearchHit(position, identifier, name, title, url, date, sets, 1, media)
    return FoundRecord(hit, key, weight[0], _RANK * weight[0] + weight[1])


@lru_cache(maxsize=4096)  # many captures of a URL are alike
def _weigh_capture(
    query: WordQuery,
    title: str,
    url: str,
    media: str,
    host: str | None,
    domain: str | None,
    surt: str | None,
    status: int | None,
) -> tuple[int, int] | None:
    """Return the rank of a capture, which is that of its worst term, and its points.

    The rank is the highest in which the table of words has all terms. None if it does not match.
    """
    head, front = words.units(words.pieces(title)), words.units(words.host_pieces(host))
    whole = words.units(words.url_pieces(host, url))
    if not query.matches([head, whole]):
        return None
    of_title = words.rank_page(status, surt)
    is_home, site = of_title == words.HOME, words.site_word(domain)
    ranks = [
        words.SITE
        if is_home and site and term.matches([[site]])
        else words.HOST
        if is_home and term.matches([front])
        else of_title * bool(of_title and term.matches([head]))
        for term in query.wanted
    ]
    points = _weigh(query.wanted, [head, front, whole], [_TITLE, _HOST, _URL])
    points += _ANSWERED * (of_title > 0) + _PAGE * ("html" in media)
    levels = re.findall("[^/?&]+", (surt or "").partition(")/")[2])
    points += _DEPTH * max(0, _DEEPEST - len(levels))
    if is_home:
        names = {"".join(term.units) for term in query.wanted}
        names.add("".join(unit for term in query.wanted for unit in term.units))
        label = "".join(words.host_pieces((domain or "").partition(".")[0]))
        points += _HOME + _NAMED * (label in names)
    return min(ranks), points


def _weigh(terms: Sequence[Term], fields: Sequence[Sequence[str]], weights: Sequence[int]) -> int:
    """Return the points of the terms, each in the best of the fields; the first is the title."""
    points, covered, title = 0, 0, fields[0]
    for term in terms:
        exact = replace(term, prefix=False) if term.prefix else term
        pairs = zip(fields, weights, strict=True)
        points += max((weight for field, weight in pairs if term.matches([field])), default=0)
        points += _EXACT * exact.matches(fields)
        covered += len(term.units) * term.matches([title])
    points //= len(terms)
    points += _WHOLE * min(covered, len(title)) // max(1, len(title))
    series = Term(tuple(piece for term in terms for piece in term.pieces), terms[-1].prefix)
    return points + _SERIES * (len(terms) > 1 and series.matches([title]))
