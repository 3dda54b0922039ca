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
from functions.snapshot.errors import DamagedStore, MissingObject, NothingPublished, StoreError
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import Pointer
from functions.store.s3_request import Tally

_LOG = logging.getLogger("sheaf")

PATIENCE = 10.0
"""Seconds for which a call waits for its turn. A harvester that is refused waits much longer."""
_WAITING = 4
"""How many calls may wait for each that runs: a queue that is endless refuses nobody in time."""


class Service(ABC):
    """Answers calls from one repository. Thread-safe.

    `log` takes each line of the access log. `timer` returns seconds from an arbitrary start.
    `compress` compresses a body with gzip. An answer weighs at most `largest` bytes (aws.weigh).
    `spent` is True after an answer missed its deadline: then the application and its repository
    must be replaced.
    """

    spent = False
    unreachable = "The repository cannot be reached at the moment; try again later."
    damaged = "A file that this needs is damaged or missing here; the operator has to restore it."
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
    ) -> None:
        self._repository, self._settings = repository, settings
        self._clock, self.timer = clock, timer
        self.compress, self._largest = compress, largest
        self._present = AsOf(
            repository,
            clock,
            settings["serve.pointer_seconds"],
            settings["serve.clock_allowance"],
        )
        self._places = threading.BoundedSemaphore(settings["serve.concurrent"])
        self._queue = threading.BoundedSemaphore(settings["serve.concurrent"] * (1 + _WAITING))
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

    def find_pointer(self) -> Pointer | None:
        """Return the pointer as it was read last, if that still serves; this never waits."""
        reading = self._present.find_reading()
        return None if reading is None else reading.pointer

    def log(
        self, call: Call, response: HttpResponse, begun: float, cost: Tally | None = None
    ) -> None:
        """Log an answer; `begun` is the timer's time when the call came."""
        if self._log is not None:
            self._log.add(self._clock(), call, response, self.timer() - begun, cost)

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
            return http_message.write(refusal, call, self.compress)

    def _limit(self, call: Call, make: Callable[[], Reply | HttpResponse]) -> HttpResponse:
        """Answer when fewer than `serve.concurrent` calls are running.

        503 if too many wait already, or if that takes longer than PATIENCE.
        """
        if self._queue.acquire(blocking=False):
            try:
                if self._places.acquire(timeout=PATIENCE):
                    return self._make_answer(call, make)
            finally:
                self._queue.release()
        refusal = self._unavailable("Too many requests at the moment; try again later.")
        return http_message.write(refusal, call, self.compress)

    def _make_answer(self, call: Call, make: Callable[[], Reply | HttpResponse]) -> HttpResponse:
        """Answer a call that has a place, and free the place; 503 if `make` fails."""
        try:
            answer = make()
            if isinstance(answer, Reply):
                answer = http_message.write(answer, call, self.compress)
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
            is_lasting = isinstance(error, DamagedStore | MissingObject)
            message = self.damaged if is_lasting else self.unreachable
        except Exception:  # noqa: BLE001 - told in the error log
            # 503 and not 500: harvesters retry after 503 and give up after 500. Unforeseen causes
            # (memory, a file that just vanished) often pass by then.
            _LOG.exception("a request was not answered: %a %a", call.method, call.path)
            message = "Something went wrong here; try again later."
        finally:
            self._places.release()
        return http_message.write(self._unavailable(message), call, self.compress)

    def _fits(self, response: HttpResponse) -> bool:
        """Return whether a response is small enough for Lambda."""
        return self._largest is None or aws.weigh(response) <= self._largest

    def _unavailable(self, message: str) -> Reply:
        return http_message.unavailable(message, self._settings["serve.retry_seconds"])
