"""The HTTP client: requests with redirects, robots.txt, politeness and limits.

Each hop of a redirect goes to checked addresses only, and waits for its host's turn. A host
receives no credentials but its own.
"""

import math
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode, urlsplit

from builder import distribution
from builder.http import connections, errors, politeness, responses
from builder.http.addresses import AddressPolicy
from builder.http.cookies import Cookies
from builder.http.errors import OUTCOMES, Deferred, FetchError
from builder.http.limits import Budget, Limits, Stop, find_wish, is_used_up
from builder.http.politeness import HostQueue, RobotRules, Robots
from builder.http.responses import FollowedRedirect, Response
from builder.http.secrets import strip_secrets
from builder.http.settings import Proxies
from builder.http.url import Redirects, origin_of
from functions.config.configuration import Configuration, default
from functions.snapshot.errors import ConfigurationError

PRODUCT = "Sheaf"
"""The name of this client in robots.txt."""
_ROBOTS = {"Accept": "text/plain,*/*;q=0.5", "Accept-Encoding": "gzip, deflate"}
_OF_HOST = frozenset(
    {"tls", "address-refused", "port-refused", *(c for c, o in OUTCOMES.items() if o.unreachable)}
)
"""Failures of a host, whichever of its files is requested."""


def user_agent(settings: Configuration) -> str:
    """Return the User-Agent: the product, the repository and the address of its operator."""
    base, mail = settings["repository.base_url"], settings["repository.admin_emails"][0]
    return agent_of(f"({f'+{base}; ' if base else ''}mailto:{mail})")


def agent_of(comment: str) -> str:
    """Return a User-Agent: the product, its version and a comment."""
    named = f"{PRODUCT}/{distribution.version()} {comment}".rstrip()
    return named.encode("ascii", "replace").decode()


def own_headers(base_url: str, headers: Mapping[str, str]) -> Callable[[str], Mapping[str, str]]:
    """Return the credentials of a client: for URLs of this host and scheme, or over TLS, alone."""
    own = urlsplit(base_url)

    def choose(url: str) -> Mapping[str, str]:
        parts = urlsplit(url)
        is_own = parts.netloc == own.netloc and parts.scheme in (own.scheme, "https")
        return headers if is_own else {}

    return choose


def add_arguments(base_url: str, arguments: Mapping[str, str] | Sequence[tuple[str, str]]) -> str:
    """Return a URL with arguments behind those that it has."""
    return f"{base_url}{'&' if '?' in base_url else '?'}{urlencode(arguments)}"


def check_contact(settings: Configuration) -> None:
    """Raise ConfigurationError if the User-Agent would not name the operator."""
    name = "repository.admin_emails"
    if settings[name] == default(name):
        raise ConfigurationError(
            f"{name} is still {default(name)[0]}: set your own, because every host receives it"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """A URL to fetch, and its limits.

    `until` bounds the wait for the host and `end` the exchange, both on the client's clock. The
    client does not wait for a host that rests until `rested` or longer. With `within`, only these
    hosts are asked. `exact` sends the URL and its redirects as they are written. `keep_query` adds
    the query to a redirect that has no query. `stop` ends this request alone. `record` keeps
    redirects for Response.redirects. `reuse` allows a kept connection, see HttpClient.keep_alive:
    whoever sets it checks the content by a digest. `upload` opens bytes to be sent with PUT, as
    many as `headers` say in Content-Length, and `form` has those to be sent with POST; without
    both, the request is a GET.
    """

    url: str
    limits: Limits
    headers: Mapping[str, str] = field(default_factory=dict)
    until: float = math.inf
    end: float = math.inf
    rested: float | None = None
    within: Sequence[str] = ()
    exact: bool = False
    keep_query: bool = False
    stop: Stop | None = None
    record: bool = False
    reuse: bool = False
    upload: Callable[[], Iterable[bytes]] | None = None
    form: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpClient:
    """Fetches URLs. Safe to use from threads; `close` ends its connections.

    `credentials` returns the header fields for a URL that only its host may see. `stop` ends all
    waits. `keep_alive` keeps connections for all requests. It is only for servers that the operator
    names: after a wrong Content-Length, further bytes would be read as the next response. Others
    may keep them for content that is checked (FetchRequest.reuse). With `cookies`, those of each
    origin are sent back to it; Response.sent leaves them out. `clock` counts seconds from any
    moment, `wall` since 1970.
    """

    agent: str
    addresses: AddressPolicy
    hosts: HostQueue
    stop: threading.Event
    credentials: Callable[[str], Mapping[str, str]] = lambda url: {}
    keep_alive: bool = False
    cookies: Cookies | None = None
    proxies: Proxies = field(default_factory=Proxies)
    robots: Robots = field(default_factory=Robots)
    tls: ssl.SSLContext = field(default_factory=connections.tls_context)
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _connections: connections.Connections = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        opened = connections.Connections(self.addresses, self.tls, self.proxies)
        object.__setattr__(self, "_connections", opened)

    @contextmanager
    def fetch(self, request: FetchRequest) -> Iterator[Response]:
        """Give the final response, after all redirects. Raises FetchError, Deferred.

        A FetchError raised in the block counts as a failure of the responding host.
        """
        with self._follow(request, Redirects(request.url, request.exact)) as response:
            yield response

    @contextmanager
    def ask(self, request: FetchRequest) -> Iterator[Response]:
        """Give the response of the URL itself, which may be a redirect. Raises as `fetch` does."""
        host = urlsplit(request.url).hostname or ""
        if request.within and host not in request.within:
            detail = f"{strip_secrets(request.url)} is not one of {', '.join(request.within)}"
            raise FetchError("bad-redirect", detail)
        with self.hosts.slot(host, request.until, request.rested, request.stop):
            try:
                with self._exchange(request) as response:
                    yield response
            except FetchError as failure:
                self.hosts.fail(host, failure)
                raise
            self.hosts.succeed(host)

    def obey(self, request: FetchRequest) -> None:
        """Raise FetchError if the robots.txt of the URL's host forbids it, or cannot be fetched."""
        rules = self.read_robots(request)
        if delay := rules.delay(PRODUCT):
            self.hosts.slow_down(urlsplit(request.url).hostname or "", delay)
        if not rules.allow(request.url, PRODUCT):
            raise FetchError("robots-disallowed", f"{origin_of(request.url)}/robots.txt")

    def read_robots(self, request: FetchRequest) -> RobotRules:
        """Return the rules of the robots.txt of the URL's host. Raises FetchError, Deferred."""
        origin = origin_of(request.url)
        there = replace(request, url=f"{origin}/robots.txt", headers=_ROBOTS, within=())
        return self.robots.rules(origin, lambda: self._rules(there))

    def refusal(self, response: Response) -> FetchError:
        """Return the error to raise for a response of an unwanted status."""
        status, headers = response.status, response.headers
        rest = find_wish(headers, status, self.wall())
        otherwise = "server-error" if 500 <= status <= 599 else "http-status"
        code = errors.BY_STATUS.get(status, otherwise)
        if status == 403 and (rest is not None or is_used_up(headers)):
            code = "too-many-requests"
        return FetchError(code, f"HTTP status {status}", status, rest)

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    @contextmanager
    def _follow(self, request: FetchRequest, way: Redirects) -> Iterator[Response]:
        followed: list[FollowedRedirect] = []
        while True:
            there = request if way.last == request.url else replace(request, url=way.last)
            with self.ask(there) as response:
                location = response.location
                has_cookie = self.cookies is not None and self.cookies.store(way.last, response.raw)
                if location is None:
                    if way.hops:
                        hops = tuple(way.hops)
                        response = replace(response, hops=hops, redirects=tuple(followed))
                    yield response
                    return
                if request.record:
                    followed.append(FollowedRedirect(response, self.wall(), response.drain()))
                elif self._keeps(request):
                    response.drain()
            if request.keep_query:
                query = urlsplit(way.last).query
                location = location if "?" in location else f"{location.partition('#')[0]}?{query}"
            way.follow(location, response.status, again=has_cookie)

    @contextmanager
    def _exchange(self, request: FetchRequest) -> Iterator[Response]:
        left = request.end - self.clock()
        if left <= 0:
            raise Deferred("its time is over")
        limits = request.limits
        if left < limits.total:
            limits = replace(limits, total=left)
        own = dict(self.credentials(request.url))
        if self.cookies is not None and "cookie" not in map(str.lower, own):
            own |= self.cookies.header(request.url)
        headers = {"User-Agent": self.agent, **request.headers, **own}
        budget = Budget(limits, self.stop, self.clock, request.stop)
        keep, body = self._keeps(request), request.upload() if request.upload else None
        method = "GET" if body is None else "PUT"
        if request.form:
            method, body = "POST", [request.form]
        with self._connections.send(
            request.url, headers, budget, keep=keep, method=method, body=body
        ) as response:
            if own:
                public = tuple(pair for pair in response.sent if pair[0] not in own)
                response = replace(response, sent=public)
            yield response

    def _keeps(self, request: FetchRequest) -> bool:
        return (self.keep_alive or request.reuse) and not (request.upload or request.form)

    def _rules(self, request: FetchRequest) -> RobotRules:
        way = Redirects(request.url)
        try:
            with self._follow(request, way) as response:
                body = responses.read_start(
                    response.headers, response.body, politeness.LARGEST_ROBOTS
                )
                return politeness.parse_robots(response.status, body)
        except FetchError as failure:
            if failure.code == "too-many-hops":  # RFC 9309, 2.3.1.2: it may count as missing
                return politeness.parse_robots(404, b"")
            if way.last == request.url and failure.code in _OF_HOST:
                raise
            detail = f"robots.txt: {failure}".removesuffix(": ")
            raise FetchError("robots-unreachable", detail, failure.status) from failure
