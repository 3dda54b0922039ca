"""Replay with scripts, by the service worker of ReplayWeb.page where the operator installed it.

Archived scripts run, so they are on an origin of their own: `content.replay_address`, which is not
that of `repository.base_url`. There is the page with the banner, as of replay without scripts; its
frame is a sandbox. Policies let neither the worker nor an archived page ask other hosts.
The worker asks `H/URL` for a WARC record with its HTTP head, and `A/URL` for the payload; it names
URLs without their scheme, escaped as a whole. What is nearest to the TIMESTAMP is the answer.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from functions.config.configuration import Configuration
from functions.content import header_fields
from functions.content.protocols import REPLAY, SCRIPTS, Content, ContentError
from functions.content.replay.address import STORED, read_replay
from functions.content.replay.replay import Deliver, Replay, redirect_to
from functions.content.representation import Representation
from functions.http import http_message
from functions.http.http_message import Call, HttpResponse, Reply
from functions.snapshot import instant, layout
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Reader

_ASKED = re.compile(r"/([0-9]{1,14})/([HA])/(.+)", re.DOTALL)
_LOADER = re.compile(r"/[0-9]{1,14}/")
_IN_FRAME = re.compile(r"/w/[0-9]{1,14}(?=/)")
_OWN = ("/worker.js", "/loader.js", "/archived.js")
"""Scripts of Sheaf's own; browsers register the first, which reads the installed one."""
_OMITTED = {"content-encoding", "transfer-encoding", "content-length", "connection", "set-cookie"}
"""Archived headers that are not passed on: the payload comes decoded, and no cookie is set."""
_WORKER = {
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'; script-src 'self'",
    "X-Content-Type-Options": "nosniff",
}
"""The worker asks this host alone, whatever an archived script tells it."""


def own_address(settings: Configuration) -> str:
    """Return the address below which archived scripts may run; "" without an origin of its own."""
    address, base = settings["content.replay_address"].rstrip("/"), settings["repository.base_url"]
    return address if address and base and _origin(address) != _origin(base) else ""


@dataclass(frozen=True)
class ScriptReplay:
    """Answers requests below SCRIPTS with the files of `store`, and as `replay` finds captures."""

    replay: Replay
    store: Reader

    @cached_property
    def _first_byte(self) -> bytes:
        """Of the worker, which is installed last: once read, no request reads it again."""
        with self.store.open(layout.REPLAY_FILE) as worker:
            return worker.read(1)

    def frame_address(self, stamp: str, url: str) -> str:
        """Return the address at which a page runs its scripts; "" if none. Raises StoreError."""
        address = own_address(self.replay.settings)
        try:
            is_there = address and self._first_byte
        except MissingObject:
            return ""
        return f"{address}{SCRIPTS}/{stamp}/#{header_fields.uri(url)}" if is_there else ""

    def answer(
        self, call: Call, host: str, manifest: Manifest, deliver: Deliver
    ) -> Reply | HttpResponse:
        """Return the answer; `host` is the base URL by which the request came.

        At that of `content.replay_address` it is what the frame of a page loads, and elsewhere the
        page with its banner. Raises ArgumentError, ContentError and StoreError.
        """
        settings, path = self.replay.settings, call.path.removeprefix(SCRIPTS)
        own = own_address(settings)
        if not own:
            reason = "archived scripts run only below content.replay_address, which is another "
            raise ContentError("unknown", f"{reason}host than that of repository.base_url")
        try:
            data = self.store.read(layout.REPLAY_FILE) if path == "/sw.js" else self._first_byte
        except MissingObject as error:
            raise ContentError("unknown", "`sheaf replay install` was not run here") from error
        if _host(host) != _host(own):
            # Even an installed worker must not run where Sheaf's own pages are, nor where a proxy
            # does not say what host was asked for.
            page = replace(call, path=f"{REPLAY}{path}")
            return self.replay.answer(page, manifest, deliver, SCRIPTS)
        banners, addresses = self.replay.banners, self.replay.at(call)
        if path in _OWN:
            data = banners.read_script(path[1:])
        if path in ("/sw.js", *_OWN):
            return Reply(200, "text/javascript", data, _WORKER, http_message.document_digest(data))
        if path == "/missing":
            script = "static/proxy/archived.js"  # as the worker has it
            return banners.show_frame(addresses, script, "replay.missing")
        if _LOADER.fullmatch(path):
            return banners.show_frame(addresses, "loader.js", "replay.refused")
        if (match := _ASKED.fullmatch(path)) is None:
            # What the frame shows is opened in a window of its own.
            request = read_replay(replace(call, path=_IN_FRAME.sub("", path)))
            pages = replace(addresses, pages=SCRIPTS)
            return redirect_to(pages.page(request.stamp, request.url))
        stamp, part, rest = match.groups()
        url = unquote(f"{rest}?{call.query}" if call.query else rest)
        stored = replace(call, path=f"{REPLAY}/{stamp}{STORED}/{url}", query="")
        if part == "H":
            return self.replay.answer(stored, manifest, _deliver_head)
        response = self.replay.answer(stored, manifest, deliver)
        if isinstance(response, Reply) or "Content-Type" not in response.headers:
            return response
        # The head says the type. As this one no script becomes a worker, also from a cache.
        typed = {**response.headers, "Content-Type": header_fields.UNKNOWN_TYPE}
        return replace(response, headers=typed)


def _deliver_head(shown: Representation) -> Reply:
    return Reply(200, "application/warc", _write_head(shown.content))


def _write_head(content: Content) -> bytes:
    """Return a WARC record with the head of the archived response (WARC 1.1, section 6.3)."""
    status = content.status or 200
    reason = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
    fields = [(n, v) for n, v in content.headers if n.lower() not in _OMITTED]
    if not any(name.lower() == "content-type" for name, _ in fields):
        fields.append(("Content-Type", content.media_type or header_fields.UNKNOWN_TYPE))
    if content.size == 0:
        fields.append(("Content-Length", "0"))  # the worker then asks for no payload
    head = _join([f"HTTP/1.1 {status} {reason}", *(f"{n}: {v}" for n, v in fields)])
    assert content.capture is not None
    lines = [
        "WARC/1.1",
        "WARC-Type: response",
        f"WARC-Target-URI: {header_fields.uri(content.url)}",
        f"WARC-Date: {instant.to_text(content.capture.instant)}",
        "Content-Type: application/http; msgtype=response",
        f"Content-Length: {len(head)}",
    ]
    return _join(lines) + head + b"\r\n\r\n"


def _join(lines: list[str]) -> bytes:
    clean = "".join(f"{header_fields.CONTROL.sub(' ', line)}\r\n" for line in lines)
    return f"{clean}\r\n".encode("utf-8", "replace")


def _origin(address: str) -> tuple[str, str, int]:
    """Return what browsers compare: 443 and no port are the same for https."""
    parts = urlsplit(address)
    usual = 443 if parts.scheme == "https" else 80
    return parts.scheme, parts.hostname or "", parts.port or usual


def _host(address: str) -> tuple[str, int | None]:
    """Return what also a server behind a proxy for https knows of its address."""
    parts = urlsplit(address)
    return parts.hostname or "", None if parts.port in (80, 443) else parts.port
