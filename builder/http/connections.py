"""Connections of the HTTP client: pooled, direct or over proxies, with a budget for each request.

It is the only file that imports httpx2. That and its httpcore2 provide pools, HTTP/1.1, TLS and
proxies. Redirects, cookies, content decoding and the environment's proxies stay off. Each would act
before the checks of builder.http.client, or accept a truncated body.
"""

import functools
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2

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

    A proxy resolves the names of the servers behind it, so `addresses` then checks only the proxy.
    """

    def __init__(self, addresses: AddressPolicy, tls: ssl.SSLContext, proxies: Proxies) -> None:
        self._client = httpx2.Client(
            transport=_Transport(AddressBackend(addresses), tls, proxies),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            trust_env=False,
        )

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str], budget: Budget) -> Iterator[Response]:
        """Give the response to a GET of `url`, which is sent as it is written.

        Raises FetchError and Deferred, also while the body is read.
        """
        answer = self._send(_request(url, headers, budget), budget)
        try:
            budget.begin_body()
            raw = tuple(
                (n.decode("latin-1"), responses.field_text(v)) for n, v in answer.headers.raw
            )
            reason = responses.field_text(answer.extensions.get("reason_phrase", b""))
            body = _body(answer, budget)
            yield Response(
                url, answer.status_code, responses.fields_by_name(raw), body, reason, raw
            )
        finally:
            answer.close()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _send(self, request: httpx2.Request, budget: Budget) -> httpx2.Response:
        while True:
            budget.dialled = False
            try:
                return self._client.send(request, stream=True)
            except RuntimeError as error:
                if not self._client.is_closed:
                    raise
                raise Deferred("ended") from error
            except FetchError as failure:
                # A server may close a kept connection at any time: try again with a new one.
                if budget.dialled or failure.code not in _BROKEN:
                    raise


def _request(url: str, headers: Mapping[str, str], budget: Budget) -> httpx2.Request:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.port == 0:  # httpcore2 treats 0 as the default port
        raise FetchError("port-refused", f"{host}:0")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if url.endswith("?"):
        target += "?"
    name = f"[{host}]" if ":" in host else host
    shown = name if parts.port in (None, PORTS[parts.scheme]) else f"{name}:{parts.port}"
    budget.send()
    # httpcore2 passes a timeout on unchanged, so the budget travels with its request.
    timeouts = dict.fromkeys(("connect", "read", "write"), budget)
    try:
        where = httpx2.URL(scheme=parts.scheme, host=host, port=parts.port)
    except httpx2.InvalidURL as error:
        raise FetchError("dns", f"{host}: {error}") from error
    return httpx2.Request(
        "GET",
        where,
        headers=[("Host", shown), *headers.items()],
        extensions={"timeout": timeouts, "target": target.encode()},
    )


def _body(answer: httpx2.Response, budget: Budget) -> Iterator[bytes]:
    for chunk in answer.iter_raw():
        budget.count(len(chunk))
        yield chunk
        budget.resume()


class _Transport(httpx2.BaseTransport):
    """Sends requests over pools of connections: one without a proxy, and one for each proxy."""

    def __init__(self, backend: AddressBackend, tls: ssl.SSLContext, proxies: Proxies) -> None:
        self._backend = backend
        self._tls = tls
        self._proxies = proxies
        self._pools: dict[Proxy | None, httpcore2.ConnectionPool] = {None: self._pool(None)}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        port = url.port or PORTS[url.scheme]
        proxy = self._proxies.of(url.scheme, url.raw_host.decode(), port)
        pool = self._pools.get(proxy) or self._pools.setdefault(proxy, self._pool(proxy))
        where = httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port,
            target=request.extensions["target"],
        )  # fmt: skip
        extensions = {"timeout": request.extensions["timeout"]}
        headers = request.headers.raw
        with _wrap_errors("bad-answer"):
            answer = pool.handle_request(
                httpcore2.Request("GET", where, headers=headers, extensions=extensions)
            )
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

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


class _Body(httpx2.SyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _wrap_errors("cut-short"):
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


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
