"""A worker of gunicorn that gives a thread only to a request that is there.

gunicorn's own worker with threads (gthread 27) waits in a thread for the rest of a head, so that a
few clients that send a byte now and then hold all threads. Here the poller reads the request, and
a thread gets it whole. What is tried after that, framing included, is gunicorn's.
"""

import errno
import re
import selectors
import signal
import socket
import time
from collections import defaultdict
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn import util
from gunicorn.workers.gthread import TConn, ThreadWorker

from functions.http.wsgi import LONGEST_BODY

_LONGEST_HEAD = 1 << 18
"""Maximum bytes of a request line with its headers."""
_AT_ONCE = 1 << 16
"""Bytes that are read from a socket at once."""
_MOST_ACCEPTED = 64
"""Connections that are accepted before others are served again."""
_PAUSE = 0.002
"""Seconds for which a worker leaves a new connection to those that have fewer."""
_SWEEP = 0.25
"""Seconds between two searches for connections whose deadline is over."""
_NO_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_FRAMING = re.compile(rb"\r\n(content-length|transfer-encoding|expect):[ \t]*([^\r\n]*)", re.I)
_LAST_CHUNK = re.compile(rb"\r\n0+[ \t]*(?:;[^\r\n]*)?\r\n(?:[^\r\n]+\r\n)*\r\n")

Address = tuple[str, int]


class HeldConnection(TConn):  # type: ignore[misc]
    """A connection, and the bytes of its next request so far.

    It ends at `deadline`, by the monotonic clock, unless the request is whole by then.
    """

    def __init__(self, worker: "PatientWorker", sock: socket.socket, client: Any, server: Any):
        super().__init__(worker.cfg, sock, client, server)
        self.data_ready = True  # a thread never waits for the first byte
        self.patience = worker.PATIENCE
        self.deadline = 0.0
        self.received = bytearray()
        self.is_ending = False

    def init(self) -> None:
        """Prepare the connection for a thread, and hand over what was read."""
        super().init()
        # The whole of a piece must be taken in this time, or the client is cut off.
        self.sock.settimeout(self.patience)
        self.parser.unreader.unread(bytes(self.received))
        self.received.clear()

    def is_whole(self) -> bool:
        """Return whether a request was read, or what shows that it will be refused.

        This only says how long to wait. gunicorn decides where a request ends.
        """
        # Empty lines may precede a request (RFC 9112, section 2.2).
        begin = len(self.received) - len(self.received.lstrip(b"\r\n"))
        end = self.received.find(b"\r\n\r\n", begin)
        if end < 0:
            return False
        framing = _FRAMING.findall(self.received, begin, end + 2)
        if not framing:
            return True
        name, value = framing[0][0].lower(), framing[0][1].strip()
        body = len(self.received) - end - 4
        if len(framing) == 1 and name == b"content-length" and value.isdigit():
            return len(value) > 18 or not body < int(value) <= LONGEST_BODY
        if len(framing) == 1 and name == b"transfer-encoding" and value.lower() == b"chunked":
            return body > LONGEST_BODY or bool(_LAST_CHUNK.search(self.received, end + 2))
        return True  # a client waits for leave to go on, or contradicts itself


class PatientWorker(ThreadWorker):  # type: ignore[misc]
    """Serves with threads, and holds connections without one until their request is there."""

    HEAD = 10.0
    """Seconds for a request to come, from its first byte or from the connection's beginning."""
    PATIENCE = 60.0
    """Seconds for an idle connection, and for a client to take a piece of a response."""
    LINGER = 10.0
    """Seconds for which the rest of a refused request is read. A connection that is closed while
    bytes arrive is reset, and the client may lose the response (RFC 9112, section 9.6).
    """
    counts: Any = None
    """The number of connections of each worker, by number, in memory that all share. A worker
    leaves new connections to those that have fewer.
    """
    number = 0

    def init_process(self) -> None:
        """Begin to serve."""
        self.waiting: dict[HeldConnection, None] = {}  # connections without a thread
        # Those of them that have sent nothing, by address, the oldest first.
        self.silent: dict[str, dict[HeldConnection, None]] = defaultdict(dict)
        self.swept = 0.0
        self._count(0)
        super().init_process()

    def init_signals(self) -> None:
        """Leave Ctrl-C to the first process, which ends its workers."""
        super().init_signals()
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def accept(self, listener: Any) -> None:
        """Accept connections, of which each waits for its request."""
        if self.counts is not None and self.nr_conns > min(self.counts):
            time.sleep(_PAUSE)
        for _ in range(_MOST_ACCEPTED):
            try:
                client, address = listener.accept()
            except OSError as error:
                if error.errno not in _NO_RESOURCES:
                    return
                if not self._drop_silent():
                    time.sleep(_PAUSE)  # until other connections have ended
                    return
                continue
            self._count(1)
            if self.nr_conns >= self.worker_connections:
                self._drop_silent()
            connection = HeldConnection(self, client, address, listener.getsockname())
            self._hold(connection, self.HEAD)

    def handle_request(self, req: Any, conn: HeldConnection) -> bool:
        """Answer a request; a client that announces too large a body is not told to send it."""
        if int(dict(req.headers).get("CONTENT-LENGTH", 0)) > LONGEST_BODY:
            req._expected_100_continue = False
            req.force_close()
        goes_on: bool = super().handle_request(req, conn)
        return goes_on

    def finish_request(self, conn: HeldConnection, fs: "Future[bool]") -> None:
        """Wait for the connection's next request, or end it."""
        try:
            goes_on = fs.result() and self.alive
        except Exception:  # noqa: BLE001 - gunicorn has logged it
            goes_on = False
        try:
            conn.sock.setblocking(False)
            if goes_on:
                conn.received += conn.parser.unreader.take_buffered()
                if conn.is_whole():
                    self.enqueue_req(conn)
                else:
                    self._hold(conn, self.HEAD if conn.received else self.PATIENCE)
            else:
                conn.sock.shutdown(socket.SHUT_WR)
                conn.is_ending = True
                self._hold(conn, self.LINGER if self.alive else _SWEEP)
        except OSError:
            self._close(conn)

    def murder_pending(self) -> None:
        """End connections whose deadline is over; at the worker's end, all without a request."""
        now = time.monotonic()
        if self.alive and now < self.swept + _SWEEP:
            return
        self.swept = now
        for conn in [*self.waiting]:
            if conn.deadline <= now or not (self.alive or conn.received or conn.is_ending):
                self._release(conn)
                self._close(conn)

    def _hold(self, conn: HeldConnection, seconds: float) -> None:
        conn.deadline = time.monotonic() + seconds
        self.waiting[conn] = None
        if not conn.received:
            self.silent[conn.client[0]][conn] = None
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._read, conn))

    def _release(self, conn: HeldConnection) -> None:
        del self.waiting[conn]
        self._leave_silent(conn)
        self.poller.unregister(conn.sock)

    def _leave_silent(self, conn: HeldConnection) -> None:
        address = conn.client[0]
        self.silent[address].pop(conn, None)
        if not self.silent[address]:
            del self.silent[address]

    def _read(self, conn: HeldConnection, _: object) -> None:
        """Read from a connection; give its request to a thread when it is whole."""
        try:
            data = conn.sock.recv(_AT_ONCE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._release(conn)
            # A client may close its side behind its request, which then cannot be completed.
            self._close(conn)
        elif not conn.is_ending:
            if not conn.received:
                conn.deadline = time.monotonic() + self.HEAD
                self._leave_silent(conn)
            conn.received += data
            if conn.is_whole():
                self._release(conn)
                self.enqueue_req(conn)
            elif len(conn.received) > _LONGEST_HEAD and b"\r\n\r\n" not in conn.received:
                # The head is too long: it is answered, and read on for a while.
                conn.is_ending = True
                conn.deadline = time.monotonic() + self.LINGER
                conn.received.clear()
                with suppress(OSError):
                    util.write_error(conn.sock, 431, "Request Header Fields Too Large", "")
                    conn.sock.shutdown(socket.SHUT_WR)

    def _drop_silent(self) -> bool:
        """End the connection that is silent for longest, of the address that has most of these."""
        if not self.silent:
            return False
        crowd = max(self.silent.values(), key=len)
        conn = next(iter(crowd))
        self._release(conn)
        self._close(conn)
        return True

    def _close(self, conn: HeldConnection) -> None:
        conn.close()
        self._count(-1)

    def _count(self, change: int) -> None:
        self.nr_conns += change
        if self.counts is not None:
            self.counts[self.number] = self.nr_conns
