"""The application: answers HTTP requests, without globals; Lambda and servers create it.

OAI-PMH 2.0, section 3.1 (HTTP).
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from typing import Protocol

from functions.config.configuration import Configuration
from functions.http import health, http_message
from functions.http.http_message import OAI_PATH, Call, FormError, HttpResponse, Reply
from functions.http.service import Service
from functions.oai.answer import Answer, Content, ErrorList, OneRecord, RecordList, SetList
from functions.oai.format import Formats
from functions.oai.provider import Provider
from functions.oai.render import check, schemas
from functions.oai.render.render import NothingRenderedError, Renderer, lookups
from functions.oai.request import (
    BAD_ARGUMENT,
    NO_FORMAT,
    NO_RECORDS,
    OAIError,
    OaiFault,
    OaiRequest,
    error,
    parse,
)
from functions.reading.as_of import AsOf
from functions.reading.repository import Repository
from functions.snapshot.errors import SheafError, StoreError
from functions.store import s3_request

_LOG = logging.getLogger("sheaf")

_XML, _PLAIN = "text/xml", "text/plain"
LARGEST = 4_000_000
"""Maximum bytes of a document: Lambda answers 6 MB at most, and base64 adds a third."""
FRAME = 20_000
"""Bytes of the document reserved for the XML around the records."""
_MOST = 100_000  # records, so that a request ends even if a crosswalk fails for every record
_STRETCH = 2_000  # records at once, if pages are shorter


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
        """Return the answer to a GET, 404 if there is no such page. Raises StoreError."""
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
        pages: Callable[[OaiParts], PageService] | None = None,
    ):
        super().__init__(repository, configuration, clock, log, timer, compress, largest)
        present, self._cache_seconds = self._present, configuration["serve.cache_seconds"]
        formats, self._renderer = check.open_formats(configuration)
        digest, fields = lookups(configuration, formats, self._renderer)
        self._provider = Provider(repository, configuration, formats, present, digest, fields)
        parts = OaiParts(
            repository, configuration, present, self._provider, formats, self._renderer
        )
        self.health = health.HealthCheck(present, clock)
        # A cold start has no time for pages and schemas, of which only an operator's have faults.
        self._pages = None if pages is None else cache(partial(pages, parts))
        self._schemas = cache(partial(schemas.schema_replies, self._renderer.places))
        if self._pages is not None and configuration["formats.templates"]:
            self._pages()

    def answer(self, call: Call, seconds: float | None = None, request: str = "") -> HttpResponse:
        """Answer a request (see Service.answer)."""
        begun = self.timer()
        with s3_request.count_requests() as cost:
            if call.path == health.PATH and call.method in ("GET", "HEAD"):
                response = http_message.write(self.health.answer(), call, self.compress)
            else:
                response = self._attempt(call, seconds, lambda: self._reply(call))
        if request:
            response = replace(response, log_fields={"request": request, **response.log_fields})
        self.log(call, response, begun, cost)
        return response

    def find_pin(self, call: Call) -> int | None:
        """Return the snapshot that a page of a list is read from (Provider.find_pin).

        None if the request is of another kind, or cannot be answered so.
        """
        try:
            return self._provider.find_pin(call.pairs)
        except (FormError, SheafError):
            return None

    def _reply(self, call: Call) -> Reply:
        # The asterisk asks for the server's own options (RFC 9110, section 9.3.7).
        is_server = call.method == "OPTIONS" and call.path == "*"
        is_oai = call.path.rstrip("/") == OAI_PATH or is_server
        pages = None if is_oai or self._pages is None else self._pages()
        schema = None if is_oai else self._schemas().get(call.path.removeprefix(OAI_PATH))
        if not (is_oai or schema or (pages is not None and pages.takes(call.path))):
            # A browser's reader gets a page with a way on, a program one line.
            if (
                pages is not None
                and call.method == "GET"
                and "text/html" in call.headers.get("accept", "")
            ):
                return pages.reply(call)
            return Reply(404, _PLAIN, f"Not found; try / or {OAI_PATH}.\n".encode())
        allowed = ("GET", "HEAD", "POST", "OPTIONS") if is_oai else ("GET", "HEAD", "OPTIONS")
        if call.method == "OPTIONS":
            return Reply(204, _PLAIN, b"", http_message.preflight(allowed))
        if call.method not in allowed:
            allow = ", ".join(allowed)
            return Reply(405, _PLAIN, f"Use one of: {allow}.\n".encode(), {"Allow": allow})
        if schema is not None:
            return schema
        return self._document(call) if pages is None else pages.reply(call)

    def _document(self, call: Call) -> Reply:
        def fits(body: bytes) -> bool:
            return len(body) <= LARGEST or self._fits(
                http_message.write(Reply(200, _XML, body), call, self.compress)
            )

        try:
            pairs = call.pairs
        except FormError as failure:
            refusal = self._provider.refusal(error(BAD_ARGUMENT, str(failure)), call.url)
            return self._reply_with(call, refusal, self._renderer.document(refusal))
        answer, body = render_document(
            self._provider, self._renderer, pairs, call.url, fits=fits, largest=LARGEST
        )
        return self._reply_with(call, answer, body)

    def _reply_with(self, call: Call, answer: Answer, body: bytes) -> Reply:
        pinned = answer.pinned and call.method != "POST"
        headers = {"Cache-Control": http_message.cache_control(self._cache_seconds, pinned=pinned)}
        return Reply(
            200, _XML, body, headers, http_message.document_digest(body), answer.log_fields()
        )


def render_document(
    provider: Provider,
    renderer: Renderer,
    pairs: Sequence[tuple[str, str]],
    url: str,
    limit: int | None = None,
    fits: Callable[[bytes], bool] = lambda body: True,
    most: int = _MOST,
    largest: int = LARGEST,
) -> tuple[Answer, bytes]:
    """Return the answer to the decoded pairs of a request to `url`, and its XML in UTF-8.

    `limit` shortens the page of a list, and so does `largest`, in bytes. If no record of a page can
    be rendered, the list continues with its next page: a `<ListRecords>` needs at least one record
    (OAI-PMH 2.0, section 4.5), and an error would end the harvest. A record whose document does not
    fit even alone counts as one that cannot be rendered. Raises StoreError if the store fails, or
    if `most` records in a row cannot be rendered.
    """
    try:
        request = parse(pairs)
    except OAIError as failure:
        refusal = provider.refusal(failure, url)
        return refusal, renderer.document(refusal)
    render = partial(renderer.render, base_url=provider.base_url(url), largest=largest - FRAME)
    original = answer = provider.answer(request, url, render, limit)
    size, passed, is_page = limit, 0, True
    while passed < most:
        content = answer.content
        try:
            body = renderer.document(answer)
            _check_size(content, body, fits)
        except NothingRenderedError:
            if not (isinstance(content, RecordList) and not content.final and content.resumption):
                fault = OaiFault(NO_FORMAT, "This record cannot be rendered in that format.")
                if isinstance(content, RecordList):
                    text = "The matching records cannot be rendered in that format."
                    fault = OaiFault(NO_RECORDS, text)
                unrendered = replace(answer, content=ErrorList((fault,)))
                return unrendered, renderer.document(unrendered)
            # The next records are tried in batches, each twice as long as the one before.
            passed += content.count
            request = OaiRequest(content.verb, (), token=content.resumption.text)
            size, is_page = min(2 * content.count, _STRETCH), False
        else:
            if isinstance(content, SetList) and len(body) > largest and content.count > 1:
                # A tenth below the estimate, because sets differ in size.
                estimate = content.count * largest * 9 // (len(body) * 10)
                size = max(1, min(content.count - 1, estimate))
            elif is_page:
                return answer, body
            else:
                size, is_page = limit, True  # some of the batch can be rendered: by pages from here
        answer = _in_place(provider.answer(request, url, render, size), original)
    raise StoreError(f"{passed} records in a row could not be rendered; the log has the errors")


def _check_size(content: Content, body: bytes, fits: Callable[[bytes], bool]) -> None:
    """Raise NothingRenderedError if a single record is too large to be sent."""
    if isinstance(content, OneRecord):
        record = content.record
    elif isinstance(content, RecordList) and content.count == 1:
        record = content.records[0]
    else:
        return
    if not fits(body):
        _LOG.error("%s is left out: %d bytes of XML are too large", record.identifier, len(body))
        raise NothingRenderedError(record.identifier)


def _in_place(answer: Answer, original: Answer) -> Answer:
    """Return the answer to a later token as the answer to the original request.

    It keeps the original cursor, and no cache may keep it permanently.
    """
    content = answer.content
    if isinstance(content, RecordList) and isinstance(original.content, RecordList):
        rest, begun = content.resumption, original.content.resumption
        if rest is not None and begun is not None:
            rest = replace(rest, cursor=begun.cursor)
        content = replace(content, resumption=rest, pinned=False)
    return replace(answer, arguments=original.arguments, content=content)
