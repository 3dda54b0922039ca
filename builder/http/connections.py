"""Connections of the HTTP client: direct or over proxies, with a budget for each request.

The connections of urllib3 provide HTTP/1.1, TLS and tunnels. What else it has was tried, and fails:

- Its pools rewrite a URL (`%2f` becomes `%2F`), which is another file at some servers. So idle
  connections are kept here.
- Its timeouts bound single reads; see below.
- Its decoders accept a gzip that breaks off: see builder.http.responses.
- It takes 103 (Early Hints) for the response, and logs header fields that it cannot read.

A timeout of urllib3 or http.client bounds a single read. It sees neither the end of an exchange
nor a stop, and a buffered reader cannot go on after it. So the waits are divided here, below both.
"""

import contextlib
import functools
import http.client
import io
import re
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from urllib3.connection import HTTPConnection, HTTPSConnection, ProxyConfig
from urllib3.exceptions import HTTPError
from urllib3.exceptions import SSLError as TlsError
from urllib3.response import HTTPResponse
from urllib3.util import SKIP_HEADER
from urllib3.util.response import assert_header_parsing

from builder.http import responses
from builder.http.addresses import AddressPolicy, open_socket
from builder.http.errors import Deferred, FetchError
from builder.http.limits import Budget
from builder.http.responses import Response
from builder.http.settings import PORTS, Proxies, Proxy

_STEP = 1.0
"""Seconds between two checks of the stop event during a wait."""
_BUFFER = 1 << 16


class BudgetSocket:
    """A connected socket, plain or with TLS. `budget` is that of the current exchange."""

    def __init__(self, connected: Any, budget: Budget) -> None:
        self._socket = connected
        self.budget = budget

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def settimeout(self, seconds: float | None) -> None:
        """Ignore the timeout of a caller: the budget decides."""

    def sendall(self, data: bytes) -> None:
        """Send all bytes. Raises OSError, and FetchError and Deferred of the budget."""
        view = memoryview(data)
        while view:
            self._socket.settimeout(min(self.budget.remaining(), _STEP))
            with contextlib.suppress(TimeoutError):
                view = view[self._socket.send(view) :]

    def receive_into(self, buffer: Any) -> int:
        """Wait for bytes and return their number, 0 at the end. Raises as `sendall` does."""
        while True:
            self._socket.settimeout(min(self.budget.remaining(), _STEP))
            try:
                return int(self._socket.recv_into(buffer))
            except TimeoutError:
                continue
            except ssl.SSLEOFError:
                return 0

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a reader, which keeps the connection open until it is closed itself."""
        return io.BufferedReader(_Reader(self, self._socket.makefile(mode, buffering=0)), _BUFFER)


class _Reader(io.RawIOBase):
    def __init__(self, source: BudgetSocket, holder: io.RawIOBase) -> None:
        self._source = source
        self._holder = holder
        self.has_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._source.receive_into(buffer)
        self.has_ended = not count
        return count

    def close(self) -> None:
        self._holder.close()
        super().close()


_IDLE = 60.0
"""Seconds for which an unused connection is kept."""
_MOST_IDLE = 32
_PIECE = 1 << 16
_BROKEN = frozenset({"bad-answer", "cut-short"})
_FOLD = re.compile(r"[ \t]*[\r\n]+[ \t]*")
_BLANKS = re.compile(r"\s+")


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Return the context that checks certificates against those that this machine trusts.

    SSL_CERT_FILE and SSL_CERT_DIR name others. It is created once: reading the certificates takes
    as long as many requests.
    """
    return ssl.create_default_context()


class _FinalResponse(http.client.HTTPResponse):
    """The final response to a request, after all interim ones (RFC 9110, section 15.2).

    http.client accepts a head that breaks off, and reads a body of an invalid length to the end of
    the connection, where nobody sees that it breaks off (RFC 9112, section 6.3).
    """

    def begin(self) -> None:
        super().begin()
        while 100 < self.status < 200 and self.status != http.client.SWITCHING_PROTOCOLS:
            self.headers = self.msg = None  # type: ignore[assignment]
            super().begin()
        reader: Any = self.fp.raw
        if reader.has_ended:
            raise http.client.HTTPException("the head breaks off")
        lengths = set(self.headers.get_all("Content-Length", ()))
        if len(lengths) > 1 or not all(text.isascii() and text.isdigit() for text in lengths):
            raise http.client.HTTPException("its Content-Length is invalid")
        if not self.chunked and "Transfer-Encoding" in self.headers:
            raise http.client.HTTPException("its Transfer-Encoding is unknown")


class _Connection(HTTPConnection):
    """A connection to a checked address, which verifies and names the host all the same."""

    response_class = _FinalResponse
    policy: AddressPolicy
    budget: Budget
    address: str

    def _new_conn(self) -> Any:
        opened = open_socket(self.policy, self._dns_host, self.port, self.budget)
        self.address = str(opened.getpeername()[0])
        return opened


class _TlsConnection(_Connection, HTTPSConnection):
    """Such a connection with TLS."""


Target = tuple[str, str, int, Proxy | None]
"""Scheme, host, port, and the proxy in between."""


class Connections:
    """Sends requests, and keeps connections for later ones. Safe to use from threads.

    A proxy resolves the names of the servers behind it, so `addresses` then checks only the proxy.
    """

    def __init__(self, addresses: AddressPolicy, tls: ssl.SSLContext, proxies: Proxies) -> None:
        self._addresses = addresses
        self._tls = tls
        self._proxies = proxies
        self._idle: list[tuple[float, Target, _Connection]] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def send(
        self,
        url: str,
        headers: Mapping[str, str],
        budget: Budget,
        *,
        keep: bool = False,
        method: str = "GET",
        body: Iterable[bytes] | None = None,
    ) -> Iterator[Response]:
        """Give the response to a request of `url`, which is sent as it is written, with `body`.

        With `keep`, the connection may have been used before, and may be used again. Raises
        FetchError and Deferred, also while the body is read.
        """
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.port == 0:  # urllib3 treats 0 as the default port
            raise FetchError("port-refused", f"{host}:0")
        port = parts.port or PORTS[parts.scheme]
        try:
            host = host.encode("idna").decode()
        except UnicodeError as error:
            raise FetchError("dns", f"{host}: {error}") from error
        target: Target = (parts.scheme, host, port, self._proxies.of(parts.scheme, host, port))
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        sent = {"Host": _host_field(*target[:3]), **headers}
        if not keep:
            sent["Connection"] = "close"
        path += "?" * url.endswith("?")
        connection, answer = self._send(target, path, sent, budget, keep, method, body)
        original: Any = answer._original_response
        try:
            budget.begin_body()
            raw = tuple(
                (name, responses.field_text(_FOLD.sub(" ", value).encode("latin-1")))
                for name, value in original.getheaders()
            )
            yield Response(
                url,
                answer.status,
                responses.fields_by_name(raw),
                _body(answer, budget),
                responses.field_text((answer.reason or "").encode("latin-1")),
                raw,
                sent=tuple((name, value.strip()) for name, value in sent.items()),
                address=None if target[3] else connection.address,
            )
        finally:
            if keep and original.isclosed() and connection.sock is not None:
                with self._lock:
                    now = time.monotonic()
                    self._idle.append((now + _IDLE, target, connection))
                    while self._idle and (
                        self._closed or len(self._idle) > _MOST_IDLE or self._idle[0][0] < now
                    ):
                        self._idle.pop(0)[2].close()
            else:
                answer.close()
                connection.close()

    def close(self) -> None:
        """Close the connections that are not in use. Those in use are not kept."""
        with self._lock:
            self._closed = True
            for _, _, connection in self._idle:
                connection.close()
            self._idle.clear()

    def _send(
        self,
        target: Target,
        path: str,
        fields: Mapping[str, str],
        budget: Budget,
        keep: bool,
        method: str,
        body: Iterable[bytes] | None,
    ) -> tuple[_Connection, HTTPResponse]:
        scheme, host, port, proxy = target
        if proxy and scheme == "http":
            path = f"http://{_host_field(scheme, host, port)}{path}"
            fields = {**proxy.authorization(), **fields}
        names = {name.lower() for name in fields}
        unsent = {"accept-encoding", "user-agent"} - names  # urllib3 would add its own
        fields = {**fields, **dict.fromkeys(unsent, SKIP_HEADER)}
        while True:
            if self._closed:
                raise Deferred("ended")
            connection = self._take(target, budget) if keep else None
            is_new = connection is None
            connection = connection or self._open(target, budget)
            try:
                budget.send()
                with _wrap_errors("bad-answer"):
                    connection.request(
                        method,
                        path,
                        body=None if body is None else _pieces(body, budget),
                        headers=fields,
                        preload_content=False,
                        decode_content=False,
                    )
                    answer = connection.getresponse()
                    original: Any = answer._original_response
                    assert_header_parsing(original.msg)
                    return connection, answer
            except FetchError as failure:
                connection.close()
                # A server may close a kept connection at any time: try again with a new one.
                if is_new or failure.code not in _BROKEN:
                    raise
            except BaseException:
                connection.close()
                raise

    def _open(self, target: Target, budget: Budget) -> _Connection:
        scheme, host, port, proxy = target
        place, at = (proxy.host, proxy.port) if proxy else (host, port)
        connection: _Connection
        if "https" in (scheme, proxy and proxy.scheme):
            connection = _TlsConnection(
                place,
                at,
                ssl_context=self._tls,
                proxy_config=ProxyConfig(self._tls, False, None, None),
            )
        else:
            connection = _Connection(place, at)
        if proxy and scheme == "https":
            connection.set_tunnel(host, port, proxy.authorization(), proxy.scheme)
        connection.policy, connection.budget = self._addresses, budget
        try:
            connection.connect()
        except TimeoutError as error:
            connection.close()
            raise FetchError("connect-timeout", f"{host}: TLS") from error
        except (OSError, ValueError, HTTPError, http.client.HTTPException) as error:
            connection.close()
            is_tls = isinstance(error, ssl.SSLError | TlsError) or proxy is None
            raise FetchError(
                "tls" if is_tls else "connect", f"{host}: {_one_line(error)}"
            ) from error
        except BaseException:
            connection.close()
            raise
        connection.sock = BudgetSocket(connection.sock, budget)
        return connection

    def _take(self, target: Target, budget: Budget) -> _Connection | None:
        """Return an idle connection that its server has not closed."""
        with self._lock:
            for entry in reversed(self._idle):
                if entry[1] == target:
                    self._idle.remove(entry)
                    if entry[0] > time.monotonic() and entry[2].is_connected:
                        socket: Any = entry[2].sock
                        socket.budget = budget
                        return entry[2]
                    entry[2].close()
        return None


def _host_field(scheme: str, host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host else host
    return name if port == PORTS[scheme] else f"{name}:{port}"


def _pieces(body: Iterable[bytes], budget: Budget) -> Iterator[bytes]:
    """Yield a body that is being sent; the time for the response starts anew with each piece."""
    for piece in body:
        budget.send()
        yield piece
    budget.send()


def _body(answer: HTTPResponse, budget: Budget) -> Iterator[bytes]:
    with _wrap_errors("cut-short"):
        while piece := answer.read1(_PIECE, decode_content=False):
            budget.count(len(piece))
            yield piece
            budget.resume()


def _one_line(error: BaseException) -> str:
    """Return the message of an error in one line."""
    text = error.args[0] if len(error.args) > 1 and isinstance(error.args[0], str) else str(error)
    return _BLANKS.sub(" ", text).strip()[:200] or type(error).__name__


@contextmanager
def _wrap_errors(code: str) -> Iterator[None]:
    """Turn errors of urllib3 into FetchError; `code` is for errors of the protocol."""
    try:
        yield
    except (HTTPError, http.client.HTTPException) as error:
        raise FetchError(code, _one_line(error)) from error
    except OSError as error:
        raise FetchError("cut-short", _one_line(error)) from error
