"""What the one client does with redirects, connections, cookies and credentials."""

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace

import pytest

from builder.http.addresses import AnyAddresses, PublicAddresses, networks
from builder.http.client import FetchRequest, HttpClient
from builder.http.cookies import Cookies
from builder.http.errors import Deferred, FetchError
from builder.http.limits import Limits, RetryPolicy
from builder.http.politeness import HostPolicy, HostQueue
from tests.builder.http import site as web
from tests.builder.http.site import Site

LIMITS = Limits(connect=10, first_byte=10, total=30, rate=1, bytes=1_000_000)
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def site() -> Iterator[Site]:
    with web.serving() as site:
        site.pages["/a"] = web.text("hello")
        yield site


@pytest.fixture
def client() -> Iterator[HttpClient]:
    stop = threading.Event()
    hosts = HostQueue(HostPolicy(concurrent=4, forgives=0), stop)
    made = HttpClient(
        agent="Sheaf/test", addresses=AnyAddresses(), hosts=hosts, stop=stop, keep_alive=True
    )
    with closing(made):
        yield made


def fetch(client: HttpClient, url: str, **more: object) -> tuple[int, bytes, tuple[str, ...]]:
    request = FetchRequest(url=url, limits=LIMITS, **more)  # type: ignore[arg-type]
    with client.fetch(request) as response:
        return response.status, b"".join(response.body), response.hops


def code(client: HttpClient, url: str, **more: object) -> str:
    with pytest.raises(FetchError) as error:
        fetch(client, url, **more)
    return error.value.code


def test_cookies_are_not_sent_back_where_exchanges_are_archived(
    site: Site, client: HttpClient
) -> None:
    site.pages["/a"] = web.text("x", Set_Cookie="id=1; Path=/")
    for _ in range(2):
        fetch(client, site.url("/a"))
    assert all("cookie" not in request.headers for request in site.requests)


def test_a_cookie_returns_to_its_own_origin_alone(site: Site, client: HttpClient) -> None:
    own = replace(client, cookies=Cookies())
    site.pages["/a"] = web.text("x", Set_Cookie="id=1; Path=/; Domain=127.0.0.1")
    site.pages["/away"] = web.redirect(site.url("/a", "localhost"))
    site.pages["/there"] = web.text("x", Set_Cookie="id=2; Path=/there")
    for path in ("/a", "/a", "/away", "/there", "/there"):
        fetch(own, site.url(path))
    sent = [(request.path, request.headers.get("cookie")) for request in site.requests]
    back = "id=2; id=1"
    assert sent == [
        *(("/a", None), ("/a", "id=1"), ("/away", "id=1"), ("/a", None)),
        *(("/there", "id=1"), ("/there", back)),
    ]
    with own.fetch(FetchRequest(url=site.url("/a"), limits=LIMITS)) as response:
        assert "Cookie" not in dict(response.sent)
    with web.serving() as other:  # another port is another origin
        other.pages["/a"] = web.text("x")
        fetch(own, other.url("/a"))
    assert "cookie" not in other.requests[0].headers
    own.close()


def test_a_redirect_that_sets_a_cookie_is_no_loop(site: Site, client: HttpClient) -> None:
    own = replace(client, cookies=Cookies())
    first = web.status(302, Location="/x", Set_Cookie="seen=1")
    site.pages["/x"] = web.then(first, web.text("there"))
    assert fetch(own, site.url("/x"))[1] == b"there"
    site.pages["/x"] = first
    assert code(own, site.url("/x")) == "redirect-loop"
    own.close()


@pytest.mark.parametrize(
    "field", ["id=" + "x" * 5000, "id=\u017e", "id=1; Domain=example.org", "="]
)
def test_other_cookies_are_ignored(site: Site, client: HttpClient, field: str) -> None:
    own = replace(client, cookies=Cookies())
    site.pages["/a"] = web.raw(OK + f"Set-Cookie: {field}\r\nContent-Length: 1\r\n\r\nx".encode())
    for _ in range(2):
        assert fetch(own, site.url("/a"))[0] == 200
    assert not [request for request in site.requests if "cookie" in request.headers]
    own.close()


@pytest.mark.parametrize("keep", [True, False])
def test_connections_are_kept_only_for_servers_that_the_operator_names(
    site: Site, client: HttpClient, keep: bool
) -> None:
    own = replace(client, keep_alive=keep)
    for _ in range(2):
        assert fetch(own, site.url("/a"))[1] == b"hello"
    assert ["close" in r.headers.get("connection", "") for r in site.requests] == [not keep] * 2
    own.close()


def test_bytes_behind_an_answer_are_never_the_next_one(site: Site, client: HttpClient) -> None:
    forged = OK + b"Content-Length: 6\r\n\r\nforged"
    site.pages["/long"] = web.raw(OK + b"Content-Length: 2\r\n\r\nab" + forged)
    own = replace(client, keep_alive=False)
    assert fetch(own, site.url("/long"))[1] == b"ab"
    assert fetch(own, site.url("/a"))[1] == b"hello"
    own.close()


def test_fields_are_as_they_were_sent_and_received(site: Site, client: HttpClient) -> None:
    """An archive of the exchange needs order, case, repetition and the address."""
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n" * 2
    fields = (
        b"x-B: 1\r\nX-b:  2 \r\nSet-Cookie: \xc5\xbe\r\nX-Long: a\r\n  b\r\nContent-Length: 2\r\n"
    )
    site.pages["/x%7e?a=%2f"] = web.raw(early + OK + fields + b"\r\nab")
    headers = {"b-Field": "1", "User-Agent": "S", "A-Field": "2"}
    request = FetchRequest(url=site.url("/x%7e?a=%2f"), limits=LIMITS, headers=headers)
    with replace(client, agent="S").fetch(request) as response:
        assert b"".join(response.body) == b"ab"
        expected = (("x-B", "1"), ("X-b", "2"), ("Set-Cookie", "ž"), ("X-Long", "a b"))
        assert response.raw == (*expected, ("Content-Length", "2"))
        assert response.headers["x-b"] == "1"
        assert (response.status, response.reason, response.address) == (200, "OK", "127.0.0.1")
        sent = (("Host", f"127.0.0.1:{site.port}"), ("User-Agent", "S"), ("b-Field", "1"))
        assert response.sent == (*sent, ("A-Field", "2"))
    (seen,) = site.requests
    assert list(seen.headers) == ["host", "user-agent", "b-field", "a-field"]


def test_a_name_is_looked_up_once_for_a_connection_and_checked_each_time(
    site: Site, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: a name that leads into our own network the next time."""
    answers = ["127.0.0.1", "10.0.0.1"]

    def look_up(host: str, port: int, *_: object, **more: object) -> list[tuple[object, ...]]:
        assert host == "a.example.org"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers.pop(0), port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    guard = PublicAddresses(frozenset({site.port}), networks(["127.0.0.0/8"]))
    own = replace(client, addresses=guard, keep_alive=False)
    assert fetch(own, site.url("/a", "a.example.org"))[1] == b"hello"
    assert len(answers) == 1
    assert code(own, site.url("/a", "a.example.org")) == "address-refused"
    assert site.requests[0].headers["host"] == f"a.example.org:{site.port}"
    own.close()


@pytest.mark.parametrize(
    "answer", [web.silent(9), web.raw(b"x", 9, 1, OK + b"Content-Length: 2\r\n\r\n")]
)
def test_a_stop_ends_a_wait(site: Site, client: HttpClient, answer: web.Answer) -> None:
    site.pages["/slow"] = answer
    threading.Timer(0.1, client.stop.set).start()
    began = time.monotonic()
    with pytest.raises(Deferred):
        fetch(client, site.url("/slow"))
    assert time.monotonic() - began < 4


def test_a_closed_client_defers(site: Site, client: HttpClient) -> None:
    fetch(client, site.url("/a"))
    client.close()
    with pytest.raises(Deferred):
        fetch(client, site.url("/a"))


def test_redirects_lose_nothing_where_urls_are_exact(site: Site, client: HttpClient) -> None:
    site.pages |= {"/x": web.redirect("/c/%7ed?x=%2f"), "/c/%7ed?x=%2f": web.text("there")}
    found = fetch(client, site.url("/x"), exact=True)
    assert found == (200, b"there", (site.url("/x"),))
    site.pages["/c/~d?x=%2F"] = web.text("normal")
    assert fetch(client, site.url("/x"))[1] == b"normal"


def test_a_query_that_a_redirect_forgot_is_kept(site: Site, client: HttpClient) -> None:
    site.pages |= {"/x?verb=Identify": web.redirect("/y"), "/y?verb=Identify": web.text("there")}
    assert fetch(client, site.url("/x?verb=Identify"), keep_query=True)[1] == b"there"
    assert fetch(client, site.url("/x?verb=Identify"))[0] == 404


@pytest.mark.parametrize("location", ["/x", "/y"])
def test_a_loop_is_noticed(site: Site, client: HttpClient, location: str) -> None:
    site.pages |= {"/x": web.redirect(location), "/y": web.redirect("/x")}
    assert code(client, site.url("/x")) == "redirect-loop"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("//[x", "bad-redirect"),
        ("http://[::1", "bad-redirect"),
        ("http://a.cz:x/", "bad-redirect"),
        ("http://127.0.0.1:99999/", "bad-redirect"),
        ("http://a b/", "bad-redirect"),
        ("ftp://a.cz/", "unsupported-scheme"),
        ("file:///etc/passwd", "unsupported-scheme"),
        ("http://u:p@a.cz/", "userinfo"),
        ("x" * 9000, "bad-redirect"),
        ("mailto:a@b", "unsupported-scheme"),
        ("javascript:1", "unsupported-scheme"),
        ("http://u@a.cz/", "userinfo"),
        ("http://", "redirect-loop"),
    ],
)
def test_any_other_location_is_refused(
    site: Site, client: HttpClient, location: str, expected: str
) -> None:
    site.pages["/x"] = web.redirect(location)
    assert code(client, site.url("/x")) == expected


def test_no_host_but_those_named_is_asked(site: Site, client: HttpClient) -> None:
    site.pages["/x"] = web.redirect(site.url("/a", "localhost"))
    assert code(client, site.url("/x"), within=("127.0.0.1",)) == "bad-redirect"
    assert site.paths() == ["/x"]


def test_credentials_are_asked_for_at_each_hop(site: Site, client: HttpClient) -> None:
    def own(url: str) -> Mapping[str, str]:
        return {"Authorization": "Bearer t"} if "127.0.0.1" in url else {}

    site.pages["/x"] = web.redirect(site.url("/a", "localhost"))
    told = replace(client, credentials=own)
    assert fetch(told, site.url("/x"))[0] == 200
    assert ["authorization" in request.headers for request in site.requests] == [True, False]
    told.close()


def test_waits_double_up_to_a_limit_and_follow_the_server() -> None:
    policy = RetryPolicy(retries=9, first=0.5, longest=30, most=3)
    assert [policy.wait(tried) for tried in (1, 2, 3, 4, 99)] == [0.5, 1, 2, 3, 3]
    assert [policy.wait(1, asked) for asked in (0.0, 7.0, 99.0)] == [0.5, 7, 30]
