"""How to cite an item: as a text, as BibTeX and as RIS, by templates.

No library is used: those there are (bibtexparser, rispy) write fields as they get them, so that
types and names of fields, which are all of it, would be here as well.
"""

import re
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

from functions.kinds import CAPTURES, find_kind
from functions.kinds.kind import LinkedName
from functions.reading.repository import PublishedRecord

TYPES = {
    "cite.bib": "application/x-bibtex",
    "cite.ris": "application/x-research-info-systems",
}
"""The media types of citations, by path and template."""
_ESCAPES = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "$&%#_"},
        **{"\\": r"\textbackslash{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}"},
        **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    }
)
"""What TeX writes for a sign that means something to it; a brace alone would end no field."""
_PLAIN = str.maketrans({"\\": "%5C", "{": "%7B", "}": "%7D"})
"""The same in addresses, which TeX takes as they are."""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def describe(record: PublishedRecord, title: str, address: str, archive: str) -> dict[str, Any]:
    """Return the variables of the templates `cite.bib`, `cite.ris` and `cite.txt` for a live item.

    It is read at `address`, in `archive`.
    """
    kind, is_capture = find_kind(record.kind), record.kind in CAPTURES
    work = kind.work(record.fields)
    type_ = kind.type if is_capture else work.type
    year = re.search(r"(?<!\d)(?:1\d|20)\d\d(?!\d)", work.date)  # also in `c1998`
    day = re.match(r"\d{4}(?:-(\d\d)(?:-\d\d)?)?", work.date)
    first, last = f"{work.pages}-".replace("\u2013", "-").split("-", 1)
    return {
        "work": work,
        "word": re.sub(r"redif-|[^a-z]", "", type_.lower().rsplit("/")[-1]),
        "kind": kind.type.lower(),
        "is_capture": is_capture,
        "handle": record.fields.get("handle"),
        "title": title,
        "key": re.sub(r"[^A-Za-z0-9:._-]+", "-", record.identifier),
        "identifier": record.identifier,
        "year": year[0] if year else "",
        "month": int(day[1]) if day and day[1] else "",
        "day": day[0] if day else "",
        "first": first.strip(),
        "last": last.strip("- "),
        "url": f"https://doi.org/{work.doi}" if work.doi else address,
        "archive": archive,
        "note": f"{work.url}, {work.date}" if is_capture else "",
        "line": _write_line,
        "tex": lambda text: Markup(_write_line(text).translate(_ESCAPES)),
        "address": lambda text: Markup(_write_line(text).translate(_PLAIN)),
        "people": _name_people,
    }


def _write_line(text: str) -> Markup:
    """Return a text in one line without control characters, as it is where it is no HTML."""
    return Markup(" ".join(_CONTROLS.sub(" ", text or "").split()))


def _name_people(people: Iterable[LinkedName]) -> Markup:
    """Return persons as BibTeX has them; what it would take for two names is in braces."""
    names = [str(_write_line(person.name)) for person in people]
    escaped = [(name.translate(_ESCAPES), re.search(r"\band\b|,.*,", name, re.I)) for name in names]
    return Markup(" and ".join(f"{{{tex}}}" if is_long else tex for tex, is_long in escaped if tex))
