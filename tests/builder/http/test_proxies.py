"""Proxies that the environment names: which one, for whom, and what goes over it."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from builder.errors import UsageError
from builder.http.addresses import AnyAddresses
from builder.http.connections import Connections, tls_context
from builder.http.errors import FetchError
from builder.http.limits import Budget, Limits
from builder.http.settings import Proxies, proxies
from tests.builder.http import certificates
from tests.builder.http import site as web
from tests.builder.http.forwarding import forwarding
from tests.builder.http.site import Site

NAME = "repository.invalid"
"""Which no machine but a proxy could find."""


def by(environment: dict[str, str], url: str = "http://a.cz/") -> str | None:
    scheme, _, rest = url.partition("://")
    host, _, port = rest.rstrip("/").rpartition(":")
    named = (host.strip("[]"), int(port)) if host else (port, {"http": 80, "https": 443}[scheme])
    found = proxies(environment).of(scheme, *named)
    return None if found is None else f"{found.scheme}://{found}"


@pytest.mark.parametrize(
    ("environment", "http", "https"),
    [
        ({}, None, None),
        ({"HTTP_PROXY": "http://p:3128"}, "http://p:3128", None),
        ({"https_proxy": "http://p:3128/"}, None, "http://p:3128"),
        ({"ALL_PROXY": "http://p:3128"}, "http://p:3128", "http://p:3128"),
        ({"ALL_PROXY": "http://p:1", "HTTPS_PROXY": "http://q:2"}, "http://p:1", "http://q:2"),
        ({"http_proxy": "http://p:1", "HTTP_PROXY": "http://q:2"}, "http://p:1", None),
        (
            {"http_proxy": "", "HTTP_PROXY": "http://q:2", "ALL_PROXY": "http://p:1"},
            None,
            "http://p:1",
        ),
        ({"HTTP_PROXY": "p:3128"}, "http://p:3128", None),
        ({"HTTP_PROXY": "http://p"}, "http://p:80", None),
        ({"HTTP_PROXY": "https://p"}, "https://p:443", None),
        ({"HTTP_PROXY": "http://[::1]:3128"}, "http://::1:3128", None),
        ({"HTTP_PROXY": "http://u:p%40ss@p:3128"}, "http://p:3128", None),
    ],
)
def test_which_proxy(environment: dict[str, str], http: str | None, https: str | None) -> None:
    assert by(environment, "http://a.cz/") == http
    assert by(environment, "https://a.cz/") == https


def test_who_asks_a_proxy_is_written_down_nowhere() -> None:
    found = proxies({"HTTP_PROXY": "http://u:p%40ss@p:3128"})
    proxy = found.of("http", "a.cz", 80)
    assert proxy is not None
    assert proxy.user == ("u", "p@ss")
    assert "p@ss" not in f"{found} {proxy} {proxy!r}"


@pytest.mark.parametrize(
    "value",
    [
        "socks5://p:1080",
        "ftp://p",
        "http://",
        "http://p:port",
        "http://p:0",
        "http://p:99999",
        "http://[::1",
        "http://p/path",
        "http://příklad.cz:3128",
        "hidden:hidden@",
    ],
)
def test_what_is_no_proxy_is_told_without_what_it_says(value: str) -> None:
    with pytest.raises(UsageError, match=r"^HTTPS_PROXY is not a usable proxy") as told:
        proxies({"HTTPS_PROXY": value}).of("https", "a.cz", 443)
    assert value not in str(told.value)


def test_what_is_no_proxy_is_in_nobody_s_way_who_needs_none() -> None:
    found = proxies({"ALL_PROXY": "socks5://p", "HTTP_PROXY": "http://p", "NO_PROXY": "b.cz"})
    assert found.of("https", "localhost", 443) is None
    assert found.of("https", "b.cz", 443) is None
    assert found.of_url("http://a.cz/oai") is not None
    with pytest.raises(UsageError, match=r"^ALL_PROXY is not a usable proxy"):
        found.of_url("https://a.cz/oai")


@pytest.mark.parametrize(
    ("besides", "url", "without"),
    [
        ("a.cz", "http://a.cz/", True),
        ("A.CZ", "http://www.a.cz/", True),
        (".a.cz", "http://a.cz/", True),
        ("*.a.cz", "http://www.a.cz/", True),
        ("a.cz", "http://aa.cz/", False),
        ("www.a.cz", "http://a.cz/", False),
        ("b.cz, a.cz ,", "http://a.cz/", True),
        ("*", "http://a.cz/", True),
        ("a.cz:8080", "http://a.cz:8080/", True),
        ("a.cz:8080", "http://a.cz/", False),
        ("10.0.0.0/8", "http://10.1.2.3/", True),
        ("10.0.0.0/8", "http://11.1.2.3/", False),
        ("10.1.2.3", "http://10.1.2.3/", True),
        ("10.1.2.3:81", "http://10.1.2.3/", False),
        ("2001:db8::/32", "http://[2001:db8::1]:80/", True),
        ("[2001:db8::1]:81", "http://[2001:db8::1]:81/", True),
        ("[2001:db8::1]:81", "http://[2001:db8::1]:80/", False),
        ("", "http://a.cz/", False),
        ("", "http://localhost:8090/", True),
        ("", "http://www.localhost:8090/", True),
        ("", "http://127.1.2.3:8090/", True),
        ("", "http://[::1]:8090/", True),
        ("", "http://localhost.cz:8090/", False),
    ],
)
@pytest.mark.parametrize("name", ["no_proxy", "NO_PROXY"])
def test_who_is_asked_without_one(besides: str, url: str, without: bool, name: str) -> None:
    found = by({"HTTP_PROXY": "http://p:3128", name: besides}, url)
    assert found == (None if without else "http://p:3128")


@pytest.fixture
def site() -> Iterator[Site]:
    with web.serving() as site:
        site.pages["/a?b=c"] = web.text("hello")
        yield site


def line(given: Proxies, tls: ssl.SSLContext | None = None) -> Connections:
    return Connections(AnyAddresses(), tls or tls_context(), given)


def asked(line: Connections, url: str, **headers: str) -> tuple[int, bytes]:
    budget = Budget(Limits(10, 10, 20, 1, 10**6), threading.Event())
    with line.send(url, headers, budget, keep=True) as answer:
        return answer.status, b"".join(answer.body)


def told(line: Connections, url: str) -> str:
    with pytest.raises(FetchError) as failure:
        asked(line, url)
    return str(failure.value)


@pytest.mark.parametrize("user", ["", "me:se/cret"])
def test_http_goes_over_one_connection_to_the_proxy(site: Site, user: str) -> None:
    with ExitStack() as stack:
        proxy = stack.enter_context(forwarding(site.port, user))
        own = line(proxies({"HTTP_PROXY": proxy.url().replace("/cret", "%2Fcret")}))
        stack.callback(own.close)
        for _ in range(3):
            assert asked(own, f"http://{NAME}/a?b=c", Key="k") == (200, b"hello")
    assert proxy.seen == [("GET", f"http://{NAME}/a?b=c")] * 3
    assert proxy.connections == 1
    for request in site.requests:
        assert request.headers["key"] == "k"
        assert "proxy-authorization" not in request.headers


@pytest.mark.parametrize("user", ["", "me:secret"])
def test_https_goes_through_a_tunnel(user: str) -> None:
    """The proxy sees a host and nothing else; the certificate is the server's."""
    with ExitStack() as stack:
        site = stack.enter_context(web.serving(tls=certificates.of_host(NAME)))
        site.pages["/a"] = web.text("hello")
        proxy = stack.enter_context(forwarding(site.port, user))
        own = line(proxies({"HTTPS_PROXY": proxy.url()}), certificates.trusted())
        stack.callback(own.close)
        for _ in range(2):
            assert asked(own, f"https://{NAME}/a") == (200, b"hello")
        strict = line(proxies({"HTTPS_PROXY": proxy.url()}))
        assert "certificate" in told(strict, f"https://{NAME}/a").lower()
    assert set(proxy.seen) == {("CONNECT", f"{NAME}:443")}


def test_a_proxy_may_be_asked_by_tls(site: Site) -> None:
    with forwarding(site.port, tls=certificates.of_host("localhost")) as proxy:
        there = line(proxies({"ALL_PROXY": proxy.url("https")}), certificates.trusted())
        assert asked(there, f"http://{NAME}/a?b=c") == (200, b"hello")
        there.close()


def test_a_tunnel_may_lead_through_a_proxy_by_tls() -> None:
    trusting = certificates.trusted()
    with (
        web.serving(tls=certificates.of_host(NAME)) as site,
        forwarding(site.port, tls=certificates.of_host("localhost")) as proxy,
        closing(line(proxies({"ALL_PROXY": proxy.url("https")}), trusting)) as there,
    ):
        site.pages["/a"] = web.text("hello")
        assert asked(there, f"https://{NAME}/a") == (200, b"hello")
    assert proxy.seen == [("CONNECT", f"{NAME}:443")]


def test_a_connection_that_the_proxy_ended_is_made_anew(site: Site) -> None:
    with forwarding(site.port) as proxy:
        proxy.ends = True
        own = line(proxies({"HTTP_PROXY": proxy.url()}))
        for _ in range(3):
            assert asked(own, f"http://{NAME}/a?b=c") == (200, b"hello")
        own.close()
    assert proxy.connections == 3


def test_what_a_proxy_refuses_is_told(site: Site) -> None:
    with forwarding(site.port, "me:secret") as proxy:
        wrong = line(proxies({"ALL_PROXY": f"http://me:hidden@localhost:{proxy.port}"}))
        assert asked(wrong, f"http://{NAME}/a?b=c")[0] == 407
        said = told(wrong, f"https://{NAME}/a")
        refusal = "Tunnel connection failed: 407 Proxy Authentication Required"
        assert said == f"connect: {NAME}: {refusal}"


def test_a_proxy_that_is_not_there_is_named() -> None:
    gone = line(proxies({"ALL_PROXY": "http://127.0.0.1:9"}))
    for scheme in ("http", "https"):
        assert told(gone, f"{scheme}://{NAME}/").startswith("connect: 127.0.0.1:9: ")


def test_others_are_asked_directly(site: Site) -> None:
    with forwarding(site.port) as proxy:
        own = line(proxies({"HTTP_PROXY": proxy.url()}))
        assert asked(own, site.url("/a?b=c")) == (200, b"hello")
        own.close()
    assert proxy.seen == []
