"""Filters of crosswalks for the fields of a template of ReDIF.

Fields (functions.kinds.templates.COLUMNS) are lists by attribute name in lower case; a cluster is a
list of tables of the same form. Unexpected values in a list are skipped.

A page calls these some ten thousand times, and most lists have one value: that case comes first.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Any

from functions.snapshot import instant, oai_name

Fields = Mapping[str, Any]

_YEAR = re.compile(r"[0-9]{4}")
_DATE = re.compile(r"([0-9]{4})(?:-?([0-9]{2})(?:-?([0-9]{2}))?)?")
_DOI = re.compile(r"(?:doi:\s*|https?://(?:dx\.)?doi\.org/)?(10\..+)", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PARTS = (("volume", "vol. {}"), ("issue", "no. {}"), ("pages", "pp. {}"))


@lru_cache(maxsize=1024)
def run_time(tist: int) -> str:
    """Return the time of a run in the form of XML Schema."""
    return instant.to_text(datetime.fromtimestamp(tist, UTC))


def texts(fields: Fields | None, *path: str) -> list[str]:
    """Return the texts at the end of a path of clusters and an attribute, each once, in order."""
    if not fields:
        return []
    if len(path) == 1:
        return _texts_of(fields, path[0])
    if len(path) > 2:
        collected = [text for node in nodes_of(fields, path[0]) for text in texts(node, *path[1:])]
        return [*dict.fromkeys(collected)]
    collected, name = [], path[1]
    for node in fields.get(path[0]) or ():
        if node.__class__ is dict or isinstance(node, Mapping):
            values = node.get(name)
            if values and len(values) == 1 and values[0].__class__ is str and values[0]:
                collected.append(values[0])
            elif values:
                collected += _texts_of(node, name)
    return (
        collected
        if len(collected) < 2 or len({*collected}) == len(collected)
        else [*dict.fromkeys(collected)]
    )


def _texts_of(node: Fields, name: str) -> list[str]:
    """Return the texts of an attribute."""
    values = node.get(name)
    if not values:
        return []
    if len(values) == 1 and values[0].__class__ is str and values[0]:
        return [values[0]]
    return [*dict.fromkeys(value for value in values if isinstance(value, str) and value)]


def handles(fields: Fields | None, *path: str) -> list[str]:
    """Return the handles at the end of a path in their canonical form, each once, in order."""
    written = texts(fields, *path)
    return [*dict.fromkeys(map(oai_name.canonical_handle, written))] if written else written


def nodes_of(fields: Fields | None, cluster: str) -> list[Fields]:
    """Return the clusters of that name."""
    clusters = fields.get(cluster) if fields else None
    if not clusters:
        return []
    return [node for node in clusters if node.__class__ is dict or isinstance(node, Mapping)]


def first(fields: Fields | None, *names: str) -> str | None:
    """Return the first text of the first of these attributes that has one."""
    for name in names if fields else ():
        if fields and fields.get(name) and (values := _texts_of(fields, name)):
            return values[0]
    return None


def titles(fields: Fields | None) -> list[str]:
    """Return the titles of a template of any type."""
    for path in (("title",), ("name",), ("name-full",), ("primary", "name")):
        if fields and path[0] in fields and (values := texts(fields, *path)):
            return values
    return []


def keywords(fields: Fields | None) -> list[str]:
    """Return the keywords, separated by semicolons or, without semicolons, by commas."""
    words = (text.split(";" if ";" in text else ",") for text in texts(fields, "keywords"))
    return [*dict.fromkeys(filter(None, map(str.strip, chain.from_iterable(words))))]


def codes(fields: Fields | None, scheme: str = "jel") -> list[str]:
    """Return the codes of a classification."""
    values = texts(fields, f"classification-{scheme}")
    return [*dict.fromkeys(" ".join(values).replace(",", " ").replace(";", " ").split())]


def date(fields: Fields | None) -> str | None:
    """Return the date of creation or publication: a year, with month and day if known."""
    for text in texts(fields, "creation-date"):
        if day := _read_date(text):
            return day
    if not fields or "year" not in fields:
        return None
    year = next((t for t in texts(fields, "year") if _YEAR.fullmatch(t)), None)
    month = _month(first(fields, "month") or "")
    return f"{year}-{month}" if year and month else year


@lru_cache(maxsize=4096)
def _read_date(text: str) -> str | None:
    match = _DATE.fullmatch(text)
    return "-".join(filter(None, match.groups())) if match else None


def _month(text: str) -> str:
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= 12:
        return f"{int(text):02}"
    start = text[:3].lower()
    plain = text.isalpha() and start in _MONTHS
    return f"{_MONTHS.index(start) + 1:02}" if plain else ""


def dois(fields: Fields | None) -> list[str]:
    """Return the DOIs as URLs."""
    matches = map(_DOI.fullmatch, texts(fields, "doi"))
    return [f"https://doi.org/{match[1]}" for match in matches if match]


def citation(fields: Fields | None, journal: str | None) -> str | None:
    """Return the citation: the journal or containing book, volume, issue and pages."""
    within = first(fields, "journal", "book-title") or journal
    if not within:
        return None
    details = ((form, first(fields, name)) for name, form in _PARTS)
    return ", ".join([within, *(form.format(text) for form, text in details if text)])


def restrictions(fields: Fields | None, inherited: Sequence[str] | None) -> list[str]:
    """Return the restrictions of its files: its own, else those of its series or archive.

    RePEc requires that they are shown.
    """
    own: Sequence[str] = texts(fields, "file", "restriction")
    if fields and "restriction" in fields:
        own = [*own, *texts(fields, "restriction")]
    own = own or inherited or ()
    return [*dict.fromkeys(own)] if own else []


def pages(fields: Fields | None) -> tuple[str, str]:
    """Return the first and the last page, "" if unknown."""
    start, _, end = (first(fields, "pages") or "").replace("\u2013", "-").partition("-")
    return start.strip(), end.strip("- ")


FILTERS: Mapping[str, Callable[..., Any]] = {
    "citation": citation,
    "codes": codes,
    "date": date,
    "dois": dois,
    "field": first,
    "handles": handles,
    "keywords": keywords,
    "nodes": nodes_of,
    "noted": run_time,
    "pages": pages,
    "restrictions": restrictions,
    "texts": texts,
    "titles": titles,
}
"""Filters of template crosswalks, by name."""
