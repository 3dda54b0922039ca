"""Server with several processes: one accepts connections, and the workers answer requests.

Each connection goes to the worker with the fewest connections. Workers that share one socket or use
SO_REUSEPORT would get connections by chance: two harvesters could both fall to one core.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any

from builder.ingest.pool import defer_interrupts
from builder.serve.connection import Handler
from builder.serve.server import CONNECTIONS, PATIENCE, Listeners, OpenConnections
from functions.snapshot.errors import SheafError

_LOG = logging.getLogger("sheaf")

Service = Callable[[int, socket.socket], AbstractContextManager[tuple[Handler, int]]]
"""Opens a worker's handler, and gives its number of threads. Its arguments are the worker's number,
from 0, and a socket to the first process. It can be pickled. Raises SheafError.
"""

_CONNECTION, _READY, _TAKEN, _ENDED = b"c", b"r", b"t", b"e"
_LONGEST_END = 15.0
"""Seconds for a worker to end; responses in progress have less (server)."""
_PAUSE = 1.0
"""Seconds before a worker that ended before it was ready is started again."""


class WorkerError(SheafError):
    """A worker ended before it was ready; it has written the reason to standard error."""


@dataclass(eq=False)
class Worker:
    """A worker process, and the socket that passes connections to it."""

    number: int
    process: multiprocessing.process.BaseProcess
    control: socket.socket
    connections: int = 0
    passed: deque[socket.socket] = field(default_factory=deque)
    """Connections that were passed to it, in order, and that it has not taken yet."""
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class WorkerServer:
    """A server of `count` processes. It already listens at `url`; `run` serves until `close`.

    `lend`, if any, serves the other end of each worker's socket (Service).
    """

    def __init__(
        self,
        service: Service,
        host: str,
        port: int,
        count: int,
        lend: Callable[[socket.socket], object] | None = None,
    ) -> None:
        """Listen at `host`; port 0 takes any free one. Raises UsageError if this fails."""
        self._listeners = Listeners(host, port)
        self.url = self._listeners.url
        self._service = service
        self._count = count
        self._lend = lend
        self._workers: list[Worker] = []
        self._waiting: list[socket.socket] = []
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._places = asyncio.Semaphore(CONNECTIONS)

    def run(self, begun: Callable[[], object] = lambda: None) -> None:
        """Serve until stopped, and call `begun` when all workers are ready.

        Responses in progress are finished. Raises WorkerError if a worker cannot start.
        """
        try:
            self._loop.run_until_complete(self._serve(begun))
        finally:
            self._listeners.close()
            for worker in self._workers:
                worker.process.kill()
            self._loop.close()

    def close(self) -> None:
        """Stop `run`. Safe in any thread and in a signal handler."""
        with suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._stopped.set)

    async def _serve(self, begun: Callable[[], object]) -> None:
        for number in range(self._count):
            self._start(number)
        stopped = asyncio.ensure_future(self._stopped.wait())
        if await self._begin(stopped):
            begun()
            accepting = asyncio.ensure_future(self._listeners.accept(self._take, self._places))
            await stopped
            accepting.cancel()
            await asyncio.wait([accepting])
        self._listeners.close()
        for worker in self._workers:
            with suppress(OSError):
                worker.control.shutdown(socket.SHUT_WR)
        ends = [asyncio.ensure_future(worker.ended.wait()) for worker in self._workers]
        if ends:
            await asyncio.wait(ends, timeout=_LONGEST_END)

    async def _begin(self, stopped: asyncio.Future[Any]) -> bool:
        """Wait until all workers are ready; return False if the server is stopped before."""
        for worker in [*self._workers]:
            states: list[asyncio.Future[Any]] = [
                asyncio.ensure_future(one.wait()) for one in (worker.ready, worker.ended)
            ]
            await asyncio.wait([*states, stopped], return_when=asyncio.FIRST_COMPLETED)
            for state in states:
                state.cancel()
            if stopped.done():
                return False
            if not worker.ready.is_set():
                raise WorkerError(f"worker {worker.number + 1} cannot start")
        return True

    def _start(self, number: int) -> None:
        ours, theirs = socket.socketpair()
        door, lent = socket.socketpair()
        context = multiprocessing.get_context("spawn")  # DuckDB has threads, which a fork loses
        process = context.Process(
            target=_work, args=(number, theirs, door, self._service), daemon=True
        )
        with theirs, door, defer_interrupts():  # only this process receives Ctrl-C
            process.start()
        if self._lend is None:
            lent.close()
        else:
            self._lend(lent)
        ours.setblocking(False)
        worker = Worker(number, process, ours)
        self._workers.append(worker)
        self._loop.add_reader(ours, self._hear, worker)

    def _hear(self, worker: Worker) -> None:
        """Handle a worker's message: it is ready, took connections, or ended them."""
        try:
            said = worker.control.recv(4096)
        except OSError:
            said = b""
        if not said:
            self._bury(worker)
            return
        if _READY in said:
            worker.ready.set()
            waiting, self._waiting = self._waiting, []
            for sock in waiting:
                self._take(sock)
        for _ in range(said.count(_TAKEN)):
            worker.passed.popleft().close()
        self._free(worker, said.count(_ENDED))

    def _free(self, worker: Worker, count: int) -> None:
        worker.connections -= count
        for _ in range(count):
            self._places.release()

    def _bury(self, worker: Worker) -> None:
        """Start another worker in place of one that ended.

        Connections that it had not taken go to the others: their requests are still unread.
        """
        self._loop.remove_reader(worker.control)
        worker.control.close()
        worker.ended.set()
        self._workers.remove(worker)
        self._free(worker, worker.connections - len(worker.passed))
        for sock in worker.passed:
            self._take(sock)
        if not self._stopped.is_set() and worker.ready.is_set():
            _LOG.error("worker %d ended and is replaced", worker.number + 1)
            self._start(worker.number)
        elif not self._stopped.is_set():
            self._loop.call_later(_PAUSE, self._start_again, worker.number)

    def _start_again(self, number: int) -> None:
        if not self._stopped.is_set():
            self._start(number)

    def _take(self, sock: socket.socket) -> None:
        """Pass a connection to a worker; without any worker, wait for the next one."""
        ready = [worker for worker in self._workers if worker.ready.is_set()]
        for worker in sorted(ready, key=lambda one: one.connections):
            with suppress(OSError):  # it is about to end
                socket.send_fds(worker.control, [_CONNECTION], [sock.fileno()])
                worker.connections += 1
                worker.passed.append(sock)
                return
        self._waiting.append(sock)


def _work(number: int, control: socket.socket, door: socket.socket, service: Service) -> None:
    """Serve connections in a worker process, until the first process closes `control`."""
    code = 0
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with service(number, door) as (handler, threads):
            asyncio.run(_answer(control, handler, threads))
    except SheafError as error:
        print(f"sheaf: {error}", file=sys.stderr, flush=True)
        code = 2
    finally:
        os._exit(code)  # a thread that waits for a dead disk would delay the end


async def _answer(control: socket.socket, handler: Handler, threads: int) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    connections = OpenConnections(handler, threads, PATIENCE)
    control.setblocking(False)

    def report(message: bytes) -> None:
        with suppress(OSError):  # the first process has ended
            control.send(message)

    def receive() -> None:
        try:
            data, handles, *_ = socket.recv_fds(control, 1, 1)
        except BlockingIOError:
            return
        except OSError:
            data, handles = b"", []
        if not data:
            loop.remove_reader(control)
            ended.set()
        for handle in handles:
            report(_TAKEN)
            connections.add(socket.socket(fileno=handle), lambda: report(_ENDED))

    loop.add_reader(control, receive)
    control.send(_READY)
    await ended.wait()
    await connections.end()
