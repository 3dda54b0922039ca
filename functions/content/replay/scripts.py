"""Replay with scripts, by the service worker of ReplayWeb.page where the operator installed it.

Archived scripts run, so all of it is on an origin of its own: `content.replay_address`, which is
not that of `repository.base_url`. Its policies let neither the worker nor a page ask other hosts.
The worker asks `H/URL` for a WARC record with its HTTP head, and `A/URL` for the payload; it names
URLs without their scheme, escaped as a whole. What is nearest to the TIMESTAMP is the answer.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from functions.config.configuration import Configuration
from functions.content import header_fields, near, terms
from functions.content.protocols import SCRIPTS, Content, ContentError
from functions.content.replay.address import ReplayRequest
from functions.content.replay.replay import Deliver, Replay, ReplayTask
from functions.content.representation import ArgumentError, Representation
from functions.content.terms import NoScope
from functions.http import http_message
from functions.http.http_message import Call, HttpResponse, Reply
from functions.snapshot import instant, layout
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Reader

_PATH = re.compile(r"/([0-9]{1,14})/(?:([HA])/(.+))?", re.DOTALL)
_OMITTED = {"content-encoding", "transfer-encoding", "content-length", "connection", "set-cookie"}
"""Archived headers that are not passed on: the payload comes decoded, and no cookie is set."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_WORKER = {
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'",
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
        with self.store.open(layout.REPLAY_FILES[0]) as worker:
            return worker.read(1)

    def page_address(self, stamp: str, url: str) -> str:
        """Return the address of a page with its scripts; "" where none run. Raises StoreError."""
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

        Raises ArgumentError, ContentError and StoreError.
        """
        own = own_address(self.replay.settings)
        if not own or _host(host) != _host(own):
            # Even an installed worker must not run where Sheaf's own pages are, nor where a proxy
            # does not say what host was asked for.
            reason = "archived scripts run only below content.replay_address, which is another "
            raise ContentError("unknown", f"{reason}host than that of repository.base_url")
        path = call.path.removeprefix(SCRIPTS)
        key = f"{layout.REPLAY}{path[1:]}"
        try:
            data = self.store.read(key) if key in layout.REPLAY_FILES else self._first_byte
        except MissingObject as error:
            raise ContentError("unknown", "`sheaf replay install` was not run here") from error
        if path == "/archived.js":
            data = self.replay.banners.read_script(path[1:])
        elif key not in layout.REPLAY_FILES:
            return self._answer_page(call, path, manifest, deliver)
        return Reply(200, "text/javascript", data, _WORKER, http_message.document_digest(data))

    def _answer_page(
        self, call: Call, path: str, manifest: Manifest, deliver: Deliver
    ) -> Reply | HttpResponse:
        match = _PATH.fullmatch(path)
        if match is None:
            raise ArgumentError(f"Ask for {SCRIPTS}/TIMESTAMP/.")
        stamp, part, rest = match.groups()
        if part is None:
            return self.replay.banners.show_scripts(self.replay.at(call), stamp)
        try:
            url = terms.complete_url(unquote(f"{rest}?{call.query}" if call.query else rest))
        except NoScope as error:
            raise ArgumentError(f"{error}.") from error
        request = ReplayRequest(stamp, "", url)
        captures = near.find_near(self.replay.search, manifest, request.key, request.moment)
        if not captures.best:
            raise ContentError("unknown", f"{url} is not in this archive")
        task = ReplayTask(self.replay, call, manifest, request, self.replay.at(call), captures)
        content = task.read_content()
        if part == "A":
            response = deliver(Representation(content, False, fixed=task.is_exact(content)))
            if isinstance(response, Reply) or "Content-Type" not in response.headers:
                return response
            # The head says the type. As this one no script becomes a worker, also from a cache.
            typed = {**response.headers, "Content-Type": header_fields.UNKNOWN_TYPE}
            return replace(response, headers=typed)
        return Reply(200, "application/warc", _write_head(content))


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
        f"WARC-Date: {instant.to_text(near.instant_of(content.capture))}",
        "Content-Type: application/http; msgtype=response",
        f"Content-Length: {len(head)}",
    ]
    return _join(lines) + head + b"\r\n\r\n"


def _join(lines: list[str]) -> bytes:
    clean = "".join(f"{_CONTROL.sub(' ', line)}\r\n" for line in lines)
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
