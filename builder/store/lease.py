"""Leases: a process holds a name in a store for a time, so that others wait instead of working.

A lease is an object that is written under a condition. Its holder renews it until the work ends.
One whose holder has ended expires. If a holder was suspended for longer, another process may hold
the same name: a lease saves work twice done, but only conditional writes keep results correct.
"""

import contextlib
import json
import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.snapshot.store import Writer

_LOG = logging.getLogger("sheaf")
_SECONDS = 120.0
"""Seconds for which a lease is valid, more than clocks of machines differ."""
_RENEWED = 3
"""How often it is renewed in that time."""
_WAIT = 1.0


@dataclass(frozen=True, slots=True)
class Leases:
    """Leases in a store. `wall` counts seconds since 1970; `sleep` waits for seconds."""

    store: Writer
    wall: Callable[[], float]
    sleep: Callable[[float], None]
    seconds: float = _SECONDS

    @contextmanager
    def hold(self, key: str, go_on: Callable[[], None]) -> Iterator[None]:
        """Hold the lease at `key`.

        `go_on` is called while another process holds it, and may raise. Raises StoreError.
        """
        holder, is_told = secrets.token_hex(8), False
        while (tag := self._take(key, holder)) is None:
            if not is_told:
                most = f"; if it was killed, for at most {self.seconds:,.0f} s"
                _LOG.warning("waiting for another process, which holds %s%s", key, most)
            is_told = True
            go_on()
            self.sleep(_WAIT)
        end = self._keep(key, holder, tag)
        try:
            yield
        finally:
            end()

    def announce(self, key: str) -> Callable[[], None]:
        """Show at `key` that this process works; return what ends that. Raises StoreError.

        Whoever announced the same before is replaced.
        """
        holder = secrets.token_hex(8)
        while True:
            try:
                tag = self.store.replace(key, self._document(holder), self.store.tag(key))
            except Conflict:
                continue
            return self._keep(key, holder, tag)

    def is_valid(self, key: str) -> bool:
        """Return whether a process holds the lease, as far as its clock and this one agree."""
        until = self._read(key).get("until")
        return isinstance(until, int | float) and self.wall() < until <= self.wall() + 2 * _SECONDS

    def _keep(self, key: str, holder: str, tag: str) -> Callable[[], None]:
        """Renew a lease in a thread; return a function that ends that and removes the lease."""
        ended = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(key, holder, tag, ended), daemon=True)
        renewing.start()

        def end() -> None:
            ended.set()
            renewing.join()
            with contextlib.suppress(StoreError):  # it expires
                if self._holder(key) == holder:
                    self.store.remove(key)

        return end

    def _take(self, key: str, holder: str) -> str | None:
        """Write the lease if nobody holds it, and return its tag; None if another process does."""
        tag = self.store.tag(key)
        if tag is not None and self.is_valid(key):
            return None
        try:
            return self.store.replace(key, self._document(holder), tag)
        except Conflict:
            return None

    def _renew(self, key: str, holder: str, tag: str, ended: threading.Event) -> None:
        """Write the lease again and again, until it has ended or another process has it."""
        while not ended.wait(self.seconds / _RENEWED):
            with contextlib.suppress(StoreError):  # it may still be renewed in time
                try:
                    tag = self.store.replace(key, self._document(holder), tag)
                except Conflict:  # it expired, or the last write succeeded without a response
                    now = self.store.tag(key)
                    if now is None or self._holder(key) != holder:
                        return
                    tag = self.store.replace(key, self._document(holder), now)

    def _document(self, holder: str) -> bytes:
        return json.dumps({"holder": holder, "until": self.wall() + self.seconds}).encode()

    def _holder(self, key: str) -> object:
        return self._read(key).get("holder")

    def _read(self, key: str) -> dict[str, object]:
        """Return the lease, empty if there is none or if it cannot be parsed."""
        with contextlib.suppress(MissingObject, ValueError):
            lease = json.loads(self.store.read(key))
            return lease if isinstance(lease, dict) else {}
        return {}
