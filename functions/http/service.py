"""What applications share: their limits, their deadline, and refusals where they fail.

OAI-PMH 2.0, section 3.1.2.2 (503 with Retry-After).
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime
from urllib.parse import urlsplit

from functions.config.configuration import Configuration
from functions.http import aws, deadline, http_message
from functions.http.access_log import AccessLog
from functions.http.http_message import OAI_PATH, Call, HttpResponse, Reply
from functions.reading.as_of import AsOf
from functions.reading.repository import Repository
from functions.snapshot.errors import NothingPublished, StoreError
from functions.snapshot.manifest import Manifest

_LOG = logging.getLogger("sheaf")


class Service(ABC):
    """Answers calls from one repository. Thread-safe.

    `log` takes each line of the access log. `timer` returns seconds from an arbitrary start.
    `compress` compresses a body with gzip. An answer weighs at most `largest` bytes (aws.weigh).
    With `guarded`, the first pointer is compared with the witness (AsOf). `spent` is True after an
    answer missed its deadline: then the application and its repository must be replaced.
    """

    spent = False
    unreachable = "The repository cannot be reached at the moment; try again later."
    too_large = "The response is too large."

    def __init__(
        self,
        repository: Repository,
        settings: Configuration,
        clock: Callable[[], datetime],
        log: Callable[[str], None] | None,
        timer: Callable[[], float],
        compress: Callable[[bytes], bytes],
        largest: int | None,
        *,
        guarded: bool,
    ) -> None:
        self._repository, self._settings = repository, settings
        self._clock, self._timer = clock, timer
        self._compress, self._largest = compress, largest
        self._present = AsOf(
            repository,
            clock,
            settings["serve.pointer_seconds"],
            settings["serve.clock_allowance"],
            guarded=guarded,
        )
        self._places = threading.BoundedSemaphore(settings["serve.concurrent"])
        self._log = None if log is None else AccessLog(log)
        configured = settings["repository.base_url"].rstrip("/")
        self._base = configured.removesuffix(OAI_PATH) if configured.endswith(OAI_PATH) else ""
        self.mount = urlsplit(self._base).path

    @abstractmethod
    def answer(self, call: Call, seconds: float | None = None, request: str = "") -> HttpResponse:
        """Answer a request, with 503 if the answer is not ready within `seconds`.

        `request` is Lambda's identifier of the request, for the log.
        """

    def prepare(self) -> None:
        """Read ahead what every answer needs. Raises StoreError."""
        self._manifest()

    def _manifest(self) -> Manifest:
        return self._repository.manifest(self._present.reading().entry.snapshot)

    def _attempt(
        self, call: Call, seconds: float | None, make: Callable[[], Reply | HttpResponse]
    ) -> HttpResponse:
        """Return the answer that `make` gives; 503 if it fails or takes longer than `seconds`."""
        if seconds is None:
            return self._limit(call, make)
        try:
            return deadline.answer_within(seconds, lambda: self._limit(call, make))
        except deadline.DeadlineError:
            self.spent = True
            _LOG.error("no answer within %.1f s: %a %a", seconds, call.method, call.path)
            refusal = self._unavailable("This takes too long at the moment; try again later.")
            return http_message.write(refusal, call, self._compress)

    def _limit(self, call: Call, make: Callable[[], Reply | HttpResponse]) -> HttpResponse:
        """Answer if fewer than `serve.concurrent` calls are running: a wait could be endless."""
        if not self._places.acquire(blocking=False):
            refusal = self._unavailable("Too many requests at the moment; try again later.")
            return http_message.write(refusal, call, self._compress)
        try:
            answer = make()
            if isinstance(answer, Reply):
                answer = http_message.write(answer, call, self._compress)
            if self._fits(answer):
                return answer
            _LOG.error("an answer of %d bytes is too large: %a", answer.size, call.path)
            message = self.too_large
        except NothingPublished as error:
            _LOG.error("%s", error)
            message = "Nothing is published here yet; try again later."
        except StoreError as error:
            # The cause is for the operator, not for clients.
            _LOG.error("%s: %s", type(error).__name__, error)
            message = self.unreachable
        except Exception:  # noqa: BLE001 - told in the error log
            # 503 and not 500: harvesters retry after 503 and give up after 500. Unforeseen causes
            # (memory, a file that just vanished) often pass by then.
            _LOG.exception("a request was not answered: %a %a", call.method, call.path)
            message = "Something went wrong here; try again later."
        finally:
            self._places.release()
        return http_message.write(self._unavailable(message), call, self._compress)

    def _fits(self, response: HttpResponse) -> bool:
        """Return whether a response is small enough for Lambda."""
        return self._largest is None or aws.weigh(response) <= self._largest

    def _unavailable(self, message: str) -> Reply:
        return http_message.unavailable(message, self._settings["serve.retry_seconds"])
