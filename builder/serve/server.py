"""The server of `sheaf serve`: gunicorn with its processes, around any WSGI application.

asyncio servers (uvicorn, hypercorn) were tried: one keeps an unread body of 600 MB in memory, and
a client cannot read that its request was too large. granian leaves a slow head open and drops the
authority of a target in absolute form.
"""

import errno
import io
import json
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any

from gunicorn import sock
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from isal import igzip, isal_zlib

from builder.errors import UsageError
from builder.serve.worker import PatientWorker
from functions.http.wsgi import WsgiApplication
from functions.snapshot.errors import SheafError, describe_failure

_LOG = logging.getLogger("sheaf")

_LEVEL, _GZIP = 2, 31
_PIECE = 1 << 16
_BACKLOG = 1024
_IN_KERNEL = 1 << 18
"""Bytes of a response in the kernel's buffer. Its default is megabytes. The time limit for a
client that does not read begins when this buffer is full.
"""
_THREADS = 512
"""Maximum number of responses in progress in a worker: each has a thread while it is sent. How many
are made at once is limited by serve.concurrent."""
_CONNECTIONS = 20_000
"""Maximum number of open connections of a worker, if it may open so many files."""
_FILES = 256
"""Files that a worker opens besides connections."""
_GRACE = 8
"""Seconds for responses in progress when the server stops; containers are killed after 10."""

Opener = Callable[[int], tuple[WsgiApplication, Callable[[], object]]]
"""Opens the application of a worker, by its number from 0, and returns it with what closes it.
Raises SheafError.
"""


def compress(body: bytes) -> bytes:
    """Return a body in the coding gzip, ten times as fast as zlib at about the same size.

    The same body gives the same bytes, because the header has no time.
    """
    data: bytes = isal_zlib.compress(body, _LEVEL, _GZIP)
    return data


def inflate(file: io.FileIO) -> Iterator[bytes]:
    """Yield in pieces the body that `compress` made the rest of a file of, and close the file."""
    with file, igzip.IGzipFile(fileobj=file) as body:  # type: ignore[no-untyped-call]
        while piece := body.read(_PIECE):
            yield piece


class Listeners:
    """Sockets that listen at every address of a host, at `url`."""

    def __init__(self, host: str, port: int) -> None:
        """Listen at `host`; port 0 takes any free one. Raises UsageError if this fails."""
        if not 0 <= port <= 65_535:
            raise UsageError(f"port {port}: expected a number from 0 to 65535")
        self.sockets: list[socket.socket] = []
        try:
            places = socket.getaddrinfo(
                None if host in ("*", "") else host,  # None means all addresses of this machine
                port,
                type=socket.SOCK_STREAM,
                flags=socket.AI_PASSIVE,
            )
            addresses: dict[Any, None] = dict.fromkeys((place[0], place[4]) for place in places)
            for family, (name, number, *rest) in addresses:
                # All addresses use the same port, even if it was chosen freely.
                number = number or (self.sockets and self.sockets[0].getsockname()[1]) or 0
                self.sockets.append(_listen(family, (name, number, *rest)))
        except (OSError, ValueError) as error:
            for listener in self.sockets:
                listener.close()
            if getattr(error, "errno", 0) == errno.EADDRINUSE:
                raise UsageError(
                    f"port {port} of {host} is in use: choose another with --port"
                ) from error
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot listen at {host}:{port}: {reason}") from error
        bound = self.sockets[0].getsockname()[1]
        shown = "127.0.0.1" if host in ("0.0.0.0", "::", "", "*") else host
        self.url = f"http://{f'[{shown}]' if ':' in shown else shown}:{bound}"


class ServerLog(Logger):  # type: ignore[misc]
    """Passes gunicorn's errors to Sheaf's log; its other lines are for its developers."""

    def setup(self, cfg: Any) -> None:
        """Use Sheaf's log."""
        self.error_log = _LOG
        self.access_log.disabled = True

    def exception(self, msg: str, *args: object, **kwargs: object) -> None:
        """Log an error; one line if it is Sheaf's own, which broke a response off."""
        error = sys.exc_info()[1]
        if isinstance(error, SheafError):
            _LOG.error("a response broke off: %s", error)
        elif error is not None:
            _LOG.exception(msg, *args)

    def warning(self, msg: str, *args: object, **kwargs: object) -> None:
        """Drop what a client did wrong."""

    info = warning


class Server(BaseApplication):  # type: ignore[misc]
    """Serves what `opener` returns in `count` processes; it listens already, at `url`.

    `ready` is called once, by the last worker that is ready.
    """

    def __init__(
        self, opener: Opener, host: str, port: int, count: int, ready: Callable[[], object]
    ) -> None:
        """Listen at `host`; port 0 takes any free one. Raises UsageError if this fails."""
        self._opener = opener
        self._count = count
        self._ready = ready
        self._listeners = Listeners(host, port)
        self.url = self._listeners.url
        self._workers: list[object] = [None] * count  # by number; None for one that has ended
        self._started = multiprocessing.Value("i", 0)
        self._failures, self._failure = multiprocessing.Pipe(duplex=False)  # to the first process
        self._worker: Any = None  # the one of this process
        self._close: Callable[[], object] = lambda: None
        PatientWorker.counts = multiprocessing.RawArray("i", count)
        super().__init__()

    def load_config(self) -> None:
        """Set what differs from gunicorn's defaults."""
        for name, value in {
            "worker_class": PatientWorker,
            "workers": self._count,
            "threads": _THREADS,
            "worker_connections": _raise_limit(),
            "keepalive": int(PatientWorker.PATIENCE),
            "graceful_timeout": _GRACE,
            "timeout": 0,
            "limit_request_line": 0,  # the head is limited as a whole, by the worker
            "secure_scheme_headers": {},
            "control_socket_disable": True,
            "logger_class": ServerLog,
            "pre_fork": self._choose_number,
            "child_exit": self._free_number,
            "post_worker_init": self._tell_ready,
        }.items():
            self.cfg.set(name, value)

    def load(self) -> WsgiApplication:
        """Open the application in a worker; its failure is told to the first process."""
        try:
            application, self._close = self._opener(self._worker.number)
            return application
        except SheafError as error:
            if self._started.value < self._count:  # at the start, a failure ends the server
                self._failure.send(error)
                os.kill(os.getppid(), signal.SIGTERM)
                sys.exit()
            _LOG.error("a worker cannot start: %s", error)
            sys.exit(1)

    def run(self) -> None:
        """Serve until stopped by a signal; a second one ends responses in progress.

        Raises the SheafError of a worker that cannot start.
        """
        arbiter, process = _Arbiter(self), os.getpid()
        descriptors = [os.dup(listener.fileno()) for listener in self._listeners.sockets]
        arbiter.LISTENERS = sock.create_sockets(self.cfg, arbiter.log, descriptors)
        for listener in self._listeners.sockets:
            listener.close()
        try:
            arbiter.run()
        except SystemExit as end:
            if os.getpid() != process:
                self._close()
                # A thread that waits for a dead disk would delay the end of a worker.
                os._exit(int(end.code or 0))
            if self._failures.poll():
                raise self._failures.recv() from None

    def _choose_number(self, _: Arbiter, worker: PatientWorker) -> None:
        worker.number = self._workers.index(None)
        self._workers[worker.number] = self._worker = worker

    def _free_number(self, _: Arbiter, worker: PatientWorker) -> None:
        self._workers[worker.number] = None

    def _tell_ready(self, _: PatientWorker) -> None:
        with self._started.get_lock():
            self._started.value += 1
            if self._started.value == self._count:
                self._ready()


class _Arbiter(Arbiter):  # type: ignore[misc]
    """Ends gracefully on Ctrl-C, too."""

    def handle_int(self) -> None:
        """End as on SIGTERM; a second signal ends at once (Arbiter.stop)."""
        self.handle_term()


def _raise_limit() -> int:
    """Let workers open as many files as they may; return their number of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS + _FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    limit = wanted if soft == resource.RLIM_INFINITY else min(soft, wanted)
    return max(limit - _FILES, _THREADS + 1)


def _listen(family: socket.AddressFamily, address: Any) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _IN_KERNEL)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


class LogFile(WatchedFileHandler):
    """Appends lines to a file, or to a new one if it was moved. Errors are raised, not printed."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Raise the error that is being handled."""
        raise


class LogLines(logging.Handler):
    """Writes errors and messages to standard error, each as a JSON object in a line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; a traceback is a field of it."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {
            "time": when.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["trace"] = logging.Formatter().formatException(record.exc_info)
        to_standard_error(json.dumps(entry, separators=(",", ":")))

    def install(self) -> None:
        """Take what Sheaf logs in this process, and in those that it starts."""
        _LOG.handlers = [self]
        _LOG.setLevel(logging.INFO)


def to_standard_error(line: str) -> None:
    """Write a line to standard error."""
    # In one call: print writes the newline separately, and other threads could come between.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def open_log(name: str, folder: Path) -> Callable[[str], None] | None:
    """Return the writer of the log `name`: a file relative to `folder`, "-" for stderr, or None.

    Raises UsageError if the file cannot be opened.
    """
    if not name:
        return None
    if name == "-":
        return to_standard_error
    path = folder / name
    try:
        handler = LogFile(path, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"access log {path}: {describe_failure(error)}") from error

    def write(line: str) -> None:
        handler.handle(logging.makeLogRecord({"msg": line}))

    return write
