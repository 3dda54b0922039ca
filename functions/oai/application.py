"""The application: answers HTTP requests, without globals; Lambda and servers create it.

OAI-PMH 2.0, section 3.1 (HTTP).
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from functions.config.configuration import Configuration
from functions.http import access_log, http_message
from functions.http.http_message import OAI_PATH, Call, FormError, HttpResponse, Reply
from functions.http.service import Service
from functions.oai.answer import Answer, SetList
from functions.oai.format import Formats
from functions.oai.provider import Provider
from functions.oai.render import check, schemas
from functions.oai.render.render import Renderer, render_document
from functions.oai.request import BAD_ARGUMENT, error
from functions.reading.as_of import AsOf
from functions.reading.repository import Repository
from functions.snapshot.errors import SheafError
from functions.snapshot.pointer import Pointer
from functions.store import s3_request

_LOG = logging.getLogger("sheaf")

_XML, _PLAIN = "text/xml", "text/plain"
_LARGEST = 4_000_000
"""Maximum bytes of a document: Lambda answers 6 MB at most, and base64 adds a third."""
_FRAME = 20_000
"""Bytes of the document reserved for the XML around the records."""


@dataclass(frozen=True, slots=True)
class OaiParts:
    """The parts of an application that pages for people share with it."""

    repository: Repository
    configuration: Configuration
    present: AsOf
    provider: Provider
    formats: Formats
    renderer: Renderer


class PageService(Protocol):
    """The pages beside the protocol, such as those for people. Thread-safe."""

    def takes(self, path: str) -> bool:
        """Return whether there is a page at that path, such as `/sets`."""
        ...

    def reply(self, call: Call) -> Reply:
        """Return the answer to a GET of such a path. Raises StoreError."""
        ...


class Application(Service):
    """Answers requests of the protocol; `pages` makes the pages beside it. Thread-safe."""

    def __init__(
        self,
        repository: Repository,
        configuration: Configuration,
        clock: Callable[[], datetime],
        log: Callable[[str], None] | None = None,
        timer: Callable[[], float] = time.perf_counter,
        compress: Callable[[bytes], bytes] = http_message.compress,
        largest: int | None = None,
        *,
        guarded: bool = False,
        pages: Callable[[OaiParts], PageService] | None = None,
    ):
        super().__init__(
            repository, configuration, clock, log, timer, compress, largest, guarded=guarded
        )
        present = self._present
        formats, self._renderer = check.open_formats(configuration)
        digest, fields = check.lookups(configuration, formats, self._renderer)
        self._provider = Provider(repository, configuration, formats, present, digest, fields)
        parts = OaiParts(
            repository, configuration, present, self._provider, formats, self._renderer
        )
        self._pages = None if pages is None else pages(parts)
        self._schemas = schemas.schema_replies(self._renderer.places)

    def answer(self, call: Call, seconds: float | None = None, request: str = "") -> HttpResponse:
        """Answer a request (see Service.answer)."""
        begun = self._timer()
        with s3_request.count_requests() as cost:
            response = self._attempt(call, seconds, lambda: self._reply(call))
        if request:
            response = replace(response, log_fields={"request": request, **response.log_fields})
        if self._log is not None:
            took = self._timer() - begun
            self._log.add(access_log.log_entry(self._clock(), call, response, took, cost))
        return response

    def find_pin(self, call: Call) -> int | None:
        """Return the snapshot that a page of a list is read from (Provider.find_pin).

        None if the request is of another kind, or cannot be answered so.
        """
        try:
            return self._provider.find_pin(call.pairs())
        except (FormError, SheafError):
            return None

    def find_pointer(self) -> Pointer | None:
        """Return the pointer as it was read last, if that still serves; this never waits."""
        reading = self._present.find_reading()
        return None if reading is None else reading.pointer

    def _reply(self, call: Call) -> Reply:
        # The asterisk asks for the server's own options (RFC 9110, section 9.3.7).
        is_server = call.method == "OPTIONS" and call.path == "*"
        is_oai = call.path.rstrip("/") == OAI_PATH or is_server
        schema = self._schemas.get(call.path.removeprefix(OAI_PATH))
        is_page = self._pages is not None and self._pages.takes(call.path)
        if not (is_oai or is_page or schema):
            return Reply(404, _PLAIN, f"Not found; try / or {OAI_PATH}.\n".encode())
        allowed = ("GET", "HEAD", "POST", "OPTIONS") if is_oai else ("GET", "HEAD", "OPTIONS")
        if call.method == "OPTIONS":
            return Reply(204, _PLAIN, b"", http_message.preflight(allowed))
        if call.method not in allowed:
            allow = ", ".join(allowed)
            return Reply(405, _PLAIN, f"Use one of: {allow}.\n".encode(), {"Allow": allow})
        if schema is not None:
            return schema
        if is_oai or self._pages is None:
            return self._document(call)
        return self._pages.reply(call)

    def _document(self, call: Call) -> Reply:
        try:
            pairs = call.pairs()
        except FormError as failure:
            refusal = self._provider.refusal(error(BAD_ARGUMENT, str(failure)), call.url)
            return self._reply_with(call, refusal, self._renderer.document(refusal))
        answer, body = self._make_document(call, pairs)
        # Pages of records are cut when they are rendered. Pages of sets are seldom too long.
        while len(body) > _LARGEST and isinstance(answer.content, SetList):
            count = answer.content.count
            if count == 1:
                break
            # A tenth below the estimate, because sets differ in size.
            limit = max(1, min(count - 1, count * _LARGEST * 9 // (len(body) * 10)))
            answer, body = self._make_document(call, pairs, limit)
        return self._reply_with(call, answer, body)

    def _make_document(
        self, call: Call, pairs: Sequence[tuple[str, str]], limit: int | None = None
    ) -> tuple[Answer, bytes]:
        def fits(body: bytes) -> bool:
            return len(body) <= _LARGEST or self._fits(
                http_message.write(Reply(200, _XML, body), call, self._compress)
            )

        return render_document(
            self._provider, self._renderer, pairs, call.url, limit, fits, largest=_LARGEST - _FRAME
        )

    def _reply_with(self, call: Call, answer: Answer, body: bytes) -> Reply:
        pinned = answer.pinned and call.method != "POST"
        seconds = self._settings["serve.cache_seconds"]
        headers = {"Cache-Control": http_message.cache_control(seconds, pinned=pinned)}
        return Reply(
            200, _XML, body, headers, http_message.document_digest(body), answer.log_fields()
        )
