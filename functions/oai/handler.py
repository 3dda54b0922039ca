"""The handler: an event of an HTTP API in, its answer out; no globals, and nothing of Lambda's.

OAI-PMH 2.0, sections 3.1 (HTTP) and 3.1.2.2 (503 with Retry-After).
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from functions.oai import event as http
from functions.oai import format as formats
from functions.oai import site
from functions.oai.answer import RecordList, SetList
from functions.oai.errors import OAIError
from functions.oai.event import Call, Reply
from functions.oai.present import Present
from functions.oai.provider import Provider
from functions.oai.render import Renderer
from functions.oai.repository import Repository
from functions.snapshot.configuration import Configuration
from functions.snapshot.errors import NothingPublished, StoreError

_LOG = logging.getLogger("sheaf")

OAI_PATH = "/oai"
_XML, _HTML, _PLAIN = "text/xml", "text/html", "text/plain"
_RETRY_SECONDS = "30"
_LARGEST = 4_000_000
"""Bytes of a document: Lambda answers 6 MB at most, and base64 adds a third."""


class Application:
    """Answers events from one repository. May be used by many threads at once."""

    def __init__(
        self,
        repository: Repository,
        configuration: Configuration,
        clock: Callable[[], datetime],
    ):
        present = Present(
            repository,
            clock,
            configuration["serve.pointer_seconds"],
            configuration["serve.clock_allowance"],
        )
        self._repository = repository
        self._configuration = configuration
        self._present = present
        self._provider = Provider(repository, configuration, formats.load(), present)
        self._renderer = Renderer()

    def __call__(self, event: Mapping[str, Any], context: object = None) -> dict[str, Any]:
        """Answer one event; `context` is Lambda's and not looked at."""
        call = http.read(event)
        return http.write(self._reply(call), call)

    def _reply(self, call: Call) -> Reply:
        is_oai = call.path.rstrip("/") == OAI_PATH
        if not is_oai and call.path != "/":
            return Reply(404, _PLAIN, f"There is nothing here; try / or {OAI_PATH}.\n".encode())
        allowed = ("GET", "HEAD", "POST") if is_oai else ("GET", "HEAD")
        if call.method not in allowed:
            allow = ", ".join(allowed)
            return Reply(405, _PLAIN, f"Use one of: {allow}.\n".encode(), {"Allow": allow})
        try:
            return self._document(call) if is_oai else self._page(call)
        except NothingPublished as error:
            return _unavailable(f"{error}.")
        except StoreError as error:
            # What is wrong is for the operator to know, not for strangers.
            _LOG.error("%s: %s", type(error).__name__, error)
            return _unavailable("The repository is out of reach at the moment; try again later.")

    def _document(self, call: Call) -> Reply:
        try:
            pairs = call.pairs()
        except OAIError as failure:
            refusal = self._provider.refusal(failure, call.url)
            return Reply(200, _XML, self._renderer.document(refusal))
        answer = self._provider.answer(pairs, call.url)
        body = self._renderer.document(answer)
        while len(body) > _LARGEST and isinstance(answer.content, RecordList | SetList):
            count = answer.content.count
            if count == 1:
                break
            # A tenth below what should fit, for records differ in size.
            limit = max(1, min(count - 1, count * _LARGEST * 9 // (len(body) * 10)))
            answer = self._provider.answer(pairs, call.url, limit)
            body = self._renderer.document(answer)
        return Reply(200, _XML, body)

    def _page(self, call: Call) -> Reply:
        url = self._provider.base_url(call.base + OAI_PATH)
        view = site.view(self._repository, self._configuration, self._present.reading(), url)
        return Reply(200, _HTML, self._renderer.page({"site": view}))


def _unavailable(message: str) -> Reply:
    headers = {"Retry-After": _RETRY_SECONDS, "Cache-Control": "no-store"}
    return Reply(503, _PLAIN, f"{message}\n".encode(), headers)
