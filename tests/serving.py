"""The worker of `sheaf serve` in a thread of the test, so that a test sees what it answers from."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gunicorn.app.base import BaseApplication

from builder.serve.server import Listeners, ServerLog
from builder.serve.worker import PatientWorker
from functions.http import wsgi
from functions.http.http_message import Call, HttpResponse


class _Settings(BaseApplication):
    def __init__(self, application: wsgi.WsgiApplication, threads: int, connections: int) -> None:
        self._application = application
        self._values = {
            "threads": threads,
            "worker_connections": connections,
            "keepalive": 60,
            "graceful_timeout": 20,
            "limit_request_line": 0,
        }
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._values.items():
            self.cfg.set(name, value)

    def load(self) -> wsgi.WsgiApplication:
        return self._application


class _Worker(PatientWorker):
    def init_signals(self) -> None:
        """A thread has no signals."""


class Serving:
    """A worker that listens; `end` stops it when the responses in progress are complete."""

    def __init__(
        self,
        answer: Callable[[Call], HttpResponse],
        host: str = "127.0.0.1",
        *,
        threads: int = 64,
        connections: int = 1000,
        patience: float = 60,
        mount: str = "",
    ) -> None:
        listeners = Listeners(host, 0)
        self.url = listeners.url
        for listener in listeners.sockets:
            listener.setblocking(False)
        settings = _Settings(wsgi.make_application(answer, mount), threads, connections)
        log = ServerLog(settings.cfg)
        self.worker = _Worker(1, os.getppid(), listeners.sockets, settings, 0, settings.cfg, log)
        self.worker.PATIENCE = self.worker.HEAD = patience
        self._thread = threading.Thread(target=self.worker.init_process, daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", int(self.url.rpartition(":")[2])

    def end(self, seconds: float = 30) -> None:
        self.worker.handle_exit(None, None)
        self._thread.join(seconds)
        assert not self._thread.is_alive()


@contextmanager
def serving(
    answer: Callable[[Call], HttpResponse], host: str = "127.0.0.1", **limits: Any
) -> Iterator[Serving]:
    """Serve what `answer` answers."""
    server = Serving(answer, host, **limits)
    try:
        yield server
    finally:
        server.end()
