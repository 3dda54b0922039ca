"""The wire: one request over HTTP/1.1 and its answer, on a connection of its own or a kept one.

The connection is made here, to an address that was checked, so that no library follows a proxy of
its own accord, a redirect or a second look-up of the name. Every read and write is held to the
budget.
"""

import contextlib
import functools
import re
import select
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpcore2

from builder.http import fields
from builder.http.addresses import Addresses
from builder.http.errors import NotHad
from builder.http.limits import Budget
from builder.http.proxies import Proxies

_STEP = 1.0
"""Seconds after which a wait looks whether the work is to end."""
_PORTS = {"http": 80, "https": 443}
_ONE_LINE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of an answer, names of headers in lower case, and its body as it comes.

    `raw` are all headers in the order and the letters in which they came; a field may be there
    more than once. Texts are UTF-8 where they are that, else latin-1.
    """

    status: int
    headers: Mapping[str, str]
    body: Iterator[bytes]
    reason: str = ""
    raw: tuple[tuple[str, str], ...] = ()


@functools.cache
def context() -> ssl.SSLContext:
    """Return what checks certificates, against those that this machine trusts.

    They are read once, which takes as long as many requests.
    """
    return httpcore2.default_ssl_context()


@contextmanager
def ask(
    url: str,
    headers: Mapping[str, str],
    guard: Addresses,
    budget: Budget,
    tls: ssl.SSLContext,
) -> Iterator[Answer]:
    """Give the answer to a GET of `url`, which is normalised. Raises NotHad, Deferred.

    The body's bytes come without their transfer coding; they are counted by the budget.
    """
    origin, request = _request(url, {**headers, "Connection": "close"})
    connection = httpcore2.HTTPConnection(
        origin, ssl_context=tls, network_backend=_Backend(guard, budget)
    )
    with contextlib.closing(connection):
        with _told("bad-answer"):
            response = connection.handle_request(request)
        yield _answer(response, budget)


class Line:
    """A line to one server after the other, kept for the next request where the server lets it.

    A server behind one of the `proxies` is asked by that: its name is then the proxy's to look up,
    and what the guard lets through is the proxy.
    """

    def __init__(
        self, guard: Addresses, tls: ssl.SSLContext, proxies: Proxies | None = None
    ) -> None:
        self._guard = guard
        self._tls = tls
        self._proxies = proxies or Proxies()
        self._backend: _Backend | None = None
        self._kept: tuple[httpcore2.Origin, _Way] | None = None

    @contextmanager
    def ask(self, url: str, headers: Mapping[str, str], budget: Budget) -> Iterator[Answer]:
        """Give the answer to a GET of `url`, as the function `ask` does."""
        origin, request = _request(url, headers)
        try:
            response = self._response(origin, request, budget)
            yield _answer(response, budget)
            response.close()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connection, if there is one."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept[1].close()

    def _response(
        self, origin: httpcore2.Origin, request: httpcore2.Request, budget: Budget
    ) -> httpcore2.Response:
        if self._kept is not None and self._backend is not None and self._kept[0] == origin:
            way = self._kept[1]
            if not isinstance(way, httpcore2.HTTPConnection) or (
                way.is_available() and not way.has_expired()
            ):
                self._backend.budget = budget
                budget.connected()
                # The server may have ended it meanwhile.
                with contextlib.suppress(NotHad), _told("bad-answer"):
                    return way.handle_request(request)
        self.close()
        self._backend = _Backend(self._guard, budget)
        self._kept = origin, self._way(origin, self._backend)
        with _told("bad-answer"):
            return self._kept[1].handle_request(request)

    def _way(self, origin: httpcore2.Origin, backend: "_Backend") -> "_Way":
        proxy = self._proxies.of(origin.scheme.decode(), origin.host.decode(), origin.port)
        if proxy is None:
            return httpcore2.HTTPConnection(origin, ssl_context=self._tls, network_backend=backend)
        return httpcore2.HTTPProxy(
            httpcore2.URL(scheme=proxy.scheme, host=proxy.host, port=proxy.port, target="/"),
            proxy_auth=proxy.user and (proxy.user[0].encode(), proxy.user[1].encode()),
            ssl_context=self._tls,
            proxy_ssl_context=self._tls if proxy.scheme == "https" else None,
            network_backend=backend,
        )


_Way = httpcore2.HTTPConnection | httpcore2.HTTPProxy


def _request(url: str, headers: Mapping[str, str]) -> tuple[httpcore2.Origin, httpcore2.Request]:
    """Return where a GET of `url` goes to, and what it says. Raises NotHad."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.port == 0:  # httpcore takes it for none
        raise NotHad("port-refused", f"{host}:0")
    default = _PORTS[parts.scheme]
    port = parts.port or default
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if url.endswith("?"):
        target += "?"
    name = f"[{host}]" if ":" in host else host
    shown = name if port == default else f"{name}:{port}"
    where = httpcore2.URL(
        scheme=parts.scheme, host=host, port=None if port == default else port, target=target
    )
    request = httpcore2.Request("GET", where, headers=[("Host", shown), *headers.items()])
    return httpcore2.Origin(parts.scheme.encode(), host.encode(), port), request


def _answer(response: httpcore2.Response, budget: Budget) -> Answer:
    budget.answered()
    raw = tuple((name.decode("latin-1"), fields.text(value)) for name, value in response.headers)
    reason = fields.text(response.extensions.get("reason_phrase", b""))
    return Answer(response.status, fields.first(raw), _body(response, budget), reason, raw)


def _body(response: httpcore2.Response, budget: Budget) -> Iterator[bytes]:
    with _told("cut-short"):
        for chunk in response.iter_stream():
            budget.took(len(chunk))
            yield chunk
            budget.handled()


@contextmanager
def _told(code: str) -> Iterator[None]:
    """Turn what the library raises into NotHad, a fault of the protocol by `code`."""
    try:
        yield
    except httpcore2.ProtocolError as error:
        raise NotHad(code, _line(error)) from error
    except httpcore2.NetworkError as error:
        raise NotHad("cut-short", _line(error)) from error
    except httpcore2.ProxyError as error:
        raise NotHad("connect", f"the proxy says {_line(error)}") from error


def _line(error: BaseException) -> str:
    return _ONE_LINE.sub(" ", str(error)).strip()[:200] or type(error).__name__


class _Backend(httpcore2.NetworkBackend):
    """Connects to addresses that the guard lets through, and to no others."""

    def __init__(self, guard: Addresses, budget: Budget) -> None:
        self._guard = guard
        self.budget = budget

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        addresses = self._guard.addresses(host, port)
        failed: OSError | None = None
        for left, (family, address) in zip(range(len(addresses), 0, -1), addresses, strict=True):
            plain = socket.socket(family, socket.SOCK_STREAM)
            try:
                plain.settimeout(self.budget.left() / left)
                plain.connect(address)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                plain.close()
                failed = error
            except BaseException:
                plain.close()
                raise
            else:
                return _Stream(plain, self)
        code = "connect-timeout" if isinstance(failed, TimeoutError) else "connect"
        raise NotHad(code, f"{host}:{port}: {(failed and failed.strerror) or failed}") from failed


class _Stream(httpcore2.NetworkStream):
    """A connection whose every wait ends with the budget."""

    def __init__(self, connected: socket.socket, backend: _Backend) -> None:
        self._socket = connected
        self._backend = backend
        self._waits = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while True:
            self._socket.settimeout(min(self._backend.budget.left(), _STEP))
            try:
                return self._socket.recv(max_bytes)
            except TimeoutError:
                continue
            except ssl.SSLEOFError:
                return b""
            except OSError as error:
                raise httpcore2.ReadError(error) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        view = memoryview(buffer)
        if not self._waits:
            self._waits = True
            self._backend.budget.connected()
        while view:
            self._socket.settimeout(min(self._backend.budget.left(), _STEP))
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError:
                continue
            except OSError as error:
                raise httpcore2.WriteError(error) from error

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        self._socket.settimeout(self._backend.budget.left())
        try:
            secured = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
        except TimeoutError as error:
            self.close()
            raise NotHad("connect-timeout", f"{server_hostname}: TLS") from error
        except (OSError, ValueError) as error:
            self.close()
            raise NotHad("tls", f"{server_hostname}: {_line(error)}") from error
        return _Stream(secured, self._backend)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # while nothing was asked: the server has ended it
            return bool(select.select([self._socket], [], [], 0)[0])
        return None
