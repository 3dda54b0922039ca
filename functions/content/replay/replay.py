"""Replay: pages as they were, whose images, styles, frames and links lead to the archive.

No archived script runs. A page of Sheaf's own has a banner and shows the archived page in a frame
that is a sandbox; its address is `/web/TIMESTAMP/URL`. What was captured nearest to the timestamp
is the answer (RFC 7089); its headers tell its own time.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from functions.config.configuration import Configuration
from functions.content import header_fields, memento, near, neighbours
from functions.content.capture_row import CaptureRow, capture_url, redirect_target
from functions.content.contents import ArchivedContents
from functions.content.near import NearCaptures
from functions.content.protocols import Content, ContentError
from functions.content.replay import references
from functions.content.replay.address import (
    FRAME,
    PAGE,
    STORED,
    TOP,
    ReplayAddresses,
    read_replay,
)
from functions.content.replay.banner import BannerPages
from functions.content.replay.page_bytes import KINDS, LARGEST, PageBytes, size_drawing
from functions.content.replay.references import LINK, REFRESH
from functions.content.replay.request import PATH, ReplayRequest
from functions.content.representation import ArgumentError, Representation
from functions.content.search import CaptureSearch
from functions.content.terms import NoScope
from functions.http import http_message
from functions.http.http_message import Call, HttpResponse, Reply
from functions.reading.repository import Repository
from functions.snapshot import surt
from functions.snapshot.manifest import Manifest

_FRAMES = (TOP, FRAME, "mp_")
_IMAGES = ("im_", "oe_")
_WANTED = {"image": "im_", "style": "cs_", "script": "js_"}
"""Modifiers by what a browser wants a page for (Fetch Metadata, Sec-Fetch-Dest)."""
_EMPTY = {"cs_": "text/css", "js_": "text/javascript"}
"""The type of the empty answer for what is not there."""
_STATUSES = (403, 404, 410, 451)
"""Archived errors that are answered as they were; others would have clients or proxies try again,
and are 404."""
_SHOWN = header_fields.INLINE | KINDS.keys()
"""Media types that a frame shows."""
_GENERAL = (header_fields.UNKNOWN_TYPE, "text/xml", "application/xml")
"""Media types that say less than what was detected."""
_LOADED = re.compile(r"image/|audio/|video/|font/|application/(?:x-)?font-|application/vnd.ms-font")
_SCRIPT = re.compile(r"(?:java|ecma|live|j)script")
_SOURCE = re.compile(
    r"text/(?!html$).*|application/(?:json|xml|(?:x-)?yaml|sql)|"
    r"(?!application/xhtml|image/svg).*\+(?:json|xml)"
)
"""Text that a frame shows as it is: browsers would save it, or show XML without its tags."""
_HAS_FRAMES = re.compile(rb"<i?frame", re.IGNORECASE)
_OF_STORED = ("Accept-Ranges", "Content-Disposition", "Repr-Digest", "ETag", "Link")

Deliver = Callable[[Representation], Reply | HttpResponse]
"""Answers with a content as it is archived, whole or in part."""


@dataclass(frozen=True)
class Replay:
    """Answers requests below PATH. An answer has at most `largest` bytes (None: no limit)."""

    repository: Repository
    contents: ArchivedContents
    search: CaptureSearch
    settings: Configuration
    compress: Callable[[bytes], bytes]
    largest: int | None
    find_scripts: Callable[[str, str], str] = lambda stamp, url: ""
    """Returns the address of the frame in which a page runs its scripts, or ""."""

    @cached_property
    def banners(self) -> BannerPages:
        """The pages around archived ones."""
        return BannerPages(self.settings)

    def answer(
        self, call: Call, manifest: Manifest, deliver: Deliver, pages: str = PATH
    ) -> Reply | HttpResponse:
        """Return the answer to a request; `call.base` is the base URL of the paths here.

        Below `pages` are only pages, unless it is PATH. Raises ArgumentError, ContentError and
        StoreError.
        """
        request = read_replay(call)
        addresses = replace(self.at(call), pages=pages)
        if pages != PATH and request.modifier != PAGE:
            raise ArgumentError(f"Ask for {pages}/TIMESTAMP/URL.")
        if request.is_list:
            return redirect_to(addresses.listing(request))
        is_gate = request.modifier == PAGE and not request.stamp
        if is_gate and (wanted := call.headers.get("accept-datetime")) is not None:
            try:
                moment = memento.read_moment(wanted)
            except NoScope as error:
                raise ArgumentError(f"{error}.") from error
        else:
            moment = request.moment
        captures = near.find_near(self.search, manifest, request.key, moment)
        task = ReplayTask(self, call, manifest, request, addresses, captures)
        try:
            if not captures.best:
                raise ContentError("unknown", f"{request.url} is not in this archive")
            if request.modifier == STORED:
                return task.send_stored(deliver)
            if (redirect := task.redirect()) is not None:
                return task.lead_to_memento(redirect) if is_gate else redirect
            if request.modifier == PAGE:
                return task.show_banner(captures.best[0])
            return task.show(deliver)
        except ContentError as error:
            if request.modifier == STORED or error.status >= 500:
                raise
            return task.refuse(error)

    def at(self, call: Call) -> ReplayAddresses:
        """Return where pages and frames are for a call."""
        frames = self.settings["content.replay_address"].rstrip("/")
        return ReplayAddresses(call.base, frames or call.base)


@dataclass(frozen=True)
class ReplayTask:
    """One request, and the captures near its time."""

    replay: Replay
    call: Call
    manifest: Manifest
    request: ReplayRequest
    addresses: ReplayAddresses
    captures: NearCaptures

    def is_exact(self, content: Content) -> bool:
        """Return whether the request has the content's own time, so that it stays the answer."""
        stamp = content.capture and content.capture.stamp
        return self.captures.is_exact and stamp == self.request.stamp

    def read_content(self) -> Content:
        """Return the best capture that can be read. Raises ContentError, StoreError."""
        failures: list[ContentError] = []
        for capture in self.captures.best:
            try:
                return self.replay.contents.of_capture(self.manifest, capture)
            except ContentError as error:
                failures.append(error)
        raise failures[0]

    def redirect(self) -> Reply | None:
        """Return the redirect to a page's exact time, or to where an archived one leads."""
        capture, request = self.captures.best[0], self.request
        if redirect_target(capture):
            end, fragment = near.follow_redirects(self.replay.search, self.manifest, capture)
            url, mark = capture_url(end), f"#{header_fields.uri(fragment)}" if fragment else ""
            if request.modifier == PAGE:
                return redirect_to(self.addresses.page(end.stamp, url) + mark)
            return self._redirect(end.stamp, url, mark)
        is_own = self.captures.is_exact and request.stamp == capture.stamp
        if request.modifier == PAGE and not is_own:
            return redirect_to(self.addresses.page(capture.stamp, capture_url(capture)))
        return None

    def send_stored(self, deliver: Deliver) -> Reply | HttpResponse:
        """Return the bytes of a capture as they are archived."""
        content = self.read_content()
        response = deliver(Representation(content, False, fixed=self.is_exact(content)))
        if isinstance(response, Reply) or response.status != 200 or content.capture is None:
            return response
        return replace(response, headers=self._link(response.headers, content.capture))

    def lead_to_memento(self, redirect: Reply) -> Reply:
        """Return a redirect as the answer of a TimeGate (RFC 7089, section 4.1)."""
        links = header_fields.memento_headers(self.addresses.base, self.request.url, None)
        headers = {**redirect.headers, **links, **memento.VARIED}
        return replace(redirect, headers=self._link(headers, self.captures.best[0]))

    def _link(self, headers: Mapping[str, str], capture: CaptureRow) -> Mapping[str, str]:
        search = self.replay.search
        return neighbours.add_links(headers, self.call, search, self.manifest, capture)

    def _redirect(self, stamp: str, url: str, mark: str = "") -> Reply:
        """Return the redirect of a resource, which a page in its sandbox may follow."""
        location = self.addresses.resource(stamp, self.request.modifier, url) + mark
        reply = redirect_to(location)
        return replace(reply, headers={**reply.headers, **self._guard()})

    def show_banner(self, capture: CaptureRow) -> Reply:
        """Return Sheaf's own page around a capture."""
        record = self.replay.repository.record(self.manifest, capture.identifier, fields=("title",))
        title = "" if record is None else record.fields.get("title") or ""
        media_type = self._find_type(capture.mime or capture.detected or "", capture.detected)
        is_shown = media_type in _SHOWN or media_type.startswith("image/")
        before, behind = self.captures.neighbours(capture)
        return self.replay.banners.show(
            self.addresses,
            capture,
            title,
            before,
            behind,
            message="" if is_shown else "replay.file",
            scripts=self.replay.find_scripts(capture.stamp, capture_url(capture)),
            media_type=media_type,
            headers=self._memento(capture),
        )

    def refuse(self, error: ContentError) -> Reply:
        """Return the page that says why there is nothing to show."""
        banners, modifier = self.replay.banners, self.request.modifier
        reply = Reply(error.status, "text/plain", f"{error}.\n".encode("utf-8", "replace"))
        guard = self._guard()
        is_page = modifier in (PAGE, *_FRAMES)
        if is_page:
            modifier = _WANTED.get(self.call.headers.get("sec-fetch-dest", ""), modifier)
        if modifier == "im_":
            reply = banners.draw_missing(error.status)
        elif modifier in _EMPTY:
            reply = Reply(error.status, _EMPTY[modifier], b"")
        elif is_page:
            is_framed = modifier != PAGE
            reply = banners.refuse(self.addresses, self.request, error, is_framed=is_framed)
            guard = guard if is_framed else reply.headers
        return replace(reply, headers={**guard, "X-Archive-Error": error.code})

    def show(self, deliver: Deliver) -> Reply | HttpResponse:
        """Return a capture as a page shows it: rewritten, or as it is archived."""
        content = self.read_content()
        assert content.capture is not None
        media_type = self.find_shown_type(content)
        form = KINDS.get(media_type)
        shown = Representation(content, False, fixed=self.is_exact(content))
        is_image, status = media_type.startswith("image/"), content.status or 200
        if self.request.modifier == "im_" and status >= 400 and not is_image:
            raise ContentError("unknown", f"{content.url} was answered with {status}")
        if form is not None and self.request.modifier not in _IMAGES:
            rewritten = self._rewrite(shown, media_type, form)
            if rewritten is not None:
                return rewritten
        response = deliver(shown)
        if isinstance(response, Reply):
            return response
        headers = {**response.headers, **self._memento(content.capture), **self._guard()}
        if response.status in (200, 206):
            archived = header_fields.media_type(content.media_type)
            essence, _, charset = archived.partition("; ")
            if essence != media_type:
                text = f"text/plain; {charset or 'charset=utf-8'}"
                archived = text if media_type == "text/plain" else media_type
            headers["Content-Type"] = archived
            if form is not None and not is_image:
                # The links of a page that is too large to be rewritten would leave the archive.
                saved = header_fields.disposition(header_fields.UNKNOWN_TYPE, shown.file_name)
                headers["Content-Disposition"] = saved
            elif media_type in _SHOWN or _LOADED.match(media_type):
                headers.pop("Content-Disposition", None)
        status = response.status
        return replace(
            response, headers=headers, status=_status(content) if status == 200 else status
        )

    def _rewrite(self, shown: Representation, media_type: str, form: str) -> HttpResponse | None:
        """Return a page or a style sheet with its references replaced; None if it is too large."""
        content = shown.content
        assert content.capture is not None
        with self.replay.contents.open_content(content) as source:
            data = source.read(LARGEST + 1)
        if len(data) > LARGEST:
            return None
        page = PageBytes.of(data, content.url, form, content.media_type)
        stamp = content.capture.stamp
        body, following = self._replace_references(page, stamp)
        if media_type == "image/svg+xml" and self.request.modifier == TOP:
            body = size_drawing(body)
        if following and self.request.modifier in _FRAMES:
            # A sandbox lets no page lead on by itself.
            key = surt.of(following.encode("utf-8", "surrogateescape"))
            search = self.replay.search
            if near.find_near(search, self.manifest, key, int(stamp)).best:
                return http_message.write(self._redirect(stamp, following), self.call)
        headers = shown.headers(self.call.base, self.replay.settings["serve.cache_seconds"])
        headers = {n: text for n, text in headers.items() if n not in _OF_STORED}
        headers |= {**self._memento(content.capture), **self._guard()}
        headers |= {"Vary": "Accept-Encoding", **http_message.CORS}
        tag = hashlib.sha256(body).hexdigest()[:32]
        headers["Content-Type"] = f"{media_type}; charset={page.encoding}"
        is_packed = self.call.wants_gzip(len(body))
        headers["ETag"] = f'W/"{tag}{"-gzip" if is_packed else ""}"'
        if http_message.is_held(self.call.headers, headers["ETag"]):
            return HttpResponse(304, headers)
        if is_packed:
            body = self.replay.compress(body)
            headers["Content-Encoding"] = "gzip"
        if self.replay.largest is not None and len(body) > self.replay.largest:
            return None
        headers["Content-Length"] = str(len(body))
        sent = b"" if self.call.method == "HEAD" else body
        return HttpResponse(_status(content), headers, sent)

    def _replace_references(self, page: PageBytes, stamp: str) -> tuple[bytes, str]:
        """Return the page, and the URL of the page that replaces it at once, or ""."""
        own, following = page.url.partition("#")[0], ""
        is_top = self.request.modifier != FRAME
        has_frames = _HAS_FRAMES.search(page.data) is not None

        def lead(forms: Iterator[str], mark: str, role: str, written: str) -> str:
            nonlocal following
            url = next(forms)
            if role == REFRESH and url != own:
                following = following or url
            if mark and url == own and role in (LINK, references.FRAME):
                return mark
            return self.addresses.reference(stamp, role, url) + mark

        def aim(target: str) -> str:
            """Return the target of a link, so that the banner follows the page."""
            word = target.lower()
            if word in ("", "_self"):
                return "_top" if is_top else ""
            if word in ("_top", "_parent"):
                return "_top"
            if has_frames and not word.startswith("_"):
                return target
            # A frame in a sandbox cannot lead another frame on, so its page opens alone.
            return "_blank" if is_top or word.startswith("_") else "_top"

        body = page.rewrite(lead, aim)
        assert body is not None  # with `aim`, no encoding forbids it
        return body, following

    def find_shown_type(self, content: Content) -> str:
        """Return the media type by which a browser shows what was read, without parameters."""
        payload = content.original or content.capture
        return self._find_type(content.media_type, payload.detected if payload else None)

    def _find_type(self, archived: str, detected: str | None) -> str:
        """Return the media type by which a browser shows a content, without parameters."""
        essence, modifier = (
            header_fields.media_type(archived).partition(";")[0],
            self.request.modifier,
        )
        is_image = modifier in _IMAGES and (detected or "").startswith("image/")
        if detected and (essence in _GENERAL or is_image):
            essence = header_fields.media_type(detected).partition(";")[0]
        if modifier == "cs_" and essence not in KINDS:
            return "text/css"
        is_page = modifier in (PAGE, *_FRAMES)
        is_text = _SCRIPT.search(essence) or (is_page and _SOURCE.fullmatch(essence))
        return "text/plain" if is_text else essence

    def _guard(self) -> Mapping[str, str]:
        parent = self.addresses.origin if self.request.modifier == TOP else ""
        return header_fields.replay_guard(f"{self.addresses.frames}{PATH}/", parent)

    def _memento(self, capture: CaptureRow) -> Mapping[str, str]:
        """Return the headers that say which capture this is, of a page also its neighbours."""
        base, url = self.addresses.base, capture_url(capture)
        headers = header_fields.memento_headers(base, url, capture.instant)
        modifier = self.request.modifier
        own = (
            self.addresses.page(capture.stamp, url)
            if modifier == PAGE
            else self.addresses.resource(capture.stamp, modifier, url)
        )
        if "Link" not in headers:
            return headers
        located = {**headers, "Content-Location": own}
        return self._link(located, capture) if modifier in (PAGE, TOP) else located


def _status(content: Content) -> int:
    status = content.status or 200
    if status < 400:
        return 200
    return status if status in _STATUSES else 404


def redirect_to(location: str) -> Reply:
    """Return the redirect to an address."""
    return Reply(302, "text/plain", f"{location}\n".encode(), {"Location": location})
