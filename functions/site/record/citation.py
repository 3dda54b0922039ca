"""How to cite an item."""

from functions.kinds import CAPTURES, find_kind
from functions.reading.repository import PublishedRecord
from functions.site.fields import read_date, shorten
from functions.site.page import PageRequest

_AUTHORS, _NAME = 5, 100
"""Authors that a citation names, and characters of a name."""


def cite(request: PageRequest, record: PublishedRecord, title: str, address: str) -> str | None:
    """Return how to cite a live item: authors, year, title, source, and its DOI or `address`."""
    if record.deleted:
        return None
    fields, date = record.fields, read_date(record)
    is_capture = record.kind in CAPTURES
    year = "" if is_capture else date[:4]
    name = request.parts.configuration["repository.name"]
    archive = request.text("record.archived" if is_capture else "record.held", name=name)
    doi, names = fields.get("doi"), find_kind(record.kind).authors(fields)
    authors = [shorten(author, _NAME) for author in names[:_AUTHORS]]
    authors += ["et al."] if len(names) > _AUTHORS else []
    source = fields.get("series_name") or fields.get("journal") or fields.get("publisher")
    pieces = [
        " ".join(filter(None, ("; ".join(authors), f"({year})" if year else ""))),
        f"“{title}”",
        str(fields.get("url") or "")
        if is_capture
        else ", ".join(map(str, filter(None, (source, fields.get("handle"))))),
        f"{archive}, {date[:10]}" if is_capture and date else archive,
        f"https://doi.org/{doi}" if doi else address,
    ]
    return " ".join(f"{piece}." for piece in pieces if piece)
