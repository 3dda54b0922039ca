"""A request for a page, the addresses of pages, and the page before it becomes HTML."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from functions.content.calendar import CaptureCalendar
from functions.content.search import CaptureSearch
from functions.http.http_message import IN_PATH, OAI_PATH, Call
from functions.kinds import find_kind
from functions.oai.application import OaiParts
from functions.oai.render.copy_address import CopyAddresses
from functions.oai.render.language import Language
from functions.reading.as_of import PointerReading
from functions.reading.repository import PublishedRecord, RecordFilter
from functions.search.place import SearchPlace
from functions.search.query import WordQuery
from functions.search.search import SearchPage
from functions.site import set_name
from functions.snapshot import oai_name
from functions.snapshot.dumps import DumpIndex
from functions.snapshot.errors import SheafError
from functions.snapshot.fixity import CheckReport
from functions.snapshot.manifest import Manifest

TABLE_ROWS = 1_000
"""Rows of a table that a file of it has; its header names where the next ones are."""
_TYPES = 30
"""Media types to choose from."""
IMAGES = frozenset(
    f"image/{name}" for name in ("avif", "gif", "jpeg", "png", "svg+xml", "webp", "x-icon")
)
"""Media types of images that each browser shows."""
LARGEST_IMAGE = 5_000_000
"""Bytes of an image that a page shows: the browser makes it small, and loads all of it."""


class PageError(SheafError):
    """There is no such page, or an argument is invalid; the text is a sentence for people."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class SiteAddress:
    """Where the pages are: `root` is scheme, host and prefix, `oai` the base URL of OAI-PMH.

    `language` is added to links, unless it is the configured one (""). `has_endpoint` tells whether
    OAI-PMH is answered at `oai`. A link is "" where there is no page.
    """

    root: str
    oai: str
    language: str = ""
    has_endpoint: bool = True

    @property
    def is_static(self) -> bool:
        """Whether the pages are files, which have one language and no arguments."""
        return False

    def page(self, path: str, /, **arguments: object) -> str:
        """Return a link to a page, from the host's root. Arguments that are None are left out."""
        values = {name: str(value) for name, value in arguments.items() if value is not None}
        if self.language:
            values["lang"] = self.language
        query = urlencode(values, quote_via=quote, safe=":/")
        return f"{urlsplit(self.root).path}{path}" + (f"?{query}" if query else "")

    def locate(self, link: str) -> str:
        """Return a link of `page` with scheme and host."""
        scheme, _, rest = self.root.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}{link}" if link else ""

    def shorten(self, url: str) -> str:
        """Return a URL below the root as a link from the host's root, the reverse of `locate`."""
        return urlsplit(self.root).path + url.removeprefix(self.root)

    def record(self, identifier: str) -> str:
        """Return the link to a record's page."""
        if identifier == quote(identifier, safe=IN_PATH):
            return self.page(f"/record/{identifier}")
        return self.page("/record", id=identifier)

    def request(self, verb: str, /, **arguments: str) -> str:
        """Return the URL of an OAI-PMH request."""
        query = urlencode({"verb": verb, **arguments}, quote_via=quote, safe=":")
        return f"{self.oai}?{query}"

    def answer(self, verb: str, /, **arguments: str) -> str:
        """Return the link to the page that shows the answer to an OAI-PMH request."""
        return self.page("/answer", verb=verb, **arguments)

    def content(self, identifier: str, file: str | None = None) -> str:
        """Return the URL of an item's archived bytes, or of those of one of its files."""
        own = CopyAddresses((f"{self.root}/content/{{identifier}}",))
        query = f"?{urlencode({'file': file}, quote_via=quote, safe=':/')}" if file else ""
        return f"{own.find(identifier)}{query}"

    def replay(self, url: str, date: str | None, modifier: str = "") -> str | None:
        """Return the URL of a page as it was at a date (W3CDTF), None without a date.

        `modifier` is that of what is no page: `im_` is an image without a frame around it.
        """
        place = f"{self.root}/web/{{timestamp}}{modifier}/{{url}}"
        return CopyAddresses((place,)).find("", url, date)


@dataclass(frozen=True, slots=True)
class PageParts(OaiParts):
    """What pages are made of.

    `search` finds captures, `calendar` counts them, and `words` finds items; without them there are
    no such pages. `dumps` reads the index of dumps, and `checks` the reports of checks, the oldest
    first.
    """

    search: CaptureSearch | None = None
    calendar: CaptureCalendar | None = None
    words: Callable[[Manifest, WordQuery, SearchPlace | None, int], SearchPage] | None = None
    dumps: Callable[[], DumpIndex | None] | None = None
    checks: Callable[[], Sequence[CheckReport]] | None = None


@dataclass(frozen=True, slots=True)
class FilterForm:
    """What a reader chose in a list, and the media types to choose from.

    Without types, there is no choice of a status either: what is listed has none.
    """

    chosen: RecordFilter
    types: Sequence[str]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request: the snapshot that it reads, its arguments, and the rest of its path, decoded."""

    parts: PageParts
    call: Call
    address: SiteAddress
    text: Language
    reading: PointerReading
    manifest: Manifest
    arguments: Mapping[str, str]
    names: tuple[str, ...] = ()

    def number(self, name: str, default: int = 0) -> int:
        """Return an argument that is a position or a count. Raises PageError."""
        text = self.arguments.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) <= 18):
            raise PageError(self.text("error.number", name=name))
        return int(text)

    def read_filter(self) -> RecordFilter:
        """Return what the arguments status, type and year ask for. Raises PageError."""
        status, media_type, year = (
            self.arguments.get(name, "").strip() for name in ("status", "type", "year")
        )
        match = re.fullmatch("([1-9])xx|[1-9][0-9]{2}|", status)
        if match is None or not re.fullmatch("([0-9]{4})?", year):
            raise PageError(self.text("filter.invalid"))
        return RecordFilter(match[1] or status, media_type, year)

    def list_types(self) -> Sequence[str]:
        """Return the media types of captures, the most frequent first; "" if it is unknown."""
        figures = self.parts.repository.figures(self.manifest)
        return [row.media_type or "" for row in figures.media_types] if figures else []

    def make_form(self, types: Sequence[str]) -> FilterForm | None:
        """Return the form of a list; None for pages in files, which have no arguments.

        Of the media types `types`, the most frequent first, it has up to 30 to choose from.
        """
        if self.address.is_static:
            return None
        return FilterForm(self.read_filter(), sorted({*types[:_TYPES]} - {""}))

    @property
    def serves_content(self) -> bool:
        """True if archived bytes are served beside the pages."""
        own = self.address.oai == self.address.root + OAI_PATH
        return own and bool(self.parts.configuration["content.serve"])

    def name_set(self, spec: str, name: str | None = None) -> str:
        """Return the name of a set in the reader's language; `name` is that of a template."""
        configured = self.parts.configuration["sets.names"]
        return set_name.name_set(self.text, configured, spec, name)

    def name_collection(self, fields: Mapping[str, Any]) -> str:
        """Return the name of a collection; one that a publish composed is in that language too."""
        spec, name = fields["set_spec"], fields["name"]
        return self.name_set(spec, None if name == oai_name.set_name(spec, {}) else name)

    def find_copy(self, record: PublishedRecord) -> str | None:
        """Return the address of a record's archived copy, if it has one."""
        address, fields, kind = None, record.fields, find_kind(record.kind)
        if record.deleted:
            return None
        copies = self.parts.renderer.copies
        if kind.is_capture:
            address = copies.find(record.identifier, fields.get("url"), fields.get("fetch_date"))
        elif kind.has_files:
            files = copies.find_files(record.identifier, fields["files"], fields["bundle"])
            address = files[0] if len(files) == 1 else None
        own = kind.has_bytes(fields) or (fields.get("bundle") or {}).get("key")
        if address is None and own and self.serves_content:
            address = self.address.content(record.identifier)
        return address

    def find_image(
        self, url: str, date: str | None, type_: str, size: int | None, view: str | None
    ) -> str | None:
        """Return the address of a captured image that is seen at `view`; None if it has none.

        What another replay system shows is none: pages load nothing from other hosts.
        """
        is_own = view is not None and view.startswith(f"{self.address.root}/web/")
        if not is_own or type_ not in IMAGES or (size or 0) > LARGEST_IMAGE:
            return None
        image = self.address.replay(url, date, "im_")
        return image and self.address.shorten(image)

    def find_view(self, record: PublishedRecord) -> str | None:
        """Return where people see a record's copy: a capture in its time, with its images."""
        copy, fields = self.find_copy(record), record.fields
        is_own = copy is not None and copy == self.address.content(record.identifier)
        if self.address.is_static:
            is_own = copy is None and not record.deleted
        if is_own and find_kind(record.kind).is_capture and not fields.get("fetch_method"):
            return self.address.replay(fields["url"], fields.get("fetch_date")) or copy
        return copy


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of a page: the statement that gives it, the names of its columns, and its rows.

    The statement is "" if no published Parquet has the rows. `name` is that of its files
    (functions.site.tables), and `arguments` are those of their address. `more` are those of the
    rows that follow, None at the end.
    """

    name: str
    sql: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page: its template, title, and the template's other variables.

    `links` are its links for machines (RFC 8288), `data` what it says of its subject (JSON-LD).
    """

    template: str
    title: str
    values: Mapping[str, Any]
    status: int = 200
    links: tuple[str, ...] = ()
    data: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
