"""A server in several processes: one accepts connections, and workers answer them.

Each connection goes to the worker that has the fewest. Workers that accept for themselves, by one
socket or by SO_REUSEPORT, get connections by chance: of two harvesters both may fall to one core.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import sys
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
"""Opens what a worker answers with: a handler, and for how many threads. It is given the worker's
number, from 0, and a socket to ask the first process by. It can be pickled. Raises SheafError."""

_CONNECTION, _READY, _ENDED = b"c", b"r", b"e"
_LONGEST_END = 15.0
"""Seconds for a worker to end; answers under way have less than that (server)."""
_PAUSE = 1.0
"""Seconds before a worker is started again that ended before it could answer."""


class WorkerError(SheafError):
    """A worker ended before it could answer; it has said why on standard error."""


@dataclass(eq=False)
class Worker:
    """A process that answers, and the socket by which it is given connections."""

    number: int
    process: multiprocessing.process.BaseProcess
    control: socket.socket
    connections: int = 0
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class WorkerServer:
    """A server of `count` processes. It listens already, at `url`; `run` serves until `close`.

    `lend`, if any, answers at the other end of each worker's socket (Service).
    """

    def __init__(
        self,
        service: Service,
        host: str,
        port: int,
        count: int,
        lend: Callable[[socket.socket], object] | None = None,
    ) -> None:
        """Listen at `host`; port 0 takes any free one. Raises UsageError if that cannot be."""
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
        """Serve until stopped, and call `begun` once all workers can answer.

        Answers under way end first. Raises WorkerError where a worker cannot start.
        """
        try:
            self._loop.run_until_complete(self._serve(begun))
        finally:
            self._listeners.close()
            for worker in self._workers:
                worker.process.kill()
            self._loop.close()

    def close(self) -> None:
        """Have `run` end. It is safe in any thread, and in a signal's handler."""
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
        """Wait until all workers can answer; return False where the server is stopped first."""
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
        with theirs, door, defer_interrupts():  # this process alone hears Ctrl-C
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
        """Take note of what a worker says: that it is ready, or that connections ended."""
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
        self._free(worker, said.count(_ENDED))

    def _free(self, worker: Worker, count: int) -> None:
        worker.connections -= count
        for _ in range(count):
            self._places.release()

    def _bury(self, worker: Worker) -> None:
        """Start another worker in the place of one that ended."""
        self._loop.remove_reader(worker.control)
        worker.control.close()
        worker.ended.set()
        self._workers.remove(worker)
        self._free(worker, worker.connections)
        if not self._stopped.is_set() and worker.ready.is_set():
            _LOG.error("worker %d ended, and another takes its place", worker.number + 1)
            self._start(worker.number)
        elif not self._stopped.is_set():
            self._loop.call_later(_PAUSE, self._start_again, worker.number)

    def _start_again(self, number: int) -> None:
        if not self._stopped.is_set():
            self._start(number)

    def _take(self, sock: socket.socket) -> None:
        """Hand a connection to a worker; where there is none, when there is one again."""
        ready = [worker for worker in self._workers if worker.ready.is_set()]
        for worker in sorted(ready, key=lambda one: one.connections):
            with suppress(OSError):  # it is about to end
                socket.send_fds(worker.control, [_CONNECTION], [sock.fileno()])
                worker.connections += 1
                sock.close()
                return
        self._waiting.append(sock)


def _work(number: int, control: socket.socket, door: socket.socket, service: Service) -> None:
    """Answer connections in a process of its own, until the first process closes `control`."""
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

    def report() -> None:
        with suppress(OSError):  # the first process has ended
            control.send(_ENDED)

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
            connections.add(socket.socket(fileno=handle), report)

    loop.add_reader(control, receive)
    control.send(_READY)
    await ended.wait()
    await connections.end()
