"""Answers immutable pages from a folder, and keeps each page there after its first rendering.

A page is immutable if a token requests it, its snapshot is kept, and the list continues after it.
It is answered from the folder until the pointer retires its snapshot (functions.oai.listing). Only
responses in gzip are kept. The event loop answers pages that are in this process's memory: `quick`.
"""

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from builder.runtime import Clock
from builder.serve.connection import Handler, QuickAnswer
from builder.serve.page_cache import KeptPage, PageCache
from functions.http import http_message
from functions.http.access_log import AccessLog
from functions.http.http_message import OAI_PATH, Call, FormError
from functions.oai.application import Application

_KEPT = 16_384
"""Pages that a worker knows without reading their files again: those of 1 GB, in some 35 MB."""
_LARGE = 1 << 20
_HEADER = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[ \t]*[!-~](?:[ -~\t]*[!-~])?[ \t]*\r\n"
_REQUEST = re.compile(rb'GET (/(?!/)[!"$-~]*\?[!"$-~]+) HTTP/1\.1\r\n((?:' + _HEADER + rb")+)\r\n")
_PLAIN = frozenset(
    b"accept accept-encoding accept-language cache-control connection dnt from host pragma "
    b"priority referer user-agent".split()
)
"""Headers with which a request is answered at once; of these, only two matter."""


@dataclass(frozen=True, slots=True)
class QuickRequest:
    """A GET in its simplest form (RFC 9112): target, Host and Accept-Encoding."""

    target: bytes
    host: bytes
    coding: bytes


class LineRecorder:
    """Passes lines of the access log on, and keeps the last one of each thread."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._local = threading.local()

    def __call__(self, line: str) -> None:
        """Take a line."""
        self._local.line = line
        self._write(line)

    def take(self) -> dict[str, Any]:
        """Return the last entry of this thread."""
        found: dict[str, Any] = json.loads(self._local.__dict__.pop("line", "{}"))
        return found


class KeptPages:
    """Implements Handler over another one, `answer`, which has the application. Thread-safe.

    `recorder` is its access log, if it has one. `own_host` is False if the configuration gives the
    base URL, so that pages are the same for every host.
    """

    def __init__(
        self,
        answer: Handler,
        application: Application,
        cache: PageCache,
        clock: Clock,
        recorder: LineRecorder | None,
        *,
        own_host: bool,
    ) -> None:
        self._answer = answer
        self._application = application
        self._cache = cache
        self._clock = clock
        self._recorder = recorder
        self._access_log = None if recorder is None else AccessLog(recorder)
        self._own_host = own_host
        self._known: dict[bytes, tuple[KeptPage, int]] = {}
        """Pages by Host and target as sent, with the snapshot that was in effect then."""
        self._lock = threading.Lock()
        self._swept: object = None

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        """Answer an event, from the folder if the page is there and has not changed."""
        call = self._application.read(event)
        name = self._name(call)
        pin = None if name is None else self._application.find_pin(call)
        if name is None or pin is None:
            answer = self._answer(event)
            self._sweep()
            return answer
        self._sweep()
        snapshot, reading = pin
        page = self._cache.load(snapshot, name)
        if page is not None:
            self._learn(event, page, reading.entry.snapshot)
            found = self._write(call, page)
            if found is not None:
                return found
        swept = self._swept
        answer = self._answer(event)
        entry = self._recorder.take() if self._recorder else {}
        headers = answer["headers"]
        is_fixed = "immutable" in headers.get("Cache-Control", "")
        if answer["statusCode"] == 200 and is_fixed and "Content-Encoding" in headers:
            self._cache.store(snapshot, name, headers, entry, answer["body"])
            if self._swept != swept:  # the page may be one that was to be removed meanwhile
                self._swept = None
                self._sweep()
        return answer

    def quick(self, data: bytes) -> QuickAnswer | None:
        """Return the answer to bytes that are one request for a known page; else None.

        It neither waits nor reads the page.
        """
        asked = parse_quickly(data)
        if asked is None or not _takes_gzip(asked.coding):
            return None
        known = self._known.get(_key(asked.host, asked.target))
        reading = self._application.find_reading()
        if known is None or reading is None:
            return None
        self._application.renew_reading()
        page, entry = known
        if reading.entry.snapshot != entry or reading.pointer.is_retired(page.snapshot):
            return None
        body = page.open()
        if body is None:
            return None
        begun = time.perf_counter()
        return QuickAnswer(page.headers, body, lambda: self._log(page, begun))

    def _name(self, call: Call) -> str | None:
        """Return the name of the page that a call asks for, if it may be kept."""
        is_list = call.path == OAI_PATH and "resumptionToken=" in call.query
        if call.method != "GET" or not is_list or not call.wants_gzip(_LARGE):
            return None
        try:
            pairs = sorted(call.pairs())  # their order and their escapes do not change the page
        except FormError:
            return None
        text = f"{call.base if self._own_host else ''}\0{urlencode(pairs)}"
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:40]

    def _learn(self, event: Mapping[str, Any], page: KeptPage, entry: int) -> None:
        """Let `quick` answer the same request with this page while snapshot `entry` is in effect.

        Besides method and coding, Host and target are all of a request that a page depends on.
        """
        host = event["headers"].get("host", "").encode("utf-8", "surrogateescape")
        target = f"{event['rawPath']}?{event['rawQueryString']}"
        with self._lock:
            self._known[_key(host, target.encode("utf-8", "surrogateescape"))] = page, entry
            if len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]

    def _write(self, call: Call, page: KeptPage) -> dict[str, Any] | None:
        """Return the answer of a kept page, or 304; None if the page was removed meanwhile."""
        begun, headers = time.perf_counter(), dict(page.headers)
        if http_message.is_held(call.headers, headers.get("ETag", "")):
            self._log(page, begun, status=304, bytes=0, cached=True)
            unsent = ("Content-Length", "Content-Type", "Content-Encoding")
            kept = {name: text for name, text in headers.items() if name not in unsent}
            return {"statusCode": 304, "headers": kept, "body": b""}
        body = page.open()
        if body is None:
            return None
        self._log(page, begun)
        return {"statusCode": 200, "headers": headers, "body": body}

    def _log(self, page: KeptPage, begun: float, **told: object) -> None:
        if self._access_log is None:
            return
        now = self._clock().astimezone(UTC).isoformat(timespec="milliseconds")
        took = round(1000 * (time.perf_counter() - begun), 1)
        entry = {
            **page.entry,
            "time": now.replace("+00:00", "Z"),
            "milliseconds": took,
            "store_requests": 0,
            "store_bytes": 0,
            **told,
        }
        self._access_log.add(entry)

    def _sweep(self) -> None:
        """Remove the pages of retired snapshots, once for each change of the list of these."""
        reading = self._application.find_reading()
        if reading is None:
            return
        state = (reading.pointer.retired, reading.pointer.expiry)
        if state != self._swept:
            self._swept = state
            self._cache.forget(reading.pointer.is_retired)


def parse_quickly(data: bytes) -> QuickRequest | None:
    """Return a request if the bytes are exactly one GET with a token and nothing unusual."""
    if b"resumptionToken=" not in data:
        return None
    match = _REQUEST.fullmatch(data)
    if match is None:
        return None
    found: dict[bytes, bytes] = {}
    for line in match[2].split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name in found or name not in _PLAIN:
            return None
        found[name] = value.strip(b" \t")
    if b"host" not in found or found.get(b"connection", b"keep-alive").lower() != b"keep-alive":
        return None
    return QuickRequest(match[1], found[b"host"], found.get(b"accept-encoding", b""))


def _key(host: bytes, target: bytes) -> bytes:
    return hashlib.blake2b(host + b"\0" + target, digest_size=20).digest()


@lru_cache(maxsize=256)
def _takes_gzip(coding: bytes) -> bool:
    headers: Mapping[str, str] = {"accept-encoding": coding.decode("ascii")}
    call = Call("GET", "", OAI_PATH, "", headers, "", encoded=False)
    return call.wants_gzip(_LARGE)
