"""Answers requests with archived bytes (RFC 9110, RFC 7089)."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from functions.config.configuration import Configuration
from functions.content import cdx, header_fields, memento, neighbours, representation
from functions.content.capture_row import FIELDS
from functions.content.delivery import Delivery, Lying, Sign
from functions.content.protocols import DIALECTS, Content, ContentError, Contents, Searching
from functions.content.representation import ArgumentError, Body, ContentRequest, Representation
from functions.http import access_log, aws, deadline, http_message
from functions.http import http_message as http
from functions.http.access_log import AccessLog
from functions.http.http_message import OAI_PATH, Call, HttpResponse, Reply, unavailable
from functions.oai.as_of import AsOf
from functions.oai.named_item import find_record
from functions.oai.repository import Repository
from functions.snapshot import obi
from functions.snapshot.errors import NothingPublished, StoreError
from functions.snapshot.manifest import Manifest
from functions.store import s3_request

_LOG = logging.getLogger("sheaf")

PART = 4_000_000
"""Bytes of content in one answer of Lambda: its limit is 6 MB, and base64 adds a third."""

_LISTS: Mapping[str, Callable[[Call, Searching, Manifest, Configuration], Reply]] = {
    "/cdx": cdx.reply,
    "/timemap": memento.timemap,
    "/timegate": memento.timegate,
}
_STREAMS = 256
"""Maximum number of concurrent streams; each holds a file or a request to a bucket open."""
PATHS = (representation.PATH, *sorted({*_LISTS, *DIALECTS}))
"""The paths that are answered here, with all paths below them."""

_FIELDS = (*FIELDS, obi.DOCUMENT.name)
"""Columns read from a record: all that a capture needs, and the whole document of other kinds."""

_ALLOWED = ("GET", "HEAD", "OPTIONS")
_PLAIN = "text/plain"
_LONGEST = 300


class ContentApplication:
    """Answers requests with the content of one repository. Thread-safe.

    `log`, `timer` and `compress` are as in functions.oai.application, `guarded` as in AsOf.
    If `largest` is given, it limits the size of an answer (aws.weigh), and PART limits its
    content. Otherwise bodies may be of type Body, which the caller closes. If `spent` is true,
    replace the application together with its repository.
    """

    spent = False

    def __init__(
        self,
        repository: Repository,
        contents: Contents,
        search: Searching,
        settings: Configuration,
        clock: Callable[[], datetime],
        log: Callable[[str], None] | None = None,
        timer: Callable[[], float] = time.perf_counter,
        compress: Callable[[bytes], bytes] = http.compress,
        largest: int | None = None,
        lying: Lying | None = None,
        sign: Sign | None = None,
        *,
        guarded: bool = False,
    ) -> None:
        self._repository = repository
        self._contents = contents
        self._search = search
        self._settings = settings
        self._clock = clock
        self._timer = timer
        self._compress = compress
        self._largest = largest
        part = None if largest is None else PART
        self._delivery = Delivery(contents, settings, lying, sign, part)
        self._present = AsOf(
            repository,
            clock,
            settings["serve.pointer_seconds"],
            settings["serve.clock_allowance"],
            guarded=guarded,
        )
        self._places = threading.BoundedSemaphore(settings["serve.concurrent"])
        self._streams = threading.BoundedSemaphore(_STREAMS)
        self._log = None if log is None else AccessLog(log)
        configured = settings["repository.base_url"].rstrip("/")
        self._base = configured.removesuffix(OAI_PATH) if configured.endswith(OAI_PATH) else ""
        self.mount = urlsplit(self._base).path

    def answer(self, call: Call, seconds: float | None = None, request: str = "") -> HttpResponse:
        """Answer a request, with 503 if the answer is not ready within `seconds`.

        The body is bytes or a Body.
        """
        with s3_request.count_requests() as cost:
            entry = _LogEntry(self._clock(), call, self._timer, self._log, cost, request)
            try:
                response = deadline.answer_within(seconds, lambda: self._answer_call(call, entry))
            except deadline.DeadlineError:
                self.spent = True
                _LOG.error("no answer within %.1f s: %a %a", seconds, call.method, call.path)
                response = self._write(
                    self._unavailable("This takes too long at the moment; try again later."), call
                )
        exposed = {"Access-Control-Expose-Headers": "*"}
        headers = {**http_message.CORS, **response.headers, **header_fields.SANDBOX, **exposed}
        entry.response = replace(response, headers=headers)
        if not isinstance(response.body, Body):
            entry.add(response.size)
        return entry.response

    def prepare(self) -> None:
        """Read what every answer needs, before the first request. Raises StoreError."""
        self._manifest()

    def takes(self, path: str) -> bool:
        """Return whether the path is answered here."""
        return any(path == ours or path.startswith(f"{ours}/") for ours in PATHS)

    def _answer_call(self, call: Call, entry: "_LogEntry") -> HttpResponse:
        """Answer a call, or refuse it if too many are running: waiting could take forever."""
        if not self._places.acquire(blocking=False):
            refusal = self._unavailable("Too many requests at the moment; try again later.")
            return self._write(refusal, call)
        try:
            response = self._answer(call, entry)
            if self._largest is None or aws.weigh(response) <= self._largest:
                return response
            _LOG.error("an answer of %d bytes is too large: %a", response.size, call.path)
            reply = self._unavailable("The response is too large; request less.")
        except NothingPublished as error:
            _LOG.error("%s", error)
            reply = self._unavailable("Nothing is published here yet; try again later.")
        except StoreError as error:
            # The reason is for the operator's log, not for clients.
            _LOG.error("%s: %s", type(error).__name__, error)
            reply = self._unavailable(
                "The archive cannot be reached at the moment; try again later."
            )
        except Exception:  # noqa: BLE001 - told in the error log, as by functions.oai.application
            _LOG.exception("a request was not answered: %a %a", call.method, call.path)
            reply = self._unavailable("Something went wrong here; try again later.")
        finally:
            self._places.release()
        return self._write(reply, call)

    def _answer(self, call: Call, entry: "_LogEntry") -> HttpResponse:
        if call.method == "OPTIONS":
            return self._write(Reply(204, _PLAIN, b"", http_message.preflight(_ALLOWED)), call)
        if call.method not in _ALLOWED:
            allow = ", ".join(_ALLOWED)
            refusal = Reply(405, _PLAIN, f"Use one of: {allow}.\n".encode(), {"Allow": allow})
            return self._write(refusal, call)
        if not self._settings["content.serve"]:
            return self._write(_fault(404, "disabled", "Only metadata is served here."), call)
        call = replace(call, base=self._base or call.base)
        manifest = self._manifest()
        entry.told["snapshot"] = manifest.snapshot
        listed = _LISTS.get(f"/{call.path[1:].partition('/')[0]}")
        if listed is not None:
            entry.told["query"] = call.query[:_LONGEST]
            return self._write(listed(call, self._search, manifest, self._settings), call)
        try:
            asked = representation.read_request(call)
            content = self._find(manifest, asked)
            entry.told["identifier"] = content.identifier[:_LONGEST]
            return self._deliver(call, asked, content, entry, manifest)
        except ArgumentError as error:
            return self._write(_fault(400, "argument", str(error)), call)
        except ContentError as error:
            entry.told["errors"] = [error.code]
            if error.status >= 500:
                _LOG.error("%a: %s: %s", call.path, error.code, error)
            return self._write(self._missing(error), call)

    def _find(self, manifest: Manifest, asked: ContentRequest) -> Content:
        """Return the content of an item, or of a file by its own URL or handle."""
        for identifier in asked.identifiers:
            record = find_record(self._repository, manifest, identifier, fields=_FIELDS)
            if record is not None:
                return self._contents.find(manifest, record, file=asked.file, at=asked.at)
        if asked.file:
            raise ContentError("unknown", "there is no such item")
        failure = ContentError("unknown", "no item has that identifier")
        for identifier in asked.identifiers:
            try:
                return self._contents.find(manifest, None, file=identifier, at=asked.at)
            except ContentError as error:
                if error.code not in ("unknown", "not-held"):
                    raise
                if error.code == "not-held" and asked.at is not None:
                    failure = error
        raise failure

    def _deliver(
        self,
        call: Call,
        asked: ContentRequest,
        content: Content,
        entry: "_LogEntry",
        manifest: Manifest,
    ) -> HttpResponse:
        """Return the answer with the content and its links, unless too many streams are open."""
        shown = Representation(content, asked.coded, fixed=content.capture is not None)
        if not self._streams.acquire(blocking=False):
            refusal = self._unavailable("Too many responses are in progress; try again later.")
            return self._write(refusal, call)
        with ExitStack() as stack:
            stack.callback(self._streams.release)

            def log_end(given: int, error: Exception | None) -> None:
                self._streams.release()
                if error is not None:
                    entry.told["errors"] = [getattr(error, "code", type(error).__name__)]
                entry.add(given)

            response = self._delivery.answer(call, shown, log_end)
            body = response.body
            if isinstance(body, Body):
                stack.pop_all()
                stack.callback(body.close)  # this calls `log_end`
            response = neighbours.add_links(response, call, self._search, manifest, content.capture)
            if isinstance(body, Body):
                stack.pop_all()
        return response

    def _manifest(self) -> Manifest:
        return self._repository.manifest(self._present.reading().entry.snapshot)

    def _missing(self, error: ContentError) -> Reply:
        reply = _fault(error.status, error.code, f"{error}.")
        if error.status != 503:
            return reply
        seconds = str(self._settings["serve.retry_seconds"])
        headers = {**reply.headers, "Retry-After": seconds, "Cache-Control": http_message.UNKEPT}
        return Reply(503, _PLAIN, reply.body, headers)

    def _write(self, reply: Reply, call: Call) -> HttpResponse:
        return http.write(reply, call, self._compress)

    def _unavailable(self, message: str) -> Reply:
        return unavailable(message, self._settings["serve.retry_seconds"])


def _fault(status: int, code: str, message: str) -> Reply:
    """Return a refusal: a line for people and a code for programs."""
    return Reply(status, _PLAIN, f"{message}\n".encode(), {"X-Archive-Error": code})


class _LogEntry:
    """The access log's entry for a call, written when its whole answer was sent."""

    def __init__(
        self,
        when: datetime,
        call: Call,
        timer: Callable[[], float],
        log: AccessLog | None,
        cost: s3_request.Tally,
        request: str,
    ) -> None:
        self.told: dict[str, Any] = {"request": request} if request else {}
        self.response = HttpResponse(0, {})
        self._when, self._call = when, call
        self._timer, self._begun = timer, timer()
        self._log, self._cost = log, cost

    def add(self, count: int) -> None:
        """Write the entry; `count` bytes were sent."""
        if self._log is not None:
            took = self._timer() - self._begun
            response = replace(self.response, told=self.told)
            entry = access_log.log_entry(self._when, self._call, response, took, self._cost)
            self._log.add({**entry, "bytes": count})
