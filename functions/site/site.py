"""The site: finds the page of a path, and makes it an HTTP answer.

Pages need no script and load nothing from other hosts; the Content-Security-Policy holds them to
that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from functions.content.calendar import CaptureCalendar
from functions.content.search import CaptureSearch
from functions.http import http_message
from functions.http.http_message import IN_PATH, OAI_PATH, Call, FormError, Reply
from functions.kinds import CAPTURES
from functions.oai.application import OaiParts, PageService
from functions.oai.render.language import FALLBACK, read_languages
from functions.reading.duck_repository import DuckRepository
from functions.search.search import WordSearch
from functions.site import (
    answer_page,
    browse,
    charts_page,
    checks,
    dcat,
    machine_files,
    overview,
    publishes,
    search_page,
    set_tree,
    source_page,
    tables,
)
from functions.site.captures import capture_list, capture_query
from functions.site.page import PageError, PageParts, PageRequest, PageTable, SiteAddress, SitePage
from functions.site.record import citation, record_page
from functions.snapshot import instant
from functions.snapshot.dumps import DumpIndex, read_index
from functions.snapshot.fixity import CheckReport, read_reports

_LONGEST, _HEADER = 8192, 6000
"""Characters of an argument, and of links in a header."""
PAGES: Mapping[str, Callable[[PageRequest], SitePage]] = {
    "": overview.show,
    "answer": answer_page.show,
    "captures": capture_list.show,
    "charts": charts_page.show,
    "checks": checks.show,
    "collections": browse.show_collections,
    "harvest": overview.show_harvesting,
    "publishes": publishes.show,
    "record": record_page.show,
    "records": browse.show,
    "search": search_page.show,
    "sets": set_tree.show,
    "source": source_page.show,
}
"""The pages by the first part of their path."""

TABLES: Mapping[str, Callable[[PageRequest], PageTable]] = {
    **{name: partial(charts_page.find_table, name) for name in charts_page.QUERIES},
    "calendar": capture_query.find_months,
    "captures": capture_query.find_captures,
    "checks": checks.find_table,
    "collections": browse.find_collections,
    "dumps": publishes.find_dumps,
    "faults": source_page.find_table,
    "files": record_page.find_files,
    "formats": overview.find_formats,
    "publishes": publishes.find_table,
    "records": browse.find_table,
    "sets": set_tree.find_table,
}
"""The tables of pages, which are had as CSV and JSON, with the arguments of their page."""

FILES: Mapping[str, Callable[[PageRequest], Reply]] = {
    dcat.PATH: dcat.write_catalog,
    **dict.fromkeys(citation.TYPES, record_page.show_citation),
    "linkset": record_page.show_linkset,
    "publishes.atom": publishes.feed,
    **machine_files.FILES,
    **tables.list_files(TABLES),
}
"""What is no page, by its path."""


class WebSite:
    """Implements functions.oai.application.PageService. Thread-safe."""

    def __init__(
        self, parts: PageParts, address: Callable[[str, str, str], SiteAddress] = SiteAddress
    ) -> None:
        """`address` makes the addresses of pages, of a root, base URL and language."""
        self._parts, self._address = parts, address
        self._languages = read_languages(parts.renderer.places)
        self._fixed = machine_files.read_files(
            parts.renderer.places, parts.configuration["site.colours"]
        )

    def takes(self, path: str) -> bool:
        """Return whether there is a page at that path."""
        first, slash, rest = path[1:].partition("/")
        if path == "/" or path in self._fixed:
            return True
        if slash:
            return first == "record" and bool(rest)
        return bool(first) and (first in PAGES or first in FILES)

    def reply(self, call: Call) -> Reply:
        """Return the answer to a GET, 404 if there is no such page. Raises StoreError."""
        if (fixed := self._fixed.get(call.path)) is not None:
            return fixed
        first, _, rest = call.path[1:].partition("/")
        names = tuple(dict.fromkeys((rest, unquote(rest)))) if rest else ()
        try:
            arguments = dict(call.pairs)
        except FormError:
            arguments = {}
        request = self._request(call, arguments, names)
        try:
            if any(len(text) > _LONGEST for text in (*arguments.values(), rest)):
                raise PageError(request.text("error.long"))
            if not self.takes(call.path):
                raise PageError(request.text("error.nowhere"), 404)
            if first in FILES:
                return FILES[first](request)
            return self._write(request, PAGES[first](request))
        except PageError as error:
            title = request.text("error.missing" if error.status == 404 else "error.title")
            page = SitePage("error.html", title, {"message": str(error)}, error.status)
            return self._write(request, page)

    def _request(
        self, call: Call, arguments: Mapping[str, str], names: tuple[str, ...]
    ) -> PageRequest:
        base = self._parts.provider.base_url(call.base + OAI_PATH).rstrip("/")
        root = base.removesuffix(OAI_PATH) if base.endswith(OAI_PATH) else call.base
        default = self._parts.configuration["site.language"]
        wanted = arguments.get("lang", default)
        language = self._languages.get(
            wanted if wanted in self._languages else default, self._languages[FALLBACK]
        )
        reading = self._parts.present.reading()
        return PageRequest(
            self._parts,
            call,
            self._address(root, base, "" if language.code == default else language.code),
            language,
            reading,
            self._parts.repository.manifest(reading.entry.snapshot),
            arguments,
            names,
        )

    def _write(self, request: PageRequest, page: SitePage) -> Reply:
        """Return the page as HTML, in the frame that all pages share."""
        body = self._parts.renderer.page(
            page.template, {**self._frame(request, page), **page.values}
        )
        headers = {**http_message.PAGES, **page.headers}
        if page.links:
            header = page.links[0]
            for link in page.links[1:]:
                if len(header) + len(link) <= _HEADER:
                    header += f", {link}"
            headers["Link"] = header
        log_fields = {"snapshot": request.manifest.snapshot, "page": page.template}
        tag = http_message.document_digest(body) if page.status == 200 else ""
        return Reply(page.status, "text/html", body, headers, tag, log_fields)

    def _frame(self, request: PageRequest, page: SitePage) -> dict[str, Any]:
        """Return the variables that every template has."""
        configuration, address, text = request.parts.configuration, request.address, request.text
        origin = request.manifest.origin
        kinds = {kind: n for kind, n in request.manifest.kinds().items() if n}
        return {
            "t": text,
            "page": address.page,
            "plain": replace(address, language="").page,
            "record_page": address.record,
            "number": text.write_number,
            "size": text.write_bytes,
            "stamp": instant.to_text,
            "day": text.write_date,
            "address": address,
            "title": page.title,
            "is_gone": page.status != 200,
            "name": origin.name if origin else configuration["repository.name"],
            "emails": origin.emails if origin else configuration["repository.admin_emails"],
            "imprint": configuration["site.imprint"],
            "logo": "/logo.svg" in self._fixed,
            "snapshot": request.manifest.snapshot,
            "effective": request.manifest.effective,
            "kinds": kinds,
            "path": request.call.path,
            "languages": self._list_languages(request),
            "style": self._fixed["/style.css"].digest,
            "data": page.data,
            "has_search": self._parts.words is not None and search_page.has_words(request.manifest),
            "has_captures": self._parts.calendar is not None and not CAPTURES.isdisjoint(kinds),
        }

    def _list_languages(self, request: PageRequest) -> list[tuple[str, str, str]]:
        """Return code, name and link of the languages that this page can be read in."""
        address = request.address
        if address.is_static:
            return []
        arguments = {n: text for n, text in request.arguments.items() if n != "lang"}
        default = request.parts.configuration["site.language"]
        path = quote(unquote(request.call.path), safe=f"/{IN_PATH}")
        return [
            (code, language.name, SiteAddress(address.root, "", other).page(path, **arguments))
            for code, language in sorted(self._languages.items())
            for other in ("" if code == default else code,)
        ]


def make_site(
    shared: OaiParts,
    repository: DuckRepository | None = None,
    dumps: Callable[[], DumpIndex | None] | None = None,
    checks: Callable[[], Sequence[CheckReport]] | None = None,
) -> PageService:
    """Return the pages of an application; without what searches `repository`, some are missing."""
    searches: dict[str, Any] = {}
    if repository is not None:
        source = repository.catalogue, repository.files
        searches = {"search": CaptureSearch(*source), "calendar": CaptureCalendar(*source)}
        searches["words"] = WordSearch(*source).find
        dumps = partial(read_index, repository.catalogue.reader)
        checks = partial(read_reports, repository.catalogue.reader)
    same = {field.name: getattr(shared, field.name) for field in fields(shared)}
    return WebSite(PageParts(**same, **searches, dumps=dumps, checks=checks))
