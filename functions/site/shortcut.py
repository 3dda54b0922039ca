"""Shortcuts: a text that names one thing leads straight to its page, without a search.

Each form of such a text costs a look-up or two, and most texts have none of them.
"""

import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from functions.archive.declared_digest import parse_digest
from functions.content import near, terms
from functions.content.replay.request import parse_address
from functions.content.terms import NoScope
from functions.kinds import CAPTURES
from functions.reading.repository import find_item
from functions.search.query import parse
from functions.site.page import PageRequest
from functions.snapshot import oai_name

_LONGEST = 2048
"""Characters of a text that may name one thing."""
_Find = Callable[[PageRequest, re.Match[str]], str | None]


def find_page(request: PageRequest, text: str) -> str | None:
    """Return the address of the page that a text names, else None. Raises StoreError.

    It is that of a record, by its identifier, handle, DOI, number or payload digest, or of the
    captures of a URL. An address of replay leads to the capture nearest to its time.
    """
    forms = _FORMS if len(text) <= _LONGEST else ()
    addresses = (find(request, m) for form, find in forms if (m := form.fullmatch(text)))
    return next(filter(None, addresses), None)


def _find_named(request: PageRequest, match: re.Match[str]) -> str | None:
    """Return the page of an item whose identifier may lack what stands before its local part."""
    name = unquote(match["address"]) if match["address"] else match["name"]
    names = [name]
    if not name.startswith("oai:"):
        names += [f"oai:{name}", oai_name.to_oai(request.manifest.namespace, name)]
    for identifier in names:
        record = find_item(request.parts.repository, request.manifest, identifier, fields=())
        if record is not None:
            return request.address.record(record.identifier)
    return None


def _find_number(request: PageRequest, match: re.Match[str]) -> str | None:
    """Return the page of the only record with an ISBN or ISSN, with hyphens or without."""
    number = match["number"] or match[0]
    digits = re.sub("[- ]", "", number)
    forms = (number, digits, f"{digits[:4]}-{digits[4:]}")
    return _find_only(request, forms[: 3 if len(digits) == 8 else 2], is_capture=False)


def _find_only(
    request: PageRequest, texts: Iterable[str], *, is_capture: bool = True
) -> str | None:
    """Return the page of an item if it alone has one of these texts, as a DOI or a handle."""
    for text in dict.fromkeys(texts) if request.parts.words else ():
        # Without slashes, as in a URL digits in long words would not count.
        query = parse('"{}"'.format(text.replace("/", " ")))
        page = request.parts.words(request.manifest, query, None, 2)  # type: ignore[misc]
        hits = [hit for hit in page.hits if is_capture or hit.kind not in CAPTURES]
        if len(hits) == 1 and page.after is None:
            return request.address.record(hits[0].identifier)
    return None


def _find_digest(request: PageRequest, match: re.Match[str]) -> str | None:
    """Return the page of the first capture with a payload digest, in base32 or hexadecimal."""
    digest = parse_digest(f"{match['label'] or 'sha1'}:{match['digest']}".encode())
    if digest is None or not request.parts.search:
        return None
    captures = request.parts.search.with_digest(request.manifest, digest.text())
    return request.address.record(captures[0].identifier) if captures else None


def _find_replayed(request: PageRequest, match: re.Match[str]) -> str | None:
    """Return where people see the capture nearest to the time in an address of replay."""
    try:
        wanted = parse_address(re.sub(r"\s+", "/", match["replay"] or match["newest"], count=1))
    except NoScope:
        return None
    search, manifest = request.parts.search, request.manifest
    if search is None or wanted.is_list or not wanted.stamp:
        return _show_captures(request, wanted.url)
    for capture in near.find_near(search, manifest, wanted.key, wanted.moment).best:
        if record := request.parts.repository.record(manifest, capture.identifier):
            return request.find_view(record) or request.address.record(record.identifier)
    return None


def _show_captures(request: PageRequest, url: str) -> str | None:
    """Return the page of the captures of a URL, None if there are none."""
    if not (request.parts.search and request.parts.calendar):
        return None
    try:
        scope = terms.parse_scope(url, "exact")
    except NoScope:
        return None
    ((first, last),) = scope.ranges
    if request.parts.search.captures(request.manifest, first, last, None, 1):
        return request.address.page("/captures", url=scope.url, match="exact")
    return None


_RESOLVER = r"(?:doi|hdl):\s*|(?:https?://)?(?:(?:dx\.|www\.)?doi\.org|hdl\.handle\.net)/"
_TIME = r"(?:\d{4,14}(?:[a-z]{2}_)?|\d{0,14}\*)"
_FORMS: tuple[tuple[re.Pattern[str], _Find], ...] = tuple(
    (re.compile(form, re.IGNORECASE | re.ASCII), find)
    for form, find in (
        (
            r"\S*?(?:/record/|/content/|[?&](?:id|identifier)=)(?P<address>[^\s&]+)"
            r"|(?P<name>(?!\w+://)[^\s\"]*[:,][^\s\"]*|[a-z2-7]{24})",
            _find_named,
        ),
        (
            rf"(?:{_RESOLVER}|(?=10\.\d{{4,9}}/))(?P<id>[^\s\"]+/[^\s\"]+)",
            lambda request, match: _find_only(request, (match["id"],)),
        ),
        (
            r"(?:urn:)?(?:isbn(?:-1[03])?:?\s*)?(?P<number>(?:97[89][- ]?)?(?:\d[- ]?){9}[\dx])",
            _find_number,
        ),
        (
            r"(?:urn:)?(?:[ep]?issn:?\s*(?P<number>\d{4}-?\d{3}[\dx])|\d{4}-\d{3}[\dx])",
            _find_number,
        ),
        (r"(?:(?P<label>[a-z0-9-]{3,9}):)?(?P<digest>[a-z2-7]{32}|[0-9a-f]{32,128})", _find_digest),
        (
            r"[a-z][a-z0-9+.\-]*://\S+|www\.[^\s/\"]+|[^\s/\"]+\.[^\s/\"]+/\S*",
            lambda request, match: _show_captures(request, match[0]),
        ),
        (
            rf"(?:|\S*?/)(?P<replay>{_TIME}[/\s]+[^\s/]*[.:]\S+)|\S*?/web/(?P<newest>\S+)",
            _find_replayed,
        ),
    )
)
"""The forms of texts that name one thing, and what finds it; the first that does is taken."""
