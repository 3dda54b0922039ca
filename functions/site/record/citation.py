"""How to cite an item."""

from functions.oai.repository import PublishedRecord
from functions.site.fields import read_authors, read_date, shorten
from functions.site.page import PageRequest

_AUTHORS, _NAME = 5, 100
"""Authors that a citation names, and characters of a name."""


def cite(request: PageRequest, record: PublishedRecord, title: str, address: str) -> str | None:
    """Return how to cite a live item: authors, year, title, source, and its DOI or `address`."""
    if record.deleted:
        return None
    fields, date = record.fields, read_date(record)
    is_capture = record.kind == "capture"
    year = "" if is_capture else date[:4]
    name = request.parts.configuration["repository.name"]
    held = request.text("record.archived" if is_capture else "record.held", name=name)
    doi = fields.get("doi")
    pieces = [
        " ".join(filter(None, (_name_authors(record), f"({year})" if year else ""))),
        f"“{title}”",
        str(fields.get("url") or "") if is_capture else _name_source(record),
        f"{held}, {date[:10]}" if is_capture and date else held,
        f"https://doi.org/{doi}" if doi else address,
    ]
    return " ".join(f"{piece}." for piece in pieces if piece)


def _name_authors(record: PublishedRecord) -> str:
    names = read_authors(record)
    shown = "; ".join(shorten(one, _NAME) for one in names[:_AUTHORS])
    return f"{shown}; et al." if len(names) > _AUTHORS else shown


def _name_source(record: PublishedRecord) -> str:
    """Return the series, the journal or the publisher, with the handle of a template."""
    fields = record.fields
    source = fields.get("series_name") or fields.get("journal") or fields.get("publisher")
    return ", ".join(str(one) for one in (source, fields.get("handle")) if one)
