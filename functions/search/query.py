"""Queries: what a person types, as terms, and which parts of a text they match.

A term is a word, a beginning of words (`kniz*`), or a phrase: what stands in quotation marks, or
words joined by other characters than spaces, such as `www.a.cz/b`. All terms must match, in any
field. `-` before a term excludes the items that it matches.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from functions.kinds import KINDS
from functions.search import words
from functions.snapshot import oai_name
from functions.snapshot.errors import SheafError

LONGEST = 400
"""Characters of a query."""
MOST = 12
"""Terms of a query."""
MOST_UNITS = 40
"""Units of a term."""
SHORTEST = 2
"""Letters of a beginning."""

_TERM = re.compile(r'(-?)(?:"([^"]*)"|(\S+))')
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")


class SearchQueryError(SheafError):
    """A query cannot be searched for.

    `code` is the key of a text in the table `query` of languages, `values` are its fields.
    """

    def __init__(self, code: str, **values: object) -> None:
        super().__init__(code)
        self.code, self.values = code, values


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a query: the pieces (functions.search.words) that follow each other in a text.

    With `prefix`, the last unit needs only begin with the last piece. `excluded`: nothing that it
    matches is a hit.
    """

    pieces: tuple[str, ...]
    prefix: bool = False
    excluded: bool = False
    units: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Keep the units, in order: each record is compared with them."""
        object.__setattr__(self, "units", tuple(words.units(self.pieces)))

    def find_keys(self) -> list[tuple[str, str]]:
        """Return the first and last word of the table of each range that holds all its items."""
        ranges: dict[tuple[str, str], None] = {}
        for piece in self.pieces:
            if not words.is_spaceless(piece):
                ranges[piece, piece] = None
            elif len(piece) == 1:
                ranges[piece, piece + words.BEHIND] = None
            else:
                ranges |= dict.fromkeys((a + b, a + b) for a, b in pairwise(piece))
        if self.prefix and not words.is_spaceless(self.pieces[-1]):
            del ranges[self.pieces[-1], self.pieces[-1]]
            ranges[self.pieces[-1], self.pieces[-1] + words.BEHIND] = None
        return [*ranges]

    def places(self, units: Sequence[str]) -> Iterator[int]:
        """Yield where the term begins among the units of a text."""
        wanted = self.units
        size = len(wanted)
        if size == 1 and not self.prefix and wanted[0] not in units:
            return  # most often
        for start in range(len(units) - size + 1):
            if all(units[start + n] == wanted[n] for n in range(size - 1)):
                last = units[start + size - 1]
                if last == wanted[-1] or (self.prefix and last.startswith(wanted[-1])):
                    yield start

    def matches(self, fields: Sequence[Sequence[str]]) -> bool:
        """Return whether the term is in one of the fields, which are given as units."""
        return any(next(self.places(units), None) is not None for units in fields)


@dataclass(frozen=True, slots=True)
class WordQuery:
    """A query: terms, and the filters `set` (with all below it), `kind`, and years, both included.

    `media` is a media type, or the part before its slash. None does not filter. An item without a
    year is in no range of years, and only captures have a media type.
    """

    text: str
    terms: tuple[Term, ...]
    set: str | None = None
    kind: str | None = None
    since: int | None = None
    until: int | None = None
    media: str | None = None

    @property
    def wanted(self) -> Sequence[Term]:
        """The terms that must match."""
        return [term for term in self.terms if not term.excluded]

    def matches(self, fields: Sequence[Sequence[str]]) -> bool:
        """Return whether an item with these fields, as units, is a hit."""
        return all(term.matches(fields) != term.excluded for term in self.terms)

    def takes(self, media: str) -> bool:
        """Return whether the filter takes a media type, "" for an unknown one."""
        return self.media is None or self.media in (media, media.partition("/")[0])

    def holds(self, date: str | None) -> bool:
        """Return whether a date, which begins with the year, is in the range of years."""
        if self.since is None and self.until is None:
            return True
        year = (date or "")[:4]
        if not (year.isascii() and year.isdecimal()):
            return False
        return (self.since or 0) <= int(year) <= (self.until or 9999)


def parse(
    text: str,
    set: str | None = None,
    kind: str | None = None,
    since: str | int | None = None,
    until: str | int | None = None,
    media: str | None = None,
) -> WordQuery:
    """Return the query that a person typed; empty filters do not count. Raises SearchQueryError."""
    if len(text) > LONGEST:
        raise SearchQueryError("long", most=LONGEST)
    terms = tuple(dict.fromkeys(_terms(text)))
    if not any(not term.excluded for term in terms):
        raise SearchQueryError("empty")
    if len(terms) > MOST:
        raise SearchQueryError("many", most=MOST)
    if set and not oai_name.is_set(set):
        raise SearchQueryError("set")
    if kind and kind not in KINDS:
        raise SearchQueryError("kind", kinds=", ".join(KINDS))
    first, last = _year(since), _year(until)
    if first is not None and last is not None and first > last:
        raise SearchQueryError("order")
    media = media.strip().lower() if media else None
    return WordQuery(text, terms, set or None, kind or None, first, last, media or None)


def _terms(text: str) -> Iterator[Term]:
    if text.count('"') % 2:
        raise SearchQueryError("quote")
    for minus, phrase, word in _TERM.findall(text):
        written = phrase or _SCHEME.sub("", word)
        prefix = not phrase and written.endswith("*")
        pieces = tuple(words.pieces(written))
        if "/" in written:  # a URL, whose keys of sessions are not in the table
            pieces = tuple(words.without_keys(pieces)) or pieces
        if not pieces:
            continue
        if len(words.units(pieces)) > MOST_UNITS:
            raise SearchQueryError("phrase", most=MOST_UNITS)
        is_short = len(pieces[-1]) < SHORTEST and not words.is_spaceless(pieces[-1])
        if prefix and is_short:
            raise SearchQueryError("short", least=SHORTEST)
        yield Term(pieces, prefix, bool(minus))


def _year(written: str | int | None) -> int | None:
    text = str(written) if written is not None else ""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and int(text) >= 1):
        raise SearchQueryError("year")
    return int(text)


def mark(text: str, query: WordQuery) -> list[tuple[str, bool]]:
    """Return a text in pieces, each with whether the query's terms match it; joined, they are it.

    A term also matches where it would not in the whole item, as parts of one.
    """
    units, spans = _split(text)
    marked = [False] * len(text)
    for term in query.wanted:
        for place in term.places(units):
            start, end = spans[place][0], spans[place + len(term.units) - 1][1]
            marked[start:end] = [True] * (end - start)
    pieces: list[tuple[str, bool]] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or marked[end] != marked[start]:
            pieces.append((text[start:end], marked[start]))
            start = end
    return pieces


def _split(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the units of a text, and the span of each in it."""
    folded: Mapping[str, str] = {letter: words.fold(letter) for letter in {*text}}
    units: list[str] = []
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        end, is_series = start + 1, words.is_spaceless(folded[text[start]])
        while end < len(text) and not folded[text[start]].isspace():
            letter = folded[text[end]]
            joins = not letter or not (is_series or letter[0] == " " or words.is_spaceless(letter))
            if not joins:
                break
            end += 1
        for unit in words.units(words.pieces(text[start:end])):
            units.append(unit)
            spans.append((start, end))
        start = end
    return units, spans
