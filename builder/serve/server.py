"""A local HTTP server in front of the very handler that answers on AWS."""

import errno
import logging
import socket
from collections.abc import Callable
from typing import Any
from wsgiref.types import WSGIEnvironment

from isal import isal_zlib
from waitress.adjustments import Adjustments
from waitress.server import MultiSocketServer, TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher
from waitress.wasyncore import close_all

from builder.errors import UsageError
from builder.serve.connection import Connection, event

Handler = Callable[[dict[str, Any]], dict[str, Any]]
"""An event of API Gateway's HTTP API in; status, headers and a body out: bytes, or an iterator of
them that has a `close` and raises SheafError where it breaks off."""

_LEVEL, _GZIP = 2, 31
_LONGEST_BODY = 1 << 20
_CONNECTIONS = 512
"""Connections that may be open at once; where there are more, the rest wait to be accepted."""
_IN_KERNEL = 1 << 18
"""Bytes of an answer that the kernel may hold. Left to itself it holds megabytes, and until a part
of these is taken nothing tells who reads slowly from who does not read at all."""
_UNBOUNDED = 1 << 40
"""Bytes of output at which a thread waits for a client: never."""


# It warns whenever a request has to wait for a thread, which is what a queue is for.
logging.getLogger("waitress.queue").setLevel(logging.ERROR)


def gzipped(body: bytes) -> bytes:
    """Return a body in the coding gzip, ten times as fast as zlib and about as small.

    The same body gives the same bytes, for no time is told.
    """
    found: bytes = isal_zlib.compress(body, _LEVEL, _GZIP)
    return found


class LocalServer:
    """A server that listens already, at `url`; `run` serves until `close`."""

    def __init__(
        self, handler: Handler, host: str, port: int, threads: int, patience: int = 60
    ) -> None:
        """Listen at `host`; port 0 takes any free one. Raises UsageError if that cannot be.

        A client that for `patience` seconds neither asks nor takes what it asked for is cut off.
        """
        if not 0 <= port <= 65_535:
            raise UsageError(f"port {port}: expected a number from 0 to 65535")
        self._server: Any
        self._sockets: dict[int, Any] = {}
        self._closed = False
        try:
            settings = Adjustments(
                host=host, port=port, threads=threads, ident="sheaf",
                max_request_body_size=_LONGEST_BODY, connection_limit=_CONNECTIONS,
                asyncore_use_poll=True, outbuf_high_watermark=_UNBOUNDED,
                channel_timeout=patience, cleanup_interval=1,
            )  # fmt: skip
            self._server = _listening(_application(handler), settings, self._sockets)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise UsageError(
                    f"port {port} of {host} is taken: name another by --port"
                ) from error
            raise UsageError(
                f"cannot listen at {host}:{port}: {error.strerror or error}"
            ) from error
        except (ValueError, OverflowError) as error:
            raise UsageError(f"cannot listen at {host}:{port}: {error}") from error
        several = isinstance(self._server, MultiSocketServer)
        bound = self._server.effective_listen[0][1] if several else self._server.effective_port
        shown = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
        self.url = f"http://{f'[{shown}]' if ':' in shown else shown}:{bound}"

    def run(self) -> None:
        """Serve until interrupted, or closed by another thread."""
        try:
            self._server.run()
        except OSError:
            if not self._closed:  # else a socket was closed while it was waited for
                raise

    def close(self) -> None:
        """Stop listening, and end the threads that answer."""
        self._closed = True
        self._server.task_dispatcher.shutdown()
        self._server.close()
        # What keeps its connection, and asks for nothing, would be waited for without end.
        close_all(self._sockets, ignore_all=True)


class _Listener(TcpWSGIServer):
    """Accepts the connections at one address; cuts off those that stand still."""

    channel_class = Connection

    def set_socket_options(self, conn: Any) -> None:
        super().set_socket_options(conn)
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _IN_KERNEL)

    def add_task(self, task: Any) -> None:
        if task.total_outbufs_len:
            task.held = True
        else:
            super().add_task(task)

    def maintenance(self, now: float) -> None:
        # Waitress spares every connection with a request, and closes the others when they take
        # something, which those that do not read never do.
        latest = now - self.adj.channel_timeout
        connections: Any = self.active_channels
        for connection in [*connections.values()]:
            answering = connection.requests and not connection.total_outbufs_len
            if connection.last_activity < latest and not answering:
                connection.handle_close()


def _listening(application: Any, settings: Any, sockets: dict[int, Any]) -> Any:
    """Return a server for every address of the host, as waitress' create_server does.

    It keeps its `sockets` by their handles.

    Raises OSError.
    """
    threads = ThreadedTaskDispatcher()
    threads.set_thread_count(settings.threads)
    listeners: list[Any] = [
        _Listener(application, sockets, dispatcher=threads, adj=settings, sockinfo=address)
        for address in settings.listen
    ]
    if len(listeners) == 1:
        return listeners[0]
    bound = [(listener.effective_host, listener.effective_port) for listener in listeners]
    return MultiSocketServer(sockets, settings, bound, threads)


def _application(handler: Handler) -> Callable[[WSGIEnvironment, object], dict[str, Any]]:
    """Return what waitress calls, with what only it knows to be in front of it."""
    return lambda environment, _: handler(event(environment))
