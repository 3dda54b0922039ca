"""ReDIF: filters for the fields of a template (functions.snapshot.obi.TEMPLATE).

Fields are lists by attribute name in lower case; a cluster is a list of tables of the same form.
Unexpected values in a list are skipped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from functions.snapshot import instant

Fields = Mapping[str, Any]

_YEAR = re.compile(r"[0-9]{4}")
_DATE = re.compile(r"([0-9]{4})(?:-?([0-9]{2})(?:-?([0-9]{2}))?)?")
_CODES = re.compile(r"[\s,;]+")
_DOI = re.compile(r"(?:doi:\s*|https?://(?:dx\.)?doi\.org/)?(10\..+)", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PARTS = (("volume", "vol. {}"), ("issue", "no. {}"), ("pages", "pp. {}"))


def run_time(tist: int) -> str:
    """Return the time of a run in the form of XML Schema."""
    return instant.to_text(datetime.fromtimestamp(tist, UTC))


def texts(fields: Fields | None, *path: str) -> list[str]:
    """Return the texts at the end of a path of clusters and an attribute, each once, in order."""
    *clusters, name = path
    nodes: Sequence[Fields] = [fields or {}]
    for cluster in clusters:
        nodes = [inner for node in nodes for inner in nodes_of(node, cluster)]
    found: list[str] = []
    for node in nodes:  # most templates lack most attributes
        if values := node.get(name):
            found += [value for value in values if isinstance(value, str) and value]
    return [*dict.fromkeys(found)] if len(found) > 1 else found


def nodes_of(fields: Fields | None, cluster: str) -> list[Fields]:
    """Return the clusters of that name."""
    return [node for node in (fields or {}).get(cluster) or () if isinstance(node, Mapping)]


def first(fields: Fields | None, *names: str) -> str | None:
    """Return the first text of the first of these attributes that has one."""
    return next((text for name in names for text in texts(fields, name)), None)


def titles(fields: Fields | None) -> list[str]:
    """Return the titles of a template of any type."""
    for path in (("title",), ("name",), ("name-full",), ("primary", "name")):
        if found := texts(fields, *path):
            return found
    return []


def keywords(fields: Fields | None) -> list[str]:
    """Return the keywords, separated by semicolons or, without semicolons, by commas."""
    found: list[str] = []
    for text in texts(fields, "keywords"):
        found += (part.strip() for part in text.split(";" if ";" in text else ","))
    return [*dict.fromkeys(filter(None, found))]


def codes(fields: Fields | None, scheme: str = "jel") -> list[str]:
    """Return the codes of a classification."""
    found = (code for text in texts(fields, f"classification-{scheme}") for code in _split(text))
    return [*dict.fromkeys(found)]


def _split(text: str) -> Iterator[str]:
    yield from filter(None, _CODES.split(text))


def date(fields: Fields | None) -> str | None:
    """Return the date of creation or publication: a year, with month and day if known."""
    for text in texts(fields, "creation-date"):
        if match := _DATE.fullmatch(text):
            return "-".join(filter(None, match.groups()))
    year = next((t for t in texts(fields, "year") if _YEAR.fullmatch(t)), None)
    month = _month(first(fields, "month") or "")
    return f"{year}-{month}" if year and month else year


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
    found = ((form, first(fields, name)) for name, form in _PARTS)
    return ", ".join([within, *(form.format(text) for form, text in found if text)])


def restrictions(fields: Fields | None, inherited: Sequence[str] | None) -> list[str]:
    """Return the restrictions of its files: its own, else those of its series or archive.

    RePEc requires that they are shown.
    """
    own = [*texts(fields, "file", "restriction"), *texts(fields, "restriction")]
    return [*dict.fromkeys(own or inherited or ())]


def pages(fields: Fields | None) -> tuple[str, str]:
    """Return the first and the last page, "" if unknown."""
    start, _, end = (first(fields, "pages") or "").replace("\u2013", "-").partition("-")
    return start.strip(), end.strip("- ")


FILTERS = {
    "citation": citation,
    "codes": codes,
    "date": date,
    "dois": dois,
    "field": first,
    "keywords": keywords,
    "nodes": nodes_of,
    "noted": run_time,
    "pages": pages,
    "restrictions": restrictions,
    "texts": texts,
    "titles": titles,
}
"""Filters of template crosswalks, by name."""
