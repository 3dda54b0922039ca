"""Budgets: how long a file may take, and how large it may be."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from builder.http.errors import Deferred, NotHad


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to connect, to the first byte of an answer, and in all; bytes a second, and bytes.

    The rate is that of as long as a first byte may take, over and over: what began quickly and
    trickles then is slow.
    """

    connect: float
    first_byte: float
    total: float
    rate: float
    bytes: int


@dataclass(slots=True)
class Budget:
    """What is left of the time for one exchange. It is begun by being made.

    `stop` ends it at once, from another thread.
    """

    limits: Limits
    stop: threading.Event
    clock: Callable[[], float] = time.monotonic
    _end: float = field(init=False)
    _phase_end: float = field(init=False)
    _code: str = field(init=False, default="connect-timeout")
    _came: float | None = field(init=False, default=None)
    _got: int = field(init=False, default=0)
    _looked: tuple[float, int] = field(init=False, default=(0.0, 0))

    def __post_init__(self) -> None:
        now = self.clock()
        self._end = now + self.limits.total
        self._phase_end = now + self.limits.connect

    def connected(self) -> None:
        """The connection stands: from now on an answer is awaited."""
        self._phase_end = self.clock() + self.limits.first_byte
        self._code = "no-answer"

    def answered(self) -> None:
        """The head of the answer is there: from now on bytes are to come."""
        self._came = self.clock()
        self._code = "too-slow"
        self._phase_end = self._came + self.limits.first_byte
        self._looked = self._came, 0

    def took(self, many: int) -> None:
        """Count bytes of the body. Raises NotHad if they are too many, or came too slowly."""
        self._got += many
        if self._got > self.limits.bytes:
            raise NotHad("too-large", f"more than {self.limits.bytes:,} bytes")
        now = self.clock()
        since, came = now - self._looked[0], self._got - self._looked[1]
        if self._came is not None and since > self.limits.first_byte:
            if came < self.limits.rate * since:
                raise NotHad("too-slow", f"{came:,} bytes in {since:,.0f} s")
            self._looked = now, self._got
        self._came = now
        self._phase_end = now + self.limits.first_byte
        self.left()

    def handled(self) -> None:
        """What came was put where it belongs: the time that this took is not the server's."""
        now = self.clock()
        if self._came is not None:
            self._looked = self._looked[0] + now - self._came, self._looked[1]
        self._phase_end = now + self.limits.first_byte

    def left(self) -> float:
        """Return the seconds that the next step may take. Raises NotHad if there are none."""
        if self.stop.is_set():
            raise Deferred("ended")
        now = self.clock()
        if now >= self._end:
            raise NotHad("too-long", f"more than {self.limits.total:g} s")
        if now >= self._phase_end:
            raise NotHad(self._code)
        return min(self._end, self._phase_end) - now
