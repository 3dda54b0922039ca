"""Archived pages as files, as a server replays them, and TimeMaps (RFC 7089, section 5).

    web/TIMESTAMP/SHA1.html        a page of Sheaf's own around an archived one
    web/in/TIMESTAMP/SHA1-xx_.EXT  an archived page or style, by its URL; xx_ says for what
    web/in/SHA1.EXT                what needs no other links, as images, by its digest
    web/timemap/link/URL.link      the TimeMap of a URL

URLs have queries, any length, and pages that are folders too, so that SHA-1 names them. Names of
TimeMaps are the URL where it can be a path, because clients ask for it. A reference leads to the
capture that a server would choose, or to a file that says that there is none.

Below `web/in/` a host has to send a policy (builder.serve.routers). Each page there forbids scripts
itself as well.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from urllib.parse import quote, urlsplit

import webencodings

from builder.outputs.site.people import is_name
from builder.outputs.site.site_lists import SiteSnapshot
from functions.content import header_fields, memento, near, neighbours, terms
from functions.content.capture_row import CaptureRow, capture_url, redirect_target
from functions.content.contents import ArchivedContents
from functions.content.handler import Delivery
from functions.content.protocols import ContentError
from functions.content.replay.address import FRAME, PAGE, STORED, TOP, ReplayAddresses
from functions.content.replay.page_bytes import KINDS, LARGEST
from functions.content.replay.replay import Replay, ReplayTask
from functions.content.replay.request import PATH, ReplayRequest
from functions.content.representation import Body
from functions.content.search import CaptureSearch
from functions.http import http_message
from functions.http.http_message import IN_PATH, Call
from functions.site.page import SiteAddress
from functions.snapshot.site_names import REPLAYED, TIMEMAPS, TYPES, digest_name
from functions.store.catalog import Cache

_INNER = REPLAYED.removesuffix("/")
_PAGES = ("text/html", "application/xhtml+xml")
_ACTIVE = ("xml", "xsd", "json", "atom", "jsonld", "js", "link", "csv")
_EXTENSIONS = {type_: name for name, type_ in TYPES.items() if name not in _ACTIVE}
"""Extensions by media type, without those that could be a page, or are no archived ones."""
_SAME = {
    "image/x-icon": "image/vnd.microsoft.icon",
    **dict.fromkeys(("application/font-woff", "application/x-font-woff"), "font/woff"),
    **dict.fromkeys(("application/x-font-ttf", "application/font-sfnt"), "font/ttf"),
}
"""Other names of media types."""
_CALM = (
    b"<meta http-equiv=\"Content-Security-Policy\" content=\"script-src 'none'; object-src 'none'; "
    b"base-uri 'none'; form-action 'none'\">"
)
_DOCTYPE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|<!--.*?-->|<\?[^>]*>)*<!doctype[^>]*>", re.I | re.S)
_TEXTS = ("text/css", "text/plain", *_PAGES)
_DECLARED = re.compile(rb"(^<\?xml[^>]*?encoding=)(?:\"[^\"]*\"|'[^']*')")
_MISSING = {
    "im_": f"{_INNER}/missing.svg",
    TOP: f"{_INNER}/missing.html",
    PAGE: f"{PATH}/missing.html",
}
_NOTHING = f"{_INNER}/missing.txt"
_MOST = 100_000
"""Mementos in a TimeMap, and links that are remembered."""


@dataclass(frozen=True, slots=True)
class FileAddresses(ReplayAddresses):
    """Addresses of replay in files: of each it is found out which file it is."""

    archive: "ArchivedPages" = field(kw_only=True)

    def page(self, stamp: str, url: str) -> str:
        """Return the address of a page with its banner."""
        return self.archive.find(stamp, PAGE, url)

    def resource(self, stamp: str, modifier: str, url: str) -> str:
        """Return the address of what is archived; the bytes as archived have none."""
        return "" if modifier == STORED else self.archive.find(stamp, modifier, url)

    def frame(self, stamp: str, url: str) -> str:
        """Return the address of the page itself, without its banner."""
        return self.archive.find(stamp, TOP, url)

    def listing(self, request: ReplayRequest) -> str:
        """Return nothing: there is no list of captures."""
        return ""

    def record(self, identifier: str) -> str:
        """Return the address of the page of a record."""
        return self.archive.address.record(identifier)


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A capture as it is shown for a purpose."""

    modifier: str
    capture: CaptureRow


@dataclass
class ArchivedPages:
    """Implements ArchiveFiles: the captures that pages lead to, by the path of their files."""

    contents: ArchivedContents
    snapshot: SiteSnapshot
    address: SiteAddress
    files: dict[str, ArchivedFile] = field(default_factory=dict)
    maps: dict[str, str] = field(default_factory=dict)
    _count: int = 0
    _mapped: int = 0
    _links: Cache = field(default_factory=lambda: Cache(_MOST))

    def find(self, stamp: str, modifier: str, url: str) -> str:
        """Return the link to what is nearest to a time, or to what says that there is nothing."""
        key = (stamp, modifier, url)  # pages of a site have most links in common
        link: str = self._links.get(key, lambda: self._find(*key))
        return link

    def _find(self, stamp: str, modifier: str, url: str) -> str:
        prefix = urlsplit(self.address.root).path
        capture, media_type = self._find_capture(stamp, url), "text/html"
        if capture is not None and modifier != PAGE:
            task = self._task(ArchivedFile(modifier, capture))
            try:
                media_type = task.find_shown_type(task.read_content())
                if media_type in _PAGES and modifier not in (TOP, FRAME):
                    capture = None  # a page is no image
            except ContentError:  # it cannot be read
                capture = None
        if capture is None:
            other = TOP if modifier == FRAME else modifier
            return prefix + _MISSING.get(other, _NOTHING)
        name = digest_name(capture_url(capture))
        place = f"{PATH}/{capture.stamp}/{name}.html"
        if modifier != PAGE:
            extension = _EXTENSIONS.get(_SAME.get(media_type, media_type), "bin")
            place = f"{_INNER}/{capture.stamp}/{name}-{modifier}.{extension}"
            if media_type not in KINDS and capture.digest:  # the same whenever it was captured
                place = f"{_INNER}/{digest_name(capture.digest)}.{extension}"
        self.files.setdefault(place, ArchivedFile(modifier, capture))
        return prefix + place

    def list_files(self) -> Iterator[tuple[str, bytes]]:
        """Yield what pages lead to since the last call, with what that leads to in turn."""
        if not self._count:
            yield _MISSING[TOP], self._refuse(is_framed=True)
            yield _MISSING[PAGE], self._refuse(is_framed=False)
            yield _MISSING["im_"], self._replay.banners.draw_missing(404).body
            yield _NOTHING, b""
        while self._count < len(self.files) or self._mapped < len(self.maps):
            files, maps = [*self.files.items()][self._count :], [*self.maps.items()][self._mapped :]
            self._count, self._mapped = self._count + len(files), self._mapped + len(maps)
            for place, file in files:
                body = self._write(file)
                yield place, self._refuse(is_framed=True) if body is None else body
            for place, url in maps:
                yield place, self._write_map(place, url)

    def _refuse(self, *, is_framed: bool) -> bytes:
        error, request = ContentError("unknown", "it is not here"), ReplayRequest("", "", "")
        banners = self._replay.banners
        return banners.refuse(self._addresses, request, error, is_framed=is_framed).body

    @cached_property
    def _search(self) -> CaptureSearch:
        repository = self.snapshot.repository
        return CaptureSearch(repository.catalogue, repository.files)

    @cached_property
    def _replay(self) -> Replay:
        repository, settings = self.snapshot.repository, self.snapshot.configuration
        return Replay(
            repository, self.contents, self._search, settings, http_message.compress, None
        )

    @cached_property
    def _addresses(self) -> FileAddresses:
        return FileAddresses(self.address.root, self.address.root, archive=self)

    def _find_capture(self, stamp: str, url: str) -> CaptureRow | None:
        """Return the capture of a URL near a time, behind its redirects."""
        request, manifest = ReplayRequest(stamp, PAGE, url), self.snapshot.manifest
        captures = near.find_near(self._search, manifest, request.key, request.moment)
        try:
            best = captures.best[0] if captures.best else None
            if best is not None and redirect_target(best):
                best, _ = near.follow_redirects(self._search, manifest, best)
            return best
        except ContentError:
            return None

    def _task(self, file: ArchivedFile) -> ReplayTask:
        capture, manifest = file.capture, self.snapshot.manifest
        request = ReplayRequest(capture.stamp, file.modifier, capture_url(capture))
        call = Call("GET", self.address.root, PATH)
        captures = near.find_near(self._search, manifest, request.key, int(capture.stamp))
        captures = replace(captures, best=[capture])
        return ReplayTask(self._replay, call, manifest, request, self._addresses, captures)

    def _write(self, file: ArchivedFile, *, is_next: bool = False) -> bytes | None:
        """Return what is shown of a capture; None if it cannot be read, or leads on and on."""
        task = self._task(file)
        if file.modifier == PAGE:
            url = capture_url(file.capture)
            self.maps.setdefault(place := name_map(url), url)
            page = task.show_banner(file.capture).body.replace(b' href=""', b"")
            link = f'<link rel="timemap" type="{memento.LINK}" href="{self._link(place)}">\n</head>'
            return page.replace(b"</head>", link.encode(), 1)
        delivery = Delivery(self.contents, self.snapshot.configuration)
        try:
            response = task.show(lambda shown: delivery.answer(task.call, shown, lambda *_: None))
            location = response.headers.get("Location", "")
            other = self.files.get(location.removeprefix(urlsplit(self.address.root).path))
            if location:
                return None if is_next or other is None else self._write(other, is_next=True)
            body = _read(response.body)
        except ContentError:
            return None
        return calm(body, response.headers.get("Content-Type", ""))

    def _link(self, place: str) -> str:
        return urlsplit(self.address.root).path + quote(place, safe=f"/{IN_PATH}")

    def _write_map(self, place: str, url: str) -> bytes:
        """Return a TimeMap: it names no TimeGate, because files choose nothing."""
        span = terms.exact_range(ReplayRequest("", PAGE, url).key)
        captures = self._search.captures(self.snapshot.manifest, *span, None, _MOST, since=1)
        lines = [
            f'<{header_fields.uri(url)}>; rel="original"',
            f'<{self.address.locate(self._link(place))}>; rel="self"; type="{memento.LINK}"',
        ]
        for capture in captures:
            page = self.address.locate(self.find(capture.stamp, PAGE, capture_url(capture)))
            lines.append(f'<{page}>; rel="memento"; datetime="{neighbours.date(capture)}"')
        return (",\n".join(lines) + "\n").encode()


def name_map(url: str) -> str:
    """Return the path of the file of a TimeMap: the URL, or its SHA-1 where that is no path.

    A URL with `/` at its end is `index`. Slashes that follow each other are one, as for servers.
    """
    parts = re.sub("//+", "/", url).split("/")
    is_plain = "?" not in url and "#" not in url and "%" not in url and parts[-1] != "index"
    parts[-1] = parts[-1] or "index"
    name = "/".join(parts)
    if not is_plain or not is_name(name, ".link"):
        name = f"sha1-{digest_name(url)}"
    return f"{TIMEMAPS}{name}.link"


def calm(body: bytes, content_type: str) -> bytes:
    """Return a text in UTF-8 with its mark, of a page also with a policy that forbids scripts.

    The mark tells the encoding whatever a host says; other types are unchanged.
    """
    essence, _, charset = content_type.partition("; charset=")
    encoding = webencodings.lookup(charset)
    if essence == "text/html":  # whatever it says, scripts are forbidden
        encoding = encoding or webencodings.UTF8
    if essence not in _TEXTS or encoding is None:
        return body
    text = encoding.codec_info.decode(body, "replace")[0].removeprefix("\ufeff")
    data = text.encode("utf-8", "replace")
    if essence == "application/xhtml+xml":
        data = _DECLARED.sub(rb"\1'utf-8'", data, count=1)
    if essence == "text/html":
        doctype = _DOCTYPE.match(data)
        at = doctype.end() if doctype else 0
        data = data[:at] + _CALM + data[at:]
    return b"\xef\xbb\xbf" + data


def _read(body: bytes | Iterable[bytes]) -> bytes:
    """Return a body. Raises ContentError if it is too large for a file."""
    if isinstance(body, bytes):
        return body
    pieces, size = list[bytes](), 0
    try:
        for piece in body:
            size += len(piece)
            if size > LARGEST:
                raise ContentError("unknown", "it is too large")
            pieces.append(piece)
    finally:
        if isinstance(body, Body):
            body.close()
    return b"".join(pieces)
