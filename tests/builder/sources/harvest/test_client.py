"""Requests of a harvest: what is asked, how often, and when; over one connection that stays."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from email.utils import formatdate

import pytest

from builder.http.addresses import AnyAddresses
from builder.http.client import HttpClient
from builder.http.errors import Deferred
from builder.http.limits import Limits, RetryPolicy
from builder.http.politeness import HostPolicy, HostQueue
from builder.sources.harvest.client import OaiClient, OaiSettings
from builder.sources.harvest.errors import Unanswered
from tests.builder.http import site as web
from tests.builder.http.site import Site
from tests.builder.sources.harvest.test_page import HEADER, answer, listed

IDENTIFY = {"verb": "Identify"}
LIST = {"verb": "ListRecords", "metadataPrefix": "oai_dc"}
GOOD = answer("<Identify><repositoryName>R</repositoryName></Identify>")
Reply = tuple[int, dict[str, str], bytes]


@contextmanager
def serving(reply: Callable[[str, int], Reply], *, lasting: bool = True) -> Iterator[Site]:
    """Serve answers that are those of a function of the path and the count of requests."""
    with web.serving() as site:

        def answer(handler: web.BaseHTTPRequestHandler) -> None:
            status, headers, body = reply(handler.path, len(site.requests))
            media_type = headers.get("Content-Type", "text/xml")
            others = {name: value for name, value in headers.items() if name != "Content-Type"}
            web.text(body, media_type, status, **others)(handler)

        site.lasting, site.other = lasting, answer
        yield site


class Waits(threading.Event):
    """Waits for nothing, and keeps for how long it was to be waited."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        return self.is_set()


def client(base: str, stop: threading.Event, **more: object) -> OaiClient:
    limits = Limits(connect=20, first_byte=20, total=60, rate=1, bytes=1_000_000)
    hosts = HostQueue(HostPolicy(concurrent=2, forgives=0), threading.Event())
    http = HttpClient(agent="Sheaf/1", addresses=AnyAddresses(), hosts=hosts, stop=stop)
    given: dict[str, object] = {"say": lambda text: None, "retry": RetryPolicy(first=0.5), **more}
    return OaiClient(base, http, OaiSettings(limits=limits, **given))  # type: ignore[arg-type]


@contextmanager
def asking(site: Site, **more: object) -> Iterator[tuple[OaiClient, Waits]]:
    stop = Waits()
    exchange = client(site.url("/oai"), stop, **more)
    try:
        yield exchange, stop
    finally:
        exchange.close()


@pytest.mark.parametrize("lasting", [True, False])
def test_one_connection_stays_open_and_one_that_was_ended_is_made_again(lasting: bool) -> None:
    with (
        serving(lambda path, n: (200, {}, GOOD), lasting=lasting) as site,
        asking(site) as (exchange, stop),
    ):
        for _ in range(3):
            assert exchange.ask(IDENTIFY).rows == ({"repositoryName": "R"},)
            time.sleep(0 if lasting else 0.05)  # in which its end comes
    assert len({one.client for one in site.requests}) == (1 if lasting else 3)
    assert site.paths() == ["/oai?verb=Identify"] * 3
    assert site.requests[0].headers["accept-encoding"] == "gzip, deflate"
    assert site.requests[0].headers["user-agent"] == "Sheaf/1"
    assert stop.seconds == []


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        ({}, [0.5, 1.0, 2.0]),
        ({"Retry-After": "7"}, [7.0] * 3),
        ({"Retry-After": "600"}, [600.0] * 3),
        ({"Retry-After": formatdate(0, usegmt=True)}, [0.5] * 3),
        ({"Retry-After": "0"}, [0.5] * 3),
        ({"Retry-After": "soon"}, [0.5, 1.0, 2.0]),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_it_is_waited_for_as_long_as_is_asked_for(
    status: int, headers: dict[str, str], waited: list[float]
) -> None:
    def reply(path: str, number: int) -> Reply:
        return (status, headers, b"later") if number < 4 else (200, {}, GOOD)

    with serving(reply) as site, asking(site) as (exchange, stop):
        assert exchange.ask(IDENTIFY).rows
    assert stop.seconds == waited


@pytest.mark.parametrize(
    ("wish", "until"),
    [
        ("172800", r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
        (formatdate(5_000_000_000, usegmt=True), "2128-06-11T08:53:20Z"),
    ],
)
def test_a_wait_beyond_the_limit_ends_the_run_and_is_named(wish: str, until: str) -> None:
    with (
        serving(lambda path, n: (503, {"Retry-After": wish}, b"later")) as site,
        asking(site) as (exchange, stop),
        pytest.raises(Unanswered, match=f"HTTP status 503, asked to wait until {until}") as error,
    ):
        exchange.ask(IDENTIFY)
    assert error.value.later
    assert (len(site.requests), stop.seconds) == (1, [])


def test_cookies_are_sent_back_within_a_run() -> None:
    """Tokens of some repositories are good only within the session that a cookie names."""

    def reply(path: str, number: int) -> Reply:
        return 200, {"Set-Cookie": "JSESSIONID=abc; Path=/; HttpOnly"}, GOOD

    with serving(reply) as site:
        for _ in range(2):
            with asking(site, headers={"X-Key": "k"}) as (exchange, _):
                exchange.ask(IDENTIFY)
                exchange.ask(IDENTIFY)
    sent = [one.headers.get("cookie") for one in site.requests]
    assert sent == [None, "JSESSIONID=abc"] * 2


LARGE = GOOD + b" " * 1_000_001


@pytest.mark.parametrize(
    ("status", "body", "times", "later", "said"),
    [
        (404, b"<html>", 1, False, "HTTP status 404"),
        (422, b"<html>", 1, False, "HTTP status 422"),
        (500, b"<html>", 3, False, "HTTP status 500"),
        (502, b"<html>", 6, False, "HTTP status 502"),
        (503, b"<html>", 6, True, "HTTP status 503"),
        (200, LARGE, 6, False, "too-large"),
    ],
)
def test_what_does_not_pass_is_told(
    status: int, body: bytes, times: int, later: bool, said: str
) -> None:
    with (
        serving(lambda path, n: (status, {}, body)) as site,
        asking(site) as (exchange, stop),
    ):
        with pytest.raises(Unanswered, match=said) as told:
            exchange.ask(IDENTIFY)
        if status == 503:  # all waits end when it is stopped
            stop.set()
            with pytest.raises(Deferred):
                exchange.ask(IDENTIFY)
    if body is not LARGE:
        assert len(site.requests) == times
        assert (told.value.status, told.value.later) == (status, later)


def test_errors_are_read_whatever_the_status() -> None:
    body = answer('<error code="badResumptionToken">old</error>')
    with serving(lambda path, n: (500, {}, body)) as site, asking(site) as (exchange, _):
        assert exchange.ask(IDENTIFY).errors == (("badResumptionToken", "old"),)
    assert len(site.requests) == 1


def test_headers_of_ones_own_go_to_ones_own_host_alone() -> None:
    told: list[str] = []
    with serving(lambda path, n: (200, {}, GOOD)) as other:
        place = f"http://localhost:{other.port}/there"

        def reply(path: str, number: int) -> Reply:
            return 302, {"Location": place}, b""

        with (
            serving(reply) as site,
            asking(site, headers={"X-Key": "k"}, say=told.append) as (exchange, _),
        ):
            exchange.ask(IDENTIFY)
            exchange.ask(IDENTIFY)
    assert [one.headers.get("x-key") for one in site.requests] == ["k"]  # the base URL moved
    assert [one.headers.get("x-key") for one in other.requests] == [None, None]
    assert other.paths() == ["/there?verb=Identify"] * 2  # the arguments were forgotten
    assert told == [f"{site.url('/oai')} redirects to another host: {place}"]


@pytest.mark.parametrize(
    ("base", "place", "sent"),
    [
        ("http://a.cz/oai", "http://a.cz/other", True),
        ("http://a.cz/oai", "https://a.cz/oai", True),
        ("https://a.cz/oai", "http://a.cz/oai", False),
        ("https://a.cz/oai", "https://a.cz:8443/oai", False),
        ("https://a.cz/oai", "https://b.cz/oai", False),
    ],
)
def test_headers_of_ones_own_never_go_in_the_clear_where_they_did_not(
    base: str, place: str, sent: bool
) -> None:
    told: list[str] = []
    with closing(client(base, Waits(), say=told.append, headers={"X-Key": "k"})) as exchange:
        assert ("X-Key" in exchange._client.credentials(place)) == sent
        exchange._move(f"{base}?verb=Identify", place)
    assert ["encrypted" in one for one in told] == (
        [True] if place == "http://a.cz/oai" else [False] * (not sent)
    )


@pytest.mark.parametrize("place", ["/oai?verb=Identify", "ftp://a.cz/", "http://u:p@a.cz/", "//["])
def test_redirects_that_lead_nowhere_are_told(place: str) -> None:
    with (
        serving(lambda path, n: (301, {"Location": place}, b"")) as site,
        asking(site, retry=RetryPolicy(retries=0)) as (exchange, _),
        pytest.raises(Unanswered, match=r"redirect-loop|unsupported-scheme|userinfo|bad-redirect"),
    ):
        exchange.ask(IDENTIFY)
    assert len(site.requests) <= 6


def test_the_next_page_is_asked_for_while_one_is_taken_and_once() -> None:
    asked = threading.Event()

    def reply(path: str, number: int) -> Reply:
        token = "<resumptionToken> a&amp;b </resumptionToken>"
        if "resumptionToken" in path:
            asked.set()
            token = ""
        return 200, {}, listed(f"<record>{HEADER}</record>{token}")

    with serving(reply) as site, asking(site) as (exchange, _):
        page = exchange.ask(LIST)
        assert asked.wait(20)
        assert exchange.ask({"verb": "GetRecord"}).entries
        assert exchange.ask({"verb": "ListRecords", "resumptionToken": page.token or ""}).entries
    assert [path.count("resumptionToken=a%26b") for path in site.paths()] == [0, 1, 0]
    assert len({one.client for one in site.requests}) == 1


def test_a_broken_page_is_taken_apart_when_it_comes_again() -> None:
    body = listed(f"<record>{HEADER}</record><record>{HEADER}<a>")
    with serving(lambda path, n: (200, {}, body)) as site, asking(site) as (exchange, _):
        page = exchange.ask(LIST)
    assert len(page.entries) == len(page.lost) == 1
    assert len(site.requests) == 3


def test_what_is_waited_for_is_told_with_its_end() -> None:
    """A server that has published nothing yet asks for half a minute, again and again."""
    says: list[str] = []
    headers = {"Retry-After": "30", "Content-Type": "text/plain"}

    def reply(path: str, number: int) -> Reply:
        return (
            (503, headers, b"Nothing is published here yet.\n") if number < 3 else (200, {}, GOOD)
        )

    with serving(reply) as site, asking(site, say=says.append) as (exchange, _):
        exchange.ask(IDENTIFY)
    reason = f"{site.url('/oai')}: HTTP status 503 (Nothing is published here yet)"
    assert says == [
        f"{reason}: asking again in 30 s, then {left} more tries at most; Ctrl-C ends it"
        for left in (19, 18)
    ]


def test_retries_of_a_server_that_is_not_there_are_told_as_soon_as_they_are_long() -> None:
    says: list[str] = []
    with serving(lambda path, n: (200, {}, GOOD)) as site:
        pass
    with asking(site, say=says.append) as (exchange, stop), pytest.raises(Unanswered) as told:
        exchange.ask(IDENTIFY)
    assert told.value.later
    assert stop.seconds == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert [text.partition("again in ")[2][:3] for text in says] == ["4 s", "8 s"]  # after 3.5 s
    assert all("Connection refused" in text for text in says)
