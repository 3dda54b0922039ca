"""Connections of the HTTP client: pooled, direct or over proxies, with a budget for each request.

httpcore2 provides pools, HTTP/1.1, TLS and proxies. httpx2 above it would add redirects, cookies,
content decoding and the environment's proxies. Each would act before the checks of
builder.http.client, or accept a truncated body. Without them it costs a fifth of a request's CPU.
"""

import functools
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpcore2

from builder.http import responses
from builder.http.addresses import AddressBackend, AddressPolicy, one_line
from builder.http.errors import Deferred, FetchError
from builder.http.limits import Budget
from builder.http.responses import Response
from builder.http.settings import PORTS, Proxies, Proxy

_IDLE = 60.0
"""Seconds for which an unused connection is kept."""
_MOST_IDLE = 32
_BROKEN = frozenset({"bad-answer", "cut-short"})


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Return the context that checks certificates against those that this machine trusts.

    It is created once: reading the certificates takes as long as many requests.
    """
    return httpcore2.default_ssl_context()


class Connections:
    """Sends GET requests, and keeps connections for later ones. Safe to use from threads.

    There is a pool of connections without a proxy, and one for each proxy. A proxy resolves the
    names of the servers behind it, so `addresses` then checks only the proxy.
    """

    def __init__(self, addresses: AddressPolicy, tls: ssl.SSLContext, proxies: Proxies) -> None:
        self._backend = AddressBackend(addresses)
        self._tls = tls
        self._proxies = proxies
        self._pools: dict[Proxy | None, httpcore2.ConnectionPool] = {None: self._pool(None)}
        self._closed = False

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str], budget: Budget) -> Iterator[Response]:
        """Give the response to a GET of `url`, which is sent as it is written.

        Raises FetchError and Deferred, also while the body is read.
        """
        parts = urlsplit(url)
        if parts.port == 0:  # httpcore2 treats 0 as the default port
            raise FetchError("port-refused", f"{parts.hostname}:0")
        port = parts.port or PORTS[parts.scheme]
        proxy = self._proxies.of(parts.scheme, parts.hostname or "", port)
        request = _request(url, parts, headers, budget)
        answer = self._send(request, proxy, budget)
        try:
            budget.begin_body()
            raw = _fields(answer.headers)
            reason = responses.field_text(answer.extensions.get("reason_phrase", b""))
            yield Response(
                url,
                answer.status,
                responses.fields_by_name(raw),
                _body(answer, budget),
                reason,
                raw,
                sent=_fields(request.headers),
                address=None if proxy else _address(answer),
            )
        finally:
            answer.close()

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        for pool in self._pools.values():
            pool.close()

    def _send(
        self, request: httpcore2.Request, proxy: Proxy | None, budget: Budget
    ) -> httpcore2.Response:
        pool = self._pools.get(proxy) or self._pools.setdefault(proxy, self._pool(proxy))
        while True:
            if self._closed:
                raise Deferred("ended")
            budget.dialled = False
            try:
                with _wrap_errors("bad-answer"):
                    return pool.handle_request(request)
            except FetchError as failure:
                # A server may close a kept connection at any time: try again with a new one.
                if budget.dialled or failure.code not in _BROKEN:
                    raise

    def _pool(self, proxy: Proxy | None) -> httpcore2.ConnectionPool:
        settings: dict[str, Any] = {
            "ssl_context": self._tls,
            "max_connections": None,
            "max_keepalive_connections": _MOST_IDLE,
            "keepalive_expiry": _IDLE,
            "network_backend": self._backend,
        }
        if proxy is None:
            return httpcore2.ConnectionPool(**settings)
        where = httpcore2.URL(scheme=proxy.scheme, host=proxy.host, port=proxy.port, target="/")
        return httpcore2.HTTPProxy(
            where,
            proxy_auth=proxy.user and (proxy.user[0].encode(), proxy.user[1].encode()),
            proxy_ssl_context=self._tls if proxy.scheme == "https" else None,
            **settings,
        )


def _request(
    url: str, parts: SplitResult, headers: Mapping[str, str], budget: Budget
) -> httpcore2.Request:
    host = parts.hostname or ""
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if url.endswith("?"):
        target += "?"
    name = f"[{host}]" if ":" in host else host
    shown = name if parts.port in (None, PORTS[parts.scheme]) else f"{name}:{parts.port}"
    budget.send()
    try:
        named = host.encode("idna")
    except UnicodeError as error:
        raise FetchError("dns", f"{host}: {error}") from error
    return httpcore2.Request(
        "GET",
        httpcore2.URL(scheme=parts.scheme, host=named, port=parts.port, target=target),
        headers=[("Host", shown), *headers.items()],
        # httpcore2 passes a timeout on unchanged, so the budget travels with its request.
        extensions={"timeout": dict.fromkeys(("connect", "read", "write"), budget)},
    )


def _fields(headers: Iterable[tuple[bytes, bytes]]) -> responses.Fields:
    return tuple((n.decode("latin-1"), responses.field_text(v)) for n, v in headers)


def _address(answer: httpcore2.Response) -> str | None:
    found = answer.extensions["network_stream"].get_extra_info("server_addr")
    return str(found[0]) if found else None


def _body(answer: httpcore2.Response, budget: Budget) -> Iterator[bytes]:
    with _wrap_errors("cut-short"):
        for chunk in answer.iter_stream():
            budget.count(len(chunk))
            yield chunk
            budget.resume()


@contextmanager
def _wrap_errors(code: str) -> Iterator[None]:
    """Turn errors of httpcore2 into FetchError; `code` is for errors of the protocol."""
    try:
        yield
    except httpcore2.ProtocolError as error:
        raise FetchError(code, one_line(error)) from error
    except httpcore2.NetworkError as error:
        raise FetchError("cut-short", one_line(error)) from error
    except httpcore2.ProxyError as error:
        raise FetchError("connect", f"the proxy says {one_line(error)}") from error
