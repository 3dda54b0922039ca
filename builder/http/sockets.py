"""Sockets whose waits end with the budget of an exchange, whatever reads from them.

A timeout of urllib3 or http.client bounds a single read. It sees neither the end of an exchange
nor a stop, and a buffered reader cannot go on after it. So the waits are divided here, below both.
"""

import contextlib
import io
import ssl
from typing import Any

from builder.http.limits import Budget

_STEP = 1.0
"""Seconds between two checks of the stop event during a wait."""
_BUFFER = 1 << 16


class BudgetSocket:
    """A connected socket, plain or with TLS. `budget` is that of the current exchange."""

    def __init__(self, connected: Any, budget: Budget) -> None:
        self._socket = connected
        self.budget = budget

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def settimeout(self, seconds: float | None) -> None:
        """Ignore the timeout of a caller: the budget decides."""

    def sendall(self, data: bytes) -> None:
        """Send all bytes. Raises OSError, and FetchError and Deferred of the budget."""
        view = memoryview(data)
        while view:
            self._socket.settimeout(min(self.budget.remaining(), _STEP))
            with contextlib.suppress(TimeoutError):
                view = view[self._socket.send(view) :]

    def receive_into(self, buffer: Any) -> int:
        """Wait for bytes and return their number, 0 at the end. Raises as `sendall` does."""
        while True:
            self._socket.settimeout(min(self.budget.remaining(), _STEP))
            try:
                return int(self._socket.recv_into(buffer))
            except TimeoutError:
                continue
            except ssl.SSLEOFError:
                return 0

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a reader, which keeps the connection open until it is closed itself."""
        return io.BufferedReader(_Reader(self, self._socket.makefile(mode, buffering=0)), _BUFFER)


class _Reader(io.RawIOBase):
    def __init__(self, source: BudgetSocket, holder: io.RawIOBase) -> None:
        self._source = source
        self._holder = holder
        self.has_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._source.receive_into(buffer)
        self.has_ended = not count
        return count

    def close(self) -> None:
        self._holder.close()
        super().close()
