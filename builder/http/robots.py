"""Robots: what a host's robots.txt allows us, as RFC 9309 has it."""

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from protego import Protego

from builder.http.errors import NotHad

LARGEST = 512_000
"""Bytes of a robots.txt that are read; what is behind them is not looked at."""
_KEPT = 86_400.0
_KEPT_FAILURE = 1_800.0
_ANY = 47  # gzip or zlib


@dataclass(frozen=True, slots=True)
class Rules:
    """What one robots.txt says."""

    said: Protego

    def allow(self, url: str, agent: str) -> bool:
        """Tell whether the agent, by its product's name, may ask for the URL."""
        return self.said.can_fetch(url, agent)

    def delay(self, agent: str) -> float:
        """Return the seconds between two requests that it asks for, 0 where it asks for none."""
        return self.said.crawl_delay(agent) or 0.0


def body(headers: Mapping[str, str], came: Iterable[bytes]) -> bytes:
    """Return what there is to be read of a robots.txt, unpacked where the server packed it."""
    found = b""
    for chunk in came:
        found += chunk
        if len(found) >= LARGEST:
            break
    if headers.get("content-encoding", "").strip().lower() in {"gzip", "x-gzip", "deflate"}:
        try:
            return zlib.decompressobj(_ANY).decompress(found, LARGEST)
        except zlib.error:
            return b""
    return found


def parsed(status: int, body: bytes) -> Rules:
    """Return the rules of an answer. Raises NotHad where the server failed: nothing is allowed.

    Where there is no such file (a 4xx but 429) all is allowed.
    """
    if status == 200:
        return Rules(Protego.parse(body[:LARGEST].decode("utf-8", "replace").lstrip("\ufeff")))
    if status == 429 or status >= 500:
        raise NotHad("robots-unreachable", f"HTTP status {status}", status)
    return Rules(Protego.parse(""))


@dataclass(slots=True)
class _Known:
    lock: threading.Lock = field(default_factory=threading.Lock)
    until: float = 0.0
    rules: Rules | None = None
    failure: NotHad | None = None


@dataclass(slots=True)
class Robots:
    """The rules of each origin (scheme, host and port), kept a day; safe to use from threads."""

    clock: Callable[[], float] = time.monotonic
    _known: dict[str, _Known] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def of(self, origin: str, read: Callable[[], Rules]) -> Rules:
        """Return the rules of an origin, by `read` where they are not known.

        Raises NotHad where they could not be had, without asking again for half an hour where the
        server answered, but not with them.
        """
        with self._lock:
            known = self._known.setdefault(origin, _Known())
        with known.lock:
            if known.until > self.clock():
                if known.failure is not None:
                    raise known.failure.told()
                assert known.rules is not None
                return known.rules
            known.rules = known.failure = None
            try:
                known.rules = read()
            except NotHad as failure:
                if failure.code == "robots-unreachable":
                    known.failure, known.until = failure.told(), self.clock() + _KEPT_FAILURE
                raise
            known.until = self.clock() + _KEPT
            return known.rules
