"""Sheaf's own page around an archived one, and the page for what is not there."""

import html
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from functions.config.configuration import Configuration
from functions.content.capture_row import CaptureRow, capture_url
from functions.content.protocols import SCRIPTS, ContentError
from functions.content.replay.address import STORED, ReplayAddresses
from functions.content.replay.request import PATH, ReplayRequest
from functions.http import http_message
from functions.http.http_message import Reply
from functions.oai.render import check
from functions.oai.render.language import FALLBACK, Language, read_languages
from functions.oai.render.render import Renderer
from functions.snapshot import instant

_MISSING = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="140" height="28" viewBox="0 0 140 28">'
    # In a box of another shape, the ground reaches its edges.
    '<rect x="-4000" y="-4000" width="8000" height="8000" fill="#eceef1"/>'
    '<text x="70" y="18" text-anchor="middle" font-family="sans-serif" font-size="11" '
    'fill="#575d66">{}</text></svg>'
)
"""What stands for an image that is not there."""
_GUARD = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "X-Robots-Tag": "noindex",
}


class BannerPages:
    """Writes the pages in the configured language. Thread-safe."""

    def __init__(self, settings: Configuration) -> None:
        self._settings = settings

    @cached_property
    def _renderer(self) -> Renderer:
        return check.open_formats(self._settings)[1]

    @cached_property
    def _text(self) -> Language:
        languages = read_languages(self._renderer.places)
        return languages.get(self._settings["site.language"], languages[FALLBACK])

    def show(
        self,
        addresses: ReplayAddresses,
        capture: CaptureRow,
        title: str,
        before: CaptureRow | None,
        behind: CaptureRow | None,
        *,
        message: str,
        scripts: str,
        media_type: str,
        headers: Mapping[str, str],
    ) -> Reply:
        """Return the page of a capture, which is shown in a frame unless there is a `message`."""
        url, is_run = capture_url(capture), addresses.pages == SCRIPTS
        other = replace(addresses, pages=PATH if is_run else SCRIPTS).page(capture.stamp, url)
        frame = scripts if is_run else addresses.frame(capture.stamp, url)
        values = {
            "title": title or capture.url,
            "url": capture.url,
            "when": capture.instant,
            "date": instant.to_text(capture.instant),
            "frame": frame if not message else "",
            # As the document of a frame it would fill this, whatever its size.
            "is_drawing": media_type == "image/svg+xml",
            "stored": addresses.resource(capture.stamp, STORED, url),
            "before": before and addresses.page(before.stamp, capture_url(before)),
            "behind": behind and addresses.page(behind.stamp, capture_url(behind)),
            "listing": addresses.listing(ReplayRequest("", "", url)),
            "record": addresses.record(capture.identifier),
            "other": other if scripts else "",
            "is_run": is_run,
            "message": message and self._text(message, type=media_type),
        }
        loaded = f"{addresses.frames}{addresses.pages}/"
        if is_run:
            loaded = f"{loaded}w/ {loaded}{capture.stamp}/; connect-src 'self'"
        return self._write(200, addresses, values, headers, loaded)

    def refuse(
        self,
        addresses: ReplayAddresses,
        request: ReplayRequest,
        error: ContentError,
        *,
        is_framed: bool,
    ) -> Reply:
        """Return the page for what cannot be shown; `is_framed`: without the banner."""
        text = self._text("replay.loop" if error.code == "redirect-loop" else "replay.missing")
        listing = addresses.listing(ReplayRequest("", "", request.url))
        values = {
            "title": text,
            "url": request.url,
            "listing": listing,
            "wider": f"{listing}&match=host" if listing and not is_framed else "",
            "message": text,
            "is_framed": is_framed,
            "day": _show_time(request.stamp),
        }
        return self._write(error.status, addresses, values, {})

    def draw_missing(self, status: int) -> Reply:
        """Return an image that says in words that the wanted one is not there."""
        body = _MISSING.format(html.escape(self._text("replay.image")))
        return Reply(status, "image/svg+xml", body.encode())

    def show_frame(self, addresses: ReplayAddresses, script: str, message: str) -> Reply:
        """Return a page for the frame in which scripts run, with one of Sheaf's own scripts.

        Its policy names the address of frames: no worker is registered at another origin.
        """
        place = f"{addresses.frames}{SCRIPTS}/"
        values = {"t": self._text, "script": f"{place}{script}", "message": self._text(message)}
        body = self._renderer.page("scripts.html", values)
        policy = f"default-src 'none'; script-src {place}; worker-src {place}worker.js; "
        policy += f"style-src 'unsafe-inline'; frame-ancestors {addresses.origin}; "
        guard = {**_GUARD, "Content-Security-Policy": f"{policy}form-action 'none'"}
        return Reply(200, "text/html", body, guard, http_message.document_digest(body))

    def read_script(self, name: str) -> bytes:
        """Return a script of `site/`, from the first folder that has it."""
        paths = (place / "site" / name for place in self._renderer.places)
        return next(path for path in paths if path.is_file()).read_bytes()

    def _write(
        self,
        status: int,
        addresses: ReplayAddresses,
        values: Mapping[str, object],
        headers: Mapping[str, str],
        loaded: str = "'none'",
    ) -> Reply:
        absent = (
            "when",
            "date",
            "day",
            "wider",
            "frame",
            "stored",
            "before",
            "behind",
            "record",
        )
        body = self._renderer.page(
            "replay.html",
            {
                **dict.fromkeys((*absent, "other", "is_run", "is_drawing", "is_framed")),
                **values,
                "t": self._text,
                "root": addresses.base,
                "name": self._settings["repository.name"],
            },
        )
        own = f"style-src 'self'; img-src 'self' {addresses.frames}{PATH}/; script-src 'self'"
        policy = f"default-src 'none'; {own}; frame-src {loaded}; "
        policy += "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
        guard = {**_GUARD, "Content-Security-Policy": policy}
        tag = http_message.document_digest(body) if status == 200 else ""
        return Reply(status, "text/html", body, {**headers, **guard}, tag)


def _show_time(stamp: str) -> str:
    """Return up to 14 digits as a date and a time for readers."""
    day = "-".join(filter(None, (stamp[:4], stamp[4:6], stamp[6:8])))
    return f"{day} {':'.join(filter(None, (stamp[8:10], stamp[10:12], stamp[12:])))}".strip()
