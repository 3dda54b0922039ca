"""Exchanges with platforms: a URL asked for, its redirects followed, and the answer as it comes.

Each host on the way is asked politely, at an address that was checked, and shown no token but its
own.
"""

import math
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from builder.filesets.download.signed_url import unsigned
from builder.http import outcomes, redirects, retry, wire
from builder.http import url as urls
from builder.http.addresses import Addresses
from builder.http.errors import NotHad
from builder.http.fetch import REDIRECTS
from builder.http.limits import Budget, Limits
from builder.http.politeness import Hosts
from builder.http.response import Moved
from builder.http.wire import Answer


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds to connect and to the first byte of an answer, and the least bytes a second.

    Once bytes came, none for as long as a first byte may take ends it as well.
    """

    connect: float = 10
    first_byte: float = 60
    rate: float = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What asking takes: how we are called, what may be asked, and what hosts were like before.

    `tokens` are by host. `clock` counts seconds from whenever, `wall` those since 1970.
    """

    agent: str
    guard: Addresses
    hosts: Hosts
    stop: threading.Event
    wall: Callable[[], float]
    tokens: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext = field(default_factory=wire.context)
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Reached:
    """The answer that a URL led to in the end: where that was, and the URLs before."""

    url: str
    hops: tuple[str, ...]
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for: headers, how fast, how many bytes at most, and until when (clock).

    An answer takes no longer than `seconds`. A host that rests is waited for until `rested`. With
    `within`, no other hosts are asked, wherever it leads.
    """

    headers: Mapping[str, str]
    pace: Pace
    bytes: int
    until: float
    seconds: float = math.inf
    rested: float | None = None
    within: Sequence[str] = ()


def normalised(url: str) -> str:
    """Return a URL in one form. Raises NotHad for what is none that could be asked for."""
    found = urls.normalised(url.strip().replace(" ", "%20"))
    if found.id is None:
        fault = found.fault if found.fault in (urls.SCHEME, urls.USERINFO) else None
        raise NotHad(fault or "bad-redirect", url)
    redirects.check_scheme(found.id)
    return found.id


@contextmanager
def reached(line: Line, url: str, wanted: Wanted) -> Iterator[Reached]:
    """Give the answer that is no redirect. Raises NotHad, Deferred.

    What is raised as NotHad within the block is told of the host that answered.
    """
    hops: list[str] = []
    last = normalised(url)
    while True:
        host = urlsplit(last).hostname or ""
        if wanted.within and host not in wanted.within:
            detail = f"{unsigned(last)} is none of {', '.join(wanted.within)}"
            raise NotHad("bad-redirect", detail)
        with line.hosts.visit(host, wanted.until, wanted.rested) as visit:
            visit.request()
            try:
                with _asked(line, last, wanted) as answer:
                    location = answer.headers.get("location")
                    if answer.status not in REDIRECTS or not location:
                        yield Reached(last, tuple(hops), answer)
                        line.hosts.answered(host)
                        return
            except NotHad as failure:
                line.hosts.failed(host, failure)
                raise
            line.hosts.answered(host)
        found = redirects.target(last, Moved(location, answer.status))
        hops.append(last)
        if found in hops:
            raise NotHad("redirect-loop", _led(last, found), answer.status)
        if len(hops) > redirects.MOST:
            raise NotHad("too-many-hops", _led(last, found), answer.status)
        last = found


def refused(line: Line, answer: Answer) -> NotHad:
    """Return what to raise for an answer whose status is not one that was hoped for."""
    rest = retry.asked(answer.headers, answer.status, line.wall())
    code = outcomes.of_status(answer.status)
    if answer.status == 403 and (rest is not None or retry.is_used_up(answer.headers)):
        code = "too-many-requests"
    return NotHad(code, f"HTTP status {answer.status}", answer.status, rest)


def _led(last: str, found: str) -> str:
    return f"{unsigned(last)} led to {unsigned(found)}"


@contextmanager
def _asked(line: Line, url: str, wanted: Wanted) -> Iterator[Answer]:
    pace = wanted.pace
    left = min(wanted.seconds, max(0.0, wanted.until - line.clock()))
    limits = Limits(pace.connect, pace.first_byte, left, pace.rate, wanted.bytes)
    headers = {"User-Agent": line.agent, **wanted.headers, **_token(line, url)}
    budget = Budget(limits, line.stop, line.clock)
    with wire.ask(url, headers, line.guard, budget, line.tls) as answer:
        yield answer


def _token(line: Line, url: str) -> dict[str, str]:
    """Return what shows a host its own token; none goes over a line that others can read.

    One with a space says by itself of which kind it is.
    """
    parts = urlsplit(url)
    token = line.tokens.get(parts.netloc) if parts.scheme == "https" else None
    if token is None:
        return {}
    return {"Authorization": token if " " in token else f"Bearer {token}"}
