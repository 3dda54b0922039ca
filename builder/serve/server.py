"""Local HTTP server for the same handler that runs on AWS."""

import asyncio
import errno
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from isal import isal_zlib

from builder.errors import UsageError
from builder.serve.connection import ClientConnection, Handler
from builder.serve.threads import Threads

_LEVEL, _GZIP = 2, 31
PATIENCE = 60.0
"""Seconds after which an idle client is disconnected."""
CONNECTIONS = 512
"""Maximum number of open connections; further ones wait to be accepted."""
_BACKLOG = 1024
_IN_KERNEL = 1 << 18
"""Bytes of a response in the kernel's buffer. Its default is megabytes. The time limit for a
client that does not read begins when this buffer is full.
"""
_GRACE = 8.0
"""Seconds for responses in progress when the server stops; containers are killed after 10."""
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def compress(body: bytes) -> bytes:
    """Return a body in the coding gzip, ten times as fast as zlib at about the same size.

    The same body gives the same bytes, because the header has no time.
    """
    found: bytes = isal_zlib.compress(body, _LEVEL, _GZIP)
    return found


class OpenConnections:
    """The open connections of an event loop, served by `handler` in `threads` threads."""

    def __init__(self, handler: Handler, threads: int, patience: float) -> None:
        self._handler = handler
        self._threads = Threads(threads)
        self._patience = patience
        self._open: dict[asyncio.Task[None], ClientConnection] = {}

    def add(self, sock: socket.socket, ended: Callable[[], object]) -> None:
        """Serve an accepted connection, and then call `ended`."""
        sock.setblocking(False)
        connection = ClientConnection(sock, self._handler, self._threads, self._patience)
        task = asyncio.get_running_loop().create_task(connection.serve())
        self._open[task] = connection
        task.add_done_callback(lambda done: (self._open.pop(done), ended()))

    async def end(self) -> None:
        """End all connections: idle ones at once, others after their response."""
        for connection in self._open.values():
            connection.end()
        for seconds in (_GRACE, 1.0):
            if self._open:
                await asyncio.wait([*self._open], timeout=seconds)
            for connection in self._open.values():
                connection.abort()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait([*self._open], timeout=1.0)
        self._threads.close()


class Listeners:
    """Sockets that listen at every address of a host, at `url`."""

    def __init__(self, host: str, port: int) -> None:
        """Listen at `host`; port 0 takes any free one. Raises UsageError if this fails."""
        if not 0 <= port <= 65_535:
            raise UsageError(f"port {port}: expected a number from 0 to 65535")
        self.sockets: list[socket.socket] = []
        try:
            for family, (name, number, *rest) in _addresses(host, port):
                # All addresses use the same port, even if it was chosen freely.
                number = number or (self.sockets and self.sockets[0].getsockname()[1]) or 0
                self.sockets.append(_listen(family, (name, number, *rest)))
        except (OSError, ValueError) as error:
            self.close()
            if getattr(error, "errno", 0) == errno.EADDRINUSE:
                raise UsageError(
                    f"port {port} of {host} is in use: choose another with --port"
                ) from error
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot listen at {host}:{port}: {reason}") from error
        bound = self.sockets[0].getsockname()[1]
        shown = "127.0.0.1" if host in ("0.0.0.0", "::", "", "*") else host
        self.url = f"http://{f'[{shown}]' if ':' in shown else shown}:{bound}"

    async def accept(
        self, take: Callable[[socket.socket], None], places: asyncio.Semaphore
    ) -> None:
        """Accept connections forever; each takes one of the `places`, which `take` releases."""
        await asyncio.gather(*(_accept(one, take, places) for one in self.sockets))

    def close(self) -> None:
        """Stop listening."""
        for one in self.sockets:
            one.close()


class LocalServer:
    """A server in one process. It already listens at `url`; `run` serves until `close`."""

    def __init__(
        self, handler: Handler, host: str, port: int, threads: int, patience: float = PATIENCE
    ) -> None:
        """Listen at `host`; port 0 takes any free one. Raises UsageError if this fails.

        A client that neither sends nor reads for `patience` seconds is disconnected.
        """
        self._listeners = Listeners(host, port)
        self.url = self._listeners.url
        self._handler = handler
        self._threads = threads
        self._patience = patience
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()

    def run(self, begun: Callable[[], object] = lambda: None) -> None:
        """Serve until stopped by another thread or a signal; responses in progress are finished.

        `begun` is called when the server is ready.
        """
        try:
            self._loop.run_until_complete(self._serve(begun))
        finally:
            self._listeners.close()
            self._loop.close()

    def close(self) -> None:
        """Stop `run`. Safe in any thread and in a signal handler."""
        with suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._stopped.set)

    async def _serve(self, begun: Callable[[], object]) -> None:
        connections = OpenConnections(self._handler, self._threads, self._patience)
        places = asyncio.Semaphore(CONNECTIONS)
        accepting = asyncio.ensure_future(
            self._listeners.accept(lambda sock: connections.add(sock, places.release), places)
        )
        begun()
        await self._stopped.wait()
        accepting.cancel()
        await asyncio.wait([accepting])
        self._listeners.close()
        await connections.end()


async def _accept(
    listener: socket.socket, take: Callable[[socket.socket], None], places: asyncio.Semaphore
) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await places.acquire()
        try:
            connection, _ = await loop.sock_accept(listener)
        except OSError as error:
            places.release()
            if error.errno in _FULL:
                await asyncio.sleep(0.1)  # until other connections have ended
            continue
        take(connection)


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, Any]]:
    """Return the addresses of a host; "*" means all of this machine. Raises OSError."""
    found = socket.getaddrinfo(
        None if host in ("*", "") else host,
        port,
        type=socket.SOCK_STREAM,
        flags=socket.AI_PASSIVE,
    )
    return [*dict.fromkeys((family, address) for family, _, _, _, address in found)]


def _listen(family: socket.AddressFamily, address: Any) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _IN_KERNEL)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
