"""Exchanges with an endpoint over HTTP: what may pass is tried again, what will not is told of.

A server that asks to be left alone for a while is (RFC 9110, section 10.2.3). A connection is kept
for each thread, since a site is many small files.
"""

import contextlib
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from builder.http import retry, wire
from builder.http.addresses import Anywhere
from builder.http.errors import Deferred, NotHad
from builder.http.limits import Budget, Limits
from builder.http.proxies import Proxies
from builder.restore.errors import RebuildError

_HOPS = 5
_SHORT = 1 << 16
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PASSING = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses of servers that may answer another time."""
LARGEST = 64 << 20
"""Bytes of a list's page: servers answer far less at once."""
TOLD = "x-archive-error"
"""The header by which Sheaf says why there are no bytes; such an answer is meant as it is."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How often a request is tried again, the first rest, and the longest wait asked for, in s."""

    retries: int = 5
    rest: float = 0.5
    longest: float = 300.0


class Unanswered(RebuildError):
    """The endpoint does not answer."""


@dataclass(slots=True)
class Exchange:
    """Asks one endpoint. Safe to use from threads."""

    agent: str
    limits: Limits
    manners: Manners = field(default_factory=Manners)
    stop: threading.Event = field(default_factory=threading.Event)
    tls: ssl.SSLContext = field(default_factory=wire.context)
    proxies: Proxies = field(default_factory=Proxies)
    _own: threading.local = field(init=False, default_factory=threading.local)
    _lines: list[wire.Line] = field(init=False, default_factory=list)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    @contextmanager
    def ask(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[wire.Answer]:
        """Give the answer to a GET, whatever its status; its body is to be read before the next.

        Raises Unanswered where none comes, however often it is asked for. What is wrong with the
        body is raised as NotHad where that is read.
        """
        tried = 0
        while True:
            with contextlib.ExitStack() as stack:
                why, rest = "", None
                try:
                    answer = self._followed(stack, url, headers or {})
                except NotHad as failure:
                    why = str(failure)
                except Deferred as error:
                    raise Unanswered("the restore was ended") from error
                else:
                    if answer.status not in _PASSING or TOLD in answer.headers:
                        yield answer
                        return
                    why = f"HTTP status {answer.status}"
                    rest = retry.asked(answer.headers, answer.status, time.time())
            if tried == self.manners.retries:
                raise Unanswered(f"{urlsplit(url).netloc} does not answer: {why}")
            own = self.manners.rest * 2.0**tried
            tried += 1
            if self.stop.wait(own if rest is None else min(rest, self.manners.longest)):
                raise Unanswered("the restore was ended")

    def read(self, url: str) -> tuple[wire.Answer, bytes]:
        """Return the answer to a GET and its body, LARGEST bytes of it at most.

        Raises Unanswered.
        """
        tried = 0
        while True:
            with self.ask(url) as answer:
                try:
                    return answer, _whole(answer)
                except NotHad as failure:
                    if tried == self.manners.retries:
                        where = urlsplit(url).netloc
                        raise Unanswered(f"{where} does not answer whole: {failure}") from failure
                    tried += 1

    def close(self) -> None:
        """End all that is under way, and the connections."""
        self.stop.set()
        with self._lock:
            for line in self._lines:
                line.close()

    def _followed(
        self, stack: contextlib.ExitStack, url: str, headers: Mapping[str, str]
    ) -> wire.Answer:
        """Return the answer behind redirects; another address is told nothing of ours."""
        line, sent = self._line(), {"User-Agent": self.agent, **headers}
        for _ in range(_HOPS + 1):
            inner = stack.enter_context(contextlib.ExitStack())
            budget = Budget(self.limits, self.stop)
            answer = inner.enter_context(line.ask(url, sent, budget))
            location = answer.headers.get("location", "")
            if answer.status not in _REDIRECTS or not location:
                return answer
            passed(answer)
            inner.close()
            url = _target(url, location)
        raise NotHad("too-many-hops", url)

    def _line(self) -> wire.Line:
        line: wire.Line | None = getattr(self._own, "line", None)
        if line is None:
            line = self._own.line = wire.Line(Anywhere(), self.tls, self.proxies)
            with self._lock:
                self._lines.append(line)
        return line


def _whole(answer: wire.Answer) -> bytes:
    body = bytearray()
    for chunk in answer.body:
        body += chunk
        if len(body) > LARGEST:
            raise NotHad("too-large", f"more than {LARGEST:,} bytes")
    return bytes(body)


def _target(url: str, location: str) -> str:
    with contextlib.suppress(ValueError):
        found = urljoin(url, location).partition("#")[0]
        if is_address(found):
            return found
    raise NotHad("bad-redirect", location)


def is_address(url: str) -> bool:
    """Tell whether a URL is one that can be asked: of a server, in ASCII, without a user."""
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:
        return False
    web = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
    return bool(web and has_port and url.isascii() and url.isprintable() and " " not in url)


def passed(answer: wire.Answer) -> None:
    """Read over a body, if it is short: then the connection can be kept."""
    left = _SHORT
    for chunk in answer.body:
        left -= len(chunk)
        if left < 0:
            return
