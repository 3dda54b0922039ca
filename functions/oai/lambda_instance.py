"""Instances: what an execution environment of AWS Lambda keeps between its invocations.

It is frozen in between, and nothing of it may run then: there is no reading ahead.

A configuration that is faulty, or a store that cannot be opened, does not end the instance: it
answers 503, and the log has one line, each time. Ended in its initialisation, it would be begun
anew for each request, answered by the gateway with 500, at which harvesters give up, and the line
would be the last of a traceback. With 503 they ask again, the alarms on errors of the API go off
all the same, and what is wrong may pass: it is tried again with each request.
"""

import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from functions.config import configuration
from functions.config.configuration import Configuration
from functions.database import cache
from functions.http import access_log, deadline, gateway, message
from functions.http.access_log import AccessLog
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.snapshot.errors import SheafError
from functions.snapshot.store import Reader
from functions.store.reader import open_reader

_LOG = logging.getLogger("sheaf")

_ROOT = Path(__file__).parents[2]

MARGIN = 1.5
"""Seconds before Lambda's own end at which an answer is given up: to say so takes some as well."""

_PREPARING = 5.0
"""Seconds for what is read ahead of the first request; an initialisation may take ten."""

_KEPT = 5.0
"""Seconds for which parts of the bucket stay that were used: a request opens them at once, and
there is no other one at the same time. The disk is small."""

_PROGRAM = 256
"""Megabytes of memory that the program itself takes, with the largest pages."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What each may take, in megabytes: the database, rows in memory, and parts of the bucket."""

    database: int
    rows: int
    disk: int

    @classmethod
    def of(cls, memory: int, disk: int) -> "Shares":
        """Divide an instance's megabytes of memory, and those that are free on its disk.

        Half of the disk is left free: what was used a moment ago stays beyond the limit, and the
        database may have to write as well.
        """
        spare = max(0, memory - _PROGRAM)
        return cls(
            database=min(512, max(64, spare // 2)),
            rows=min(64, max(8, spare // 8)),
            disk=max(16, disk // 2),
        )


class Answering(Protocol):
    """Answers events from one repository, as functions.oai.handler's Application does."""

    spent: bool

    def __call__(self, event: object, seconds: float | None, request: str) -> dict[str, Any]:
        """Answer one event within so many seconds."""
        ...

    def prepare(self) -> None:
        """Read what every answer needs. Raises StoreError."""
        ...


@dataclass(frozen=True, slots=True)
class InstanceParts:
    """What an application is made of: a repository, its configuration, and where both are from.

    `root` is the folder of the configuration; `log` takes each line of the access log.
    """

    repository: DuckRepository
    settings: Configuration
    root: Path
    environment: Mapping[str, str]
    log: Callable[[str], None] | None


@dataclass(frozen=True, slots=True)
class Serving:
    """A store that is open, and what answers from it."""

    application: Answering
    repository: DuckRepository
    reader: Reader

    def close(self) -> None:
        """Let go of all of it, also where a thread goes on with some of it for a while."""
        self.repository.close()
        self.reader.close()


class Instance:
    """Answers events, each by its deadline. Takes one at a time, as Lambda gives them.

    `environment` is read anew where that may change, `root` is the folder of the program, in which
    a sheaf.toml may lie, and `write` takes each line of the access log. `make` returns what
    answers.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        root: Path,
        write: Callable[[str], None],
        make: Callable[[InstanceParts], Answering],
    ) -> None:
        self._make = make
        self._environment = environment
        self._root = root
        self._write = write
        cache.seldom_searched()  # before the store is opened, which may have to be done once more
        self._serving = self._open()
        if self._serving is not None:
            self._prepare(self._serving)

    def __call__(self, given: object, context: object = None) -> dict[str, Any]:
        """Answer an event; `context` is Lambda's."""
        request = str(getattr(context, "aws_request_id", None) or "")
        serving = self._serving = self._serving or self._open()
        if serving is None:
            return self._refusal(given, request)
        answer = serving.application(given, _seconds(context), request)
        if serving.application.spent:
            self._let_go(serving)
        return answer

    def _prepare(self, serving: Serving) -> None:
        """Read what the first request will need; what goes wrong is for that one to tell."""
        try:
            deadline.within(_PREPARING, serving.application.prepare)
        except deadline.Late:
            _LOG.warning("nothing was read ahead within %.1f s", _PREPARING)
            self._let_go(serving)
        except SheafError as error:
            _LOG.warning("nothing could be read ahead: %s", error)
        except Exception:  # noqa: BLE001 - told in the log, and to be tried again
            _LOG.exception("nothing could be read ahead")

    def _let_go(self, serving: Serving) -> None:
        """Have the store opened anew for the next request: a thread may hold what it needs."""
        serving.close()
        self._serving = None

    def _open(self) -> Serving | None:
        """Open the store that the configuration names; None, and a line in the log, if it fails."""
        try:
            return self._start()
        except SheafError as error:
            _LOG.error("%s", error)
        except Exception:  # noqa: BLE001 - told in the log, and to be tried again
            _LOG.exception("the store cannot be opened")
        return None

    def _start(self) -> Serving:
        settings = configuration.load(self._root / configuration.FILE, self._environment)
        write = self._write if settings["serve.access_log"] else None
        memory = int(self._environment.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE") or 1024)
        free = shutil.disk_usage(tempfile.gettempdir()).free >> 20
        shares = Shares.of(memory, free)
        settings = settings.having("store.cache", min(settings["store.cache"], shares.disk))
        with ExitStack() as opened:
            reader = open_reader(
                settings["store.uri"], self._root, settings, self._environment, _KEPT
            )
            opened.callback(reader.close)
            repository = DuckRepository(reader, shares.rows << 20, memory=shares.database)
            opened.callback(repository.close)
            application = self._make(
                InstanceParts(repository, settings, self._root, self._environment, write)
            )
            opened.pop_all()
        return Serving(application, repository, reader)

    def _refusal(self, given: object, request: str) -> dict[str, Any]:
        begun = time.perf_counter()
        seconds = configuration.default("serve.retry_seconds")
        reply = message.unavailable("The repository is not ready; try again later.", seconds)
        call = gateway.read(given)
        answer = message.write(reply, call)
        took = time.perf_counter() - begun
        told = {"request": request} if request else {}
        AccessLog(self._write).add(access_log.entry(now(), call, answer, told, took))
        return gateway.pack(answer)


def _seconds(context: object) -> float | None:
    """Return how long an answer may take; None where Lambda sets no end."""
    left = getattr(context, "get_remaining_time_in_millis", None)
    if left is None:
        return None
    seconds = float(left()) / 1000
    return max(seconds - MARGIN, seconds / 2)


def now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def write(line: str) -> None:
    """Write a line of the access log to standard output."""
    # In one piece, for Lambda takes each for an entry of its own.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def root(environment: Mapping[str, str]) -> Path:
    """Return the folder of the program as Lambda names it."""
    return Path(environment.get("LAMBDA_TASK_ROOT") or _ROOT)
