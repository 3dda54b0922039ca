"""Shortcuts: a text that names one thing leads straight to its page, without a search."""

import re

from functions.content import terms
from functions.content.terms import NoScope
from functions.reading.repository import find_item
from functions.search.query import parse
from functions.site.page import PageRequest
from functions.snapshot import oai_name

_DOI = re.compile(
    r"(?:doi:|(?:https?://)?(?:dx\.)?doi\.org/)?(10\.\d{4,9}/[^\s\"]+)", re.IGNORECASE
)
_URL = re.compile(r"[a-z][a-z0-9+.\-]*://\S+|[^\s/\"]+\.[^\s/\"]+/\S*", re.IGNORECASE)


def find_page(request: PageRequest, text: str) -> str | None:
    """Return the address of the page that a text names, else None. Raises StoreError.

    It is that of a record, by its identifier, its handle or its DOI, or the captures of a URL.
    """
    if text.startswith("oai:") or oai_name.find_handle(text):
        record = find_item(request.parts.repository, request.manifest, text, fields=())
        if record is not None:
            return request.address.record(record.identifier)
    if (match := _DOI.fullmatch(text)) and request.parts.words is not None:
        page = request.parts.words(request.manifest, parse(f'"{match[1]}"'), None, 2)
        if len(page.hits) == 1 and page.after is None:
            return request.address.record(page.hits[0].identifier)
    if _URL.fullmatch(text) and request.parts.search and request.parts.calendar:
        try:
            scope = terms.parse_scope(text, "exact")
        except NoScope:
            return None
        ((first, last),) = scope.ranges
        if request.parts.search.captures(request.manifest, first, last, None, 1):
            return request.address.page("/captures", url=scope.url, match="exact")
    return None
