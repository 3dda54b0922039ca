"""Politeness: when a host may be asked, and that it is left alone when it asks or fails.

A host is its name, whatever the port. Between the beginnings of two requests to it lie at least
`interval` seconds, and no more than `at_once` of them run side by side. A host that fails is asked
again only after a rest, each longer than the one before.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from builder.http.errors import Deferred, NotHad
from builder.http.outcomes import OUTCOMES

_LONGEST_REST = 86_400.0
_LONGEST_DELAY = 120.0
"""Seconds between two requests that a robots.txt may ask for."""
GIVEN_UP = 3
"""Times, one behind the other, that a host is not to be reached before it is asked no more."""
_RESTS = frozenset({"server-error", "too-many-requests", "no-answer", "too-slow", "bad-answer"})
_WAIT = 0.5


@dataclass(frozen=True, slots=True)
class Manners:
    """Seconds between requests to a host, how many side by side, and the first rest's seconds.

    A host that was given up is tried once more behind `forgives` seconds.
    """

    interval: float
    at_once: int
    rest: float
    forgives: float = math.inf


@dataclass(slots=True)
class _Host:
    ready: float = 0.0
    active: int = 0
    promised: int = 0
    interval: float = 0.0
    failed: int = 0
    unreached: int = 0
    given_up: NotHad | None = None
    forgiven: float = math.inf


@dataclass(slots=True)
class Hosts:
    """What is known of hosts for as long as a gathering goes on. Safe to use from threads."""

    manners: Manners
    stop: threading.Event
    clock: Callable[[], float] = time.monotonic
    _hosts: dict[str, _Host] = field(init=False, default_factory=dict)
    _changed: threading.Condition = field(init=False, default_factory=threading.Condition)

    @contextmanager
    def visit(self, host: str, until: float, rested: float | None = None) -> Iterator["Visit"]:
        """Wait until the host may be asked, and hold a place at it meanwhile.

        Raises Deferred where that is not before `until`, or it rests until `rested` or longer, if
        that is told; NotHad where it was given up.
        """
        visit = Visit(self, host, until, until if rested is None else rested)
        with self._changed:
            while not self._free(host):
                self._wait_for(visit)
            self._hosts[host].active += 1
        try:
            yield visit
        finally:
            with self._changed:
                self._hosts[host].active -= 1
                self._changed.notify_all()

    @contextmanager
    def first_free(self, hosts: Iterable[str], until: float) -> Iterator[str | None]:
        """Give the first of the hosts that may be asked now, which is nobody else's meanwhile.

        It is waited for; None is given where none may be asked before `until`.
        """
        listed = list(hosts)
        found = self._first_free(listed, until)
        try:
            yield found
        finally:
            if found is not None:
                with self._changed:
                    self._hosts[found].promised -= 1
                    self._changed.notify_all()

    def _first_free(self, listed: list[str], until: float) -> str | None:
        with self._changed:
            while listed and not self.stop.is_set():
                now = self.clock()
                hosts = [self._of(name) for name in listed]
                for name, host in zip(listed, hosts, strict=True):
                    busy = max(host.active, host.promised) >= self.manners.at_once
                    if host.given_up or (not busy and host.ready <= now):
                        host.promised += 1
                        return name
                soonest = min(host.ready for host in hosts)
                working = any(host.active or host.promised for host in hosts)
                if now >= until or (soonest >= until and not working):
                    return None
                self._changed.wait(min(max(soonest - now, 0.01), _WAIT))
        return None

    def resting(self, until: float) -> list[str]:
        """Return the hosts that are not to be asked before `until`, in order."""
        with self._changed:
            return sorted(n for n, h in self._hosts.items() if h.ready >= until and not h.given_up)

    def slow_down(self, host: str, seconds: float) -> None:
        """Leave at least that much time between requests to the host, as its robots.txt asks."""
        with self._changed:
            self._of(host).interval = min(seconds, _LONGEST_DELAY)

    def answered(self, host: str) -> None:
        """The host gave an answer that is none of a server in trouble."""
        with self._changed:
            found = self._of(host)
            found.failed = found.unreached = 0

    def failed(self, host: str, failure: NotHad) -> None:
        """See that the host rests if it failed, or asked for it; give it up if it is not there."""
        unreachable = OUTCOMES[failure.code].unreachable
        if not (unreachable or failure.code in _RESTS or failure.retry_after):
            if failure.status is not None:  # of a server that is well
                self.answered(host)
            return
        with self._changed:
            found = self._of(host)
            found.failed += 1
            found.unreached = found.unreached + 1 if unreachable else 0
            if found.unreached >= GIVEN_UP:
                found.given_up = failure.told()
                found.forgiven = self.clock() + self.manners.forgives
            rest = self.manners.rest * 2 ** min(found.failed - 1, 20)
            rest = failure.retry_after if failure.retry_after is not None else rest
            found.ready = max(found.ready, self.clock() + min(rest, _LONGEST_REST))
            self._changed.notify_all()

    def _of(self, host: str) -> _Host:
        return self._hosts.setdefault(host, _Host())

    def _free(self, host: str) -> bool:
        found = self._of(host)
        if found.given_up and self.clock() >= found.forgiven:
            found.given_up = None
            found.unreached = GIVEN_UP - 1
        if found.given_up:
            detail = f"not asked: {host} was not reached {GIVEN_UP} times: {found.given_up.detail}"
            raise NotHad(found.given_up.code, detail)
        return found.active < self.manners.at_once and found.ready <= self.clock()

    def _wait_for(self, visit: "Visit") -> None:
        now = self.clock()
        found = self._of(visit.host)
        if self.stop.is_set():
            raise Deferred("ended")
        if now >= visit.until or (found.ready >= visit.rested and not found.active):
            raise Deferred(f"{visit.host} is to be left alone")
        self._changed.wait(min(max(found.ready - now, 0.01), _WAIT))

    def _begin(self, visit: "Visit") -> None:
        """Wait for the next request's time, and take it."""
        with self._changed:
            found = self._of(visit.host)
            while found.ready > self.clock():
                self._wait_for(visit)
            found.ready = self.clock() + max(self.manners.interval, found.interval)


@dataclass(frozen=True, slots=True)
class Visit:
    """A place at a host, for one request after the other."""

    hosts: Hosts
    host: str
    until: float
    rested: float

    def request(self) -> None:
        """Wait until the next request may begin. Raises Deferred where that is too late."""
        self.hosts._begin(self)
