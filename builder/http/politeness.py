"""Politeness: when a host may be asked, how long it rests, what its robots.txt allows.

A host is a name, without the port. Requests to it start at least `interval` seconds apart, and at
most `concurrent` of them run at once. After a failure it rests, twice as long each time.

The rules of robots.txt (RFC 9309) are kept for each origin. The only file that imports protego.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from protego import Protego

from builder.http import limits
from builder.http.errors import OUTCOMES, Deferred, FetchError

_LONGEST_REST = 86_400.0
_LONGEST_DELAY = 120.0
"""The longest delay in seconds between two requests that a robots.txt can demand."""
GIVEN_UP = 3
"""Failed connections in a row after which a host is given up."""
_RESTS = frozenset({"server-error", "too-many-requests", "no-answer", "too-slow", "bad-answer"})
_TICK = 0.5
_EVERY = 10.0
LARGEST_ROBOTS = 512_000
"""Bytes of a robots.txt that are read; the rest is ignored."""
_KEPT = 86_400.0
_KEPT_FAILURE = 1_800.0


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """Seconds between requests to a host, requests at once, and seconds of the first rest.

    A host that was given up is tried again after `forgives` seconds.
    """

    interval: float = 0.0
    concurrent: int = 1
    rest: float = 0.0
    forgives: float = math.inf


@dataclass(slots=True)
class _Host:
    ready: float = 0.0
    active: int = 0
    promised: int = 0
    interval: float = 0.0
    failures: int = 0
    why: str = ""
    unreached: int = 0
    given_up: FetchError | None = None
    forgiven: float = math.inf


@dataclass(slots=True)
class HostQueue:
    """Gives out slots at hosts, and records how each host behaves. Safe to use from threads."""

    policy: HostPolicy
    stop: threading.Event
    clock: Callable[[], float] = time.monotonic
    _next_line: float = field(init=False, default=-math.inf)
    _hosts: dict[str, _Host] = field(init=False, default_factory=dict)
    _changed: threading.Condition = field(init=False, default_factory=threading.Condition)

    @contextmanager
    def slot(
        self,
        host: str,
        until: float = math.inf,
        rested: float | None = None,
        stop: limits.Stop | None = None,
    ) -> Iterator[None]:
        """Wait until the host has a free slot and a request may start, and hold the slot.

        Raises Deferred if that would be after `until`, if the host rests until `rested` or
        longer, or if `stop` is set. Raises FetchError for a host that was given up.
        """
        rested = until if rested is None else rested

        def wait() -> None:
            now, state = self.clock(), self._host(host)
            if self.stop.is_set() or (stop is not None and stop.is_set()):
                raise Deferred("ended")
            if now >= until or (state.ready >= rested and not state.active):
                raise Deferred(f"{host} must not be asked again")
            self._announce(host, state)
            self._changed.wait(min(max(state.ready - now, 0.01), _TICK))

        with self._changed:
            while not self._is_free(host):
                wait()
            self._hosts[host].active += 1
        try:
            with self._changed:
                state = self._host(host)
                while state.ready > self.clock():
                    wait()
                state.ready = self.clock() + max(self.policy.interval, state.interval)
            yield
        finally:
            with self._changed:
                self._hosts[host].active -= 1
                self._changed.notify_all()

    @contextmanager
    def first_free(self, hosts: Iterable[str], until: float) -> Iterator[str | None]:
        """Wait for a host that may be asked, and reserve it; None if `until` comes first."""
        name = self._first_free(list(hosts), until)
        try:
            yield name
        finally:
            if name is not None:
                with self._changed:
                    self._hosts[name].promised -= 1
                    self._changed.notify_all()

    def _first_free(self, listed: list[str], until: float) -> str | None:
        with self._changed:
            while listed and not self.stop.is_set():
                now = self.clock()
                hosts = [self._host(name) for name in listed]
                for name, host in zip(listed, hosts, strict=True):
                    busy = max(host.active, host.promised) >= self.policy.concurrent
                    if host.given_up or (not busy and host.ready <= now):
                        host.promised += 1
                        return name
                soonest = min(host.ready for host in hosts)
                if soonest < until:
                    self._announce(*min(zip(listed, hosts, strict=True), key=lambda h: h[1].ready))
                working = any(host.active or host.promised for host in hosts)
                if now >= until or (soonest >= until and not working):
                    return None
                self._changed.wait(min(max(soonest - now, 0.01), _TICK))
        return None

    def resting(self, until: float) -> list[str]:
        """Return the hosts that must not be asked before `until`, sorted."""
        with self._changed:
            return sorted(n for n, h in self._hosts.items() if h.ready >= until and not h.given_up)

    def slow_down(self, host: str, seconds: float) -> None:
        """Keep at least this many seconds between requests to the host from now on."""
        with self._changed:
            state = self._host(host)
            state.interval = max(state.interval, seconds)

    def interval(self, host: str) -> float:
        """Return the seconds between requests to the host, as far as it was asked."""
        with self._changed:
            return max(self.policy.interval, self._host(host).interval)

    def has_given_up(self, host: str) -> bool:
        """Return whether a host was unreachable too often, and is not requested at present."""
        with self._changed:
            return self._host(host).given_up is not None

    def succeed(self, host: str) -> None:
        """Record a response that shows no problem of the server."""
        with self._changed:
            state = self._host(host)
            state.failures = state.unreached = 0

    def fail(self, host: str, failure: FetchError) -> None:
        """Record a failure. Let the host rest if it is the cause, or give it up."""
        unreachable = OUTCOMES[failure.code].unreachable
        if not (unreachable or failure.code in _RESTS or failure.retry_after):
            if failure.status is not None:  # from a healthy server
                self.succeed(host)
            return
        with self._changed:
            state = self._host(host)
            state.failures, state.why = state.failures + 1, str(failure)
            state.unreached = state.unreached + 1 if unreachable else 0
            if state.unreached >= GIVEN_UP:
                state.given_up = failure.copy()
                state.forgiven = self.clock() + self.policy.forgives
            rest = failure.retry_after
            if rest is None:
                rest = limits.backoff(self.policy.rest, state.failures, _LONGEST_REST)
            state.ready = max(state.ready, self.clock() + min(rest, _LONGEST_REST))
            self._changed.notify_all()

    def _announce(self, name: str, host: _Host) -> None:
        """Tell that a host rests after a failure; at most one line in `_EVERY` seconds."""
        now = self.clock()
        if host.failures and host.ready - now >= limits.ANNOUNCED and now >= self._next_line:
            self._next_line = now + _EVERY
            limits.announce_wait(name, host.why, host.ready - now)

    def _host(self, host: str) -> _Host:
        return self._hosts.setdefault(host, _Host())

    def _is_free(self, host: str) -> bool:
        state = self._host(host)
        if state.given_up and self.clock() >= state.forgiven:
            state.given_up = None
            state.unreached = GIVEN_UP - 1
        if state.given_up:
            detail = (
                f"not requested: {host} could not be reached {GIVEN_UP} times: "
                f"{state.given_up.detail}"
            )
            raise FetchError(state.given_up.code, detail)
        return state.active < self.policy.concurrent and state.ready <= self.clock()


@dataclass(frozen=True, slots=True)
class RobotRules:
    """The rules of one robots.txt."""

    parsed: Protego

    def allow(self, url: str, agent: str) -> bool:
        """Return whether the agent, by its product's name, may request the URL."""
        return self.parsed.can_fetch(url, agent)

    def sitemaps(self) -> list[str]:
        """Return the URLs of the sitemaps that it names."""
        return list(self.parsed.sitemaps)

    def delay(self, agent: str) -> float:
        """Return the seconds to leave between two requests, at most 120; 0 without a demand."""
        return min(self.parsed.crawl_delay(agent) or 0.0, _LONGEST_DELAY)


def parse_robots(status: int, body: bytes) -> RobotRules:
    """Return the rules of a response. Raises FetchError if the server failed: nothing is allowed.

    A status of 4xx other than 429 means that there is no such file, and allows everything.
    """
    if status == 200:
        return RobotRules(
            Protego.parse(body[:LARGEST_ROBOTS].decode("utf-8", "replace").lstrip("\ufeff"))
        )
    if status == 429 or status >= 500:
        raise FetchError("robots-unreachable", f"HTTP status {status}", status)
    return RobotRules(Protego.parse(""))


@dataclass(slots=True)
class _KnownRules:
    lock: threading.Lock = field(default_factory=threading.Lock)
    until: float = 0.0
    result: RobotRules | FetchError | None = None


@dataclass(slots=True)
class Robots:
    """The rules of each origin (scheme, host, port), kept for a day. Safe to use from threads."""

    clock: Callable[[], float] = time.monotonic
    _cached: dict[str, _KnownRules] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def rules(self, origin: str, read: Callable[[], RobotRules]) -> RobotRules:
        """Return the rules of an origin, from `read` if they are not known. Raises FetchError.

        A failure of the server is remembered for half an hour.
        """
        with self._lock:
            cached = self._cached.setdefault(origin, _KnownRules())
        with cached.lock:
            if cached.result is None or cached.until <= self.clock():
                seconds = _KEPT
                try:
                    cached.result = read()
                except FetchError as failure:
                    if failure.code != "robots-unreachable":
                        raise
                    cached.result, seconds = failure.copy(), _KEPT_FAILURE
                cached.until = self.clock() + seconds
            if isinstance(cached.result, FetchError):
                raise cached.result.copy()
            return cached.result
