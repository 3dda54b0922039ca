"""State that an AWS Lambda execution environment keeps between invocations.

The environment is frozen between invocations and nothing may run then, so there is no read-ahead.

A faulty configuration or a store that cannot be opened does not end the instance. Each request is
answered with 503 and one line in the log, and the next request tries again, since the cause may
pass. If initialisation failed instead, Lambda would repeat it for each request. The gateway would
answer 500, at which harvesters give up, and the message would be the last line of a traceback.
After 503 they retry, and alarms on API errors fire all the same.
"""

import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apig_wsgi import make_lambda_handler

from functions.config import configuration
from functions.config.configuration import Configuration
from functions.http import aws, deadline, http_message, origin, wsgi
from functions.http.access_log import AccessLog
from functions.http.http_message import Call, HttpResponse, Reply
from functions.http.service import Service
from functions.reading.duck_repository import DuckRepository
from functions.snapshot.errors import SheafError
from functions.store import catalog
from functions.store.slice import open_reader

_LOG = logging.getLogger("sheaf")

MARGIN = 1.5
"""Seconds before Lambda's timeout at which an answer is abandoned: the 503 takes time as well."""

_READ_AHEAD = 5.0
"""Seconds for reading ahead of the first request; Lambda allows ten for initialisation."""

_GRACE = 5.0
"""Seconds for which used parts of the bucket stay on the small disk. A few suffice: a request opens
its parts at once, and requests do not overlap."""

_PROGRAM = 256
"""Megabytes of memory that the program itself takes, with the largest pages."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Limits in megabytes for the database, rows in memory, and parts of the bucket on disk."""

    database: int
    rows: int
    disk: int

    @classmethod
    def of(cls, memory: int, disk: int) -> "Shares":
        """Divide an instance's memory and its free disk space, both in megabytes.

        Half of the disk stays free: recently used parts remain beyond the limit, and the database
        may have to write as well.
        """
        spare = max(0, memory - _PROGRAM)
        return cls(
            database=min(512, max(64, spare // 2)),
            rows=min(64, max(8, spare // 8)),
            disk=max(16, disk // 2),
        )


@dataclass(frozen=True, slots=True)
class InstanceParts:
    """What an application is made of: a repository, its configuration and where they come from.

    `root` is the folder of the configuration; `log` takes each line of the access log.
    """

    repository: DuckRepository
    settings: Configuration
    root: Path
    environment: Mapping[str, str]
    log: Callable[[str], None] | None


class Instance:
    """Answers events one at a time, as Lambda sends them, each by its deadline.

    `environment` is read again where it may change. `root` is the folder of the program, which may
    hold a sheaf.toml. `write` takes each line of the access log. `make` returns the application.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        root: Path,
        write: Callable[[str], None],
        make: Callable[[InstanceParts], Service],
    ) -> None:
        self._make = make
        self._environment = environment
        self._root = root
        self._write = write
        # All bodies go in base64: a binary one would be refused as text, and a text grow by more.
        self._handle = make_lambda_handler(
            self._respond, binary_support=True, non_binary_content_type_prefixes=()
        )
        catalog.collect_less_often()  # before the store is opened, which may have to be repeated
        self._opened = ExitStack()
        """Closes the store, even if a thread still uses it for a while."""
        self._application = self._open()
        if self._application is not None:
            self._prepare(self._application)

    def __call__(self, event: dict[str, Any], context: object = None) -> dict[str, Any]:
        """Answer an event; `context` is Lambda's."""
        try:
            return self._handle(event, context)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            _LOG.error("no gateway writes such an event: %s", type(error).__name__)
            return {"statusCode": 400, "headers": {}, "body": "", "isBase64Encoded": False}

    def _respond(self, environ: dict[str, Any], start: wsgi.StartResponse) -> Iterable[bytes]:
        """Answer the request of an event, as a WSGI application."""
        try:
            response = self._answer(environ)
        except wsgi.RequestError as error:
            response = HttpResponse(
                error.status, {"Content-Type": "text/plain"}, f"{error}\n".encode()
            )
        return wsgi.send(response, environ, start)

    def _answer(self, environ: dict[str, Any]) -> HttpResponse:
        context = environ["apig_wsgi.context"]
        request = str(getattr(context, "aws_request_id", None) or "")
        call = aws.read_call(environ)
        if not origin.is_trusted(call, self._environment):
            return self._reply(call, request, origin.REFUSAL)
        application = self._application = self._application or self._open()
        if application is None:
            seconds = configuration.default("serve.retry_seconds")
            text = "The repository is not ready; try again later."
            return self._reply(call, request, http_message.unavailable(text, seconds))
        call = wsgi.mount_call(call, application.mount)
        response = application.answer(call, _seconds(context), request)
        if application.spent:
            self._close_store()
        return response

    def _prepare(self, application: Service) -> None:
        """Read ahead for the first request; that request reports any failure."""
        try:
            deadline.answer_within(_READ_AHEAD, application.prepare)
        except deadline.DeadlineError:
            _LOG.warning("read-ahead did not finish within %.1f s", _READ_AHEAD)
            self._close_store()
        except SheafError as error:
            _LOG.warning("read-ahead failed: %s", error)
        except Exception:  # noqa: BLE001 - told in the log, and to be tried again
            _LOG.exception("read-ahead failed")

    def _close_store(self) -> None:
        """Make the next request open the store again, because a thread may hold its locks."""
        self._opened.close()
        self._application = None

    def _open(self) -> Service | None:
        """Open the configured store; log a failure and return None."""
        try:
            return self._start()
        except SheafError as error:
            _LOG.error("%s", error)
        except Exception:  # noqa: BLE001 - told in the log, and to be tried again
            _LOG.exception("the store cannot be opened")
        return None

    def _start(self) -> Service:
        settings = configuration.load(self._root / configuration.FILE, self._environment)
        write = self._write if settings["serve.access_log"] else None
        memory = int(self._environment.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE") or 1024)
        free = shutil.disk_usage(tempfile.gettempdir()).free >> 20
        shares = Shares.of(memory, free)
        settings = settings.having("store.cache", min(settings["store.cache"], shares.disk))
        with ExitStack() as opened:
            reader = open_reader(
                settings["store.uri"], self._root, settings, self._environment, _GRACE
            )
            opened.callback(reader.close)
            repository = DuckRepository(reader, shares.rows << 20, memory=shares.database)
            opened.callback(repository.close)
            application = self._make(
                InstanceParts(repository, settings, self._root, self._environment, write)
            )
            self._opened = opened.pop_all()
        return application

    def _reply(self, call: Call, request: str, reply: Reply) -> HttpResponse:
        """Answer without the application, which would write this line of the log."""
        begun = time.perf_counter()
        response = http_message.write(reply, call)
        if request:
            response = replace(response, log_fields={"request": request})
        took = time.perf_counter() - begun
        AccessLog(self._write).add(now(), call, response, took)
        return response


def _seconds(context: object) -> float | None:
    """Return the seconds left for an answer; None if Lambda sets no timeout."""
    left = getattr(context, "get_remaining_time_in_millis", None)
    if left is None:
        return None
    seconds = float(left()) / 1000
    return max(seconds - MARGIN, seconds / 2)


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


def write(line: str) -> None:
    """Write a line of the access log to standard output."""
    # In a single write, because Lambda makes an entry of each.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def start(make: Callable[[InstanceParts], Service]) -> Instance:
    """Return what answers the events of this execution environment."""
    root = Path(os.environ.get("LAMBDA_TASK_ROOT") or Path(__file__).parents[2])
    return Instance(os.environ, root, write, make)
