"""Exchanges: one request of OAI-PMH after the other with one repository, and what it answers.

What may pass is tried again, after as long as the repository asks for, else after a rest that
doubles; what will not pass ends the request. While a page of records is being taken, the next one
is asked for already: one request at a time goes over the one connection all the same.
"""

import contextlib
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from html import unescape
from urllib.parse import urlencode, urljoin, urlsplit

from builder.harvest import answer
from builder.harvest.errors import Broken, Unanswered
from builder.harvest.page import Page
from builder.http import coding, retry, wire
from builder.http.addresses import Anywhere
from builder.http.errors import Deferred, NotHad
from builder.http.limits import Budget, Limits
from builder.http.politeness import Hosts
from builder.http.proxies import Proxies

_HOPS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PASSING = frozenset({408, 421, 425, 429, 502, 503, 504})
"""Statuses of servers that may answer another time. So may others from 500, but not as often."""
_SURE = frozenset({"noRecordsMatch", "badResumptionToken", "cannotDisseminateFormat"})
"""Errors of OAI-PMH that are taken for what they say, whatever the status of HTTP."""
_TOKEN = re.compile(rb"<(?:[\w.-]+:)?resumptionToken\b[^>]*>\s*([^<]*?)\s*</")
_TAIL = 1 << 14
_FEW, _PATIENT = 2, 20
"""Times that is asked again what is unlikely to pass, and where the server says when to."""
_LONGEST_REST = 60.0
_LASTING = frozenset({"dns", "tls", "content-coding", "too-large", "bad-redirect", "too-many-hops"})
_UNREACHED = frozenset({"dns", "connect", "connect-timeout", "tls"})
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Manners:
    """How often a request is tried again, the first rest, and the longest wait asked for, in s."""

    retries: int = 5
    rest: float = 1.0
    longest: float = 600.0


@dataclass(frozen=True, slots=True)
class Means:
    """What exchanges take. `hosts` holds the time between requests; `stop` ends all waits.

    `headers` are sent besides ours, to the host of the base URL alone, and never in the clear where
    that is https. `say` tells a person.
    """

    agent: str
    limits: Limits
    hosts: Hosts
    stop: threading.Event
    say: Callable[[str], None]
    manners: Manners = field(default_factory=Manners)
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext = field(default_factory=wire.context)
    proxies: Proxies = field(default_factory=Proxies)
    wall: Callable[[], float] = time.time


_Came = tuple[int, Mapping[str, str], bytes]
"""The status, the headers and the body of an answer."""


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Why an attempt came to nothing: `often` says how many times more it is worth trying.

    `later` says that the repository cannot be asked anything now; `apart` makes what can be made
    of an answer that is broken.
    """

    text: str
    often: int
    status: int | None = None
    rest: float | None = None
    apart: Callable[[], Page | None] | None = None
    later: bool = False


class Exchange:
    """Asks one repository. Not safe to use from threads."""

    def __init__(self, base_url: str, means: Means) -> None:
        self._base = base_url
        self._own = urlsplit(base_url)
        self._means = means
        self._line = wire.Line(Anywhere(), means.tls, means.proxies)
        self._pool = ThreadPoolExecutor(1, "harvest-ahead")
        self._ahead: tuple[str, Future[_Came]] | None = None

    def ask(self, arguments: Mapping[str, str]) -> Page:
        """Return the answer to a request. Raises Unanswered, and Deferred where all is to end.

        An answer that is no XML, also the second time, is taken apart, if there are records in it.
        """
        tried = 0
        while True:
            found = self._attempt(arguments)
            if isinstance(found, Page):
                return found
            tried += 1
            if tried > found.often:
                if found.apart is not None and (page := found.apart()) is not None:
                    return page
                raise Unanswered(f"{_named(arguments)}: {found.text}", found.status, found.later)
            self._rest(tried, found)

    def close(self) -> None:
        """End the connection."""
        self._pool.shutdown()
        self._line.close()

    def _rest(self, tried: int, trouble: _Trouble) -> None:
        manners = self._means.manners
        own = min(manners.rest * 2.0 ** (tried - 1), _LONGEST_REST)
        seconds = own
        if trouble.rest is not None:  # a date may lie in the past
            seconds = min(max(trouble.rest, manners.rest), manners.longest)
        if trouble.rest is not None and seconds >= 5:
            self._means.say(f"{self._base}: asked to wait for {seconds:,.0f} s: {trouble.text}")
        if self._means.stop.wait(seconds):
            raise Deferred("ended")

    def _attempt(self, arguments: Mapping[str, str]) -> Page | _Trouble:
        retries = self._means.manners.retries
        try:
            status, headers, data = self._come(self._url(arguments))
        except NotHad as failure:
            often = min(retries, _FEW) if failure.code in _LASTING else retries
            return _Trouble(str(failure), often, later=failure.code in _UNREACHED)
        rest = retry.asked(headers, status, self._means.wall())
        if rest is not None and (status in _PASSING or status == 403):
            return _Trouble(
                f"HTTP status {status}", min(_PATIENT, retries * 4), status, rest, later=True
            )
        if status == 200 and arguments["verb"] == "ListRecords":
            self._look_ahead(data)
        charset = _charset(headers)
        try:
            page = answer.page(data, charset)
        except Broken as error:
            if status != 200:
                return _refused(status, retries)
            few = min(retries, _FEW if str(error).startswith("no XML") else retries)
            return _Trouble(
                f"what came is {error}", few, apart=partial(answer.taken_apart, data, charset)
            )
        if status != 200 and (not page.errors or (status >= 500 and _unsure(page))):
            return _refused(status, retries)
        return page

    def _url(self, arguments: Mapping[str, str]) -> str:
        return f"{self._base}{'&' if '?' in self._base else '?'}{urlencode(arguments)}"

    def _look_ahead(self, data: bytes) -> None:
        """Ask for the page behind this one, while this one is being taken."""
        found = _TOKEN.search(data, max(0, len(data) - _TAIL))
        with contextlib.suppress(UnicodeDecodeError):
            if found and (token := unescape(found[1].decode()).strip()):
                url = self._url({"verb": "ListRecords", "resumptionToken": token})
                if self._ahead is None or self._ahead[0] != url:  # a token may be good once
                    self._ahead = url, self._pool.submit(self._fetch, url)

    def _come(self, url: str) -> _Came:
        """Return the answer, which may have come already. Raises NotHad, Deferred."""
        if self._ahead is not None:
            asked, came = self._ahead
            if asked == url:
                self._ahead = None
                return came.result()
            wait_for([came])
        return self._fetch(url)

    def _fetch(self, url: str) -> _Came:
        """Return the answer behind redirects. Raises NotHad, Deferred."""
        for _ in range(_HOPS + 1):
            host = urlsplit(url).hostname or ""
            with self._means.hosts.visit(host, float("inf")) as visit:
                visit.request()
                budget = Budget(self._means.limits, self._means.stop)
                with self._line.ask(url, self._headers(url), budget) as found:
                    location = found.headers.get("location")
                    if found.status not in _REDIRECTS or not location:
                        return found.status, found.headers, self._body(found)
            url = self._redirected(url, location)
        raise NotHad("too-many-hops", url)

    def _body(self, found: wire.Answer) -> bytes:
        """Return a body without its coding, whatever is said of it, as far as that is known."""
        raw = bytearray()
        for chunk in found.body:
            raw += chunk
        name = coding.coding(found.headers)
        packed = raw.startswith(_GZIP)
        if not packed and name != "deflate":
            if name is not None and not coding.is_known(name):
                raise NotHad("content-coding", name)
            return bytes(raw)
        unpacked, most = bytearray(), self._means.limits.bytes
        try:
            for some in coding.plain([bytes(raw)]):
                unpacked += some
                if len(unpacked) > most:
                    raise NotHad("too-large", f"more than {most:,} bytes")
        except NotHad as failure:
            if failure.code == "content-coding" and raw.lstrip().startswith(b"<"):
                return bytes(raw)
            raise
        return bytes(unpacked)

    def _headers(self, url: str) -> dict[str, str]:
        parts, own = urlsplit(url), self._own
        safe = parts.netloc == own.netloc and parts.scheme in (own.scheme, "https")
        return {
            "User-Agent": self._means.agent,
            "Accept": "text/xml, application/xml;q=0.9, */*;q=0.1",
            "Accept-Encoding": "gzip, deflate",
            **(self._means.headers if safe else {}),
        }

    def _redirected(self, url: str, location: str) -> str:
        """Return where a redirect leads to; what has the same arguments there is asked there on."""
        with contextlib.suppress(ValueError):
            target, query = urljoin(url, location), urlsplit(url).query
            parts = urlsplit(target)
            if parts.scheme in ("http", "https") and parts.hostname and parts.username is None:
                if not parts.query:  # some forget them
                    target = f"{target}?{query}"
                    parts = urlsplit(target)
                if parts.query == query:
                    self._move(url, _with_query(self._base, target))
                return target
        raise NotHad("bad-redirect", location)

    def _move(self, url: str, base: str) -> None:
        before, after = urlsplit(url), urlsplit(base)
        if before.netloc != after.netloc:
            self._means.say(f"{self._base} leads to another host: {base}")
        elif before.scheme == "https" != after.scheme:
            self._means.say(f"{self._base} leads to where nothing is encrypted: {base}")
        self._base = base


def _with_query(base: str, target: str) -> str:
    return urlsplit(target)._replace(query=urlsplit(base).query, fragment="").geturl()


def _refused(status: int, retries: int) -> _Trouble:
    often = 0
    if status in _PASSING:
        often = retries
    elif status >= 500:
        often = min(retries, _FEW)
    return _Trouble(f"HTTP status {status}", often, status, later=status in (429, 503))


def _unsure(page: Page) -> bool:
    return not any(code in _SURE for code, _ in page.errors)


def _named(arguments: Mapping[str, str]) -> str:
    """Return a request as a person is told of it."""
    told = {k: v if len(v) < 60 else f"{v[:57]}..." for k, v in arguments.items()}
    return " ".join([told.pop("verb"), *(f"{name}={value}" for name, value in told.items())])


def _charset(headers: Mapping[str, str]) -> str | None:
    message = Message()
    message["Content-Type"] = headers.get("content-type", "")
    return message.get_content_charset()
