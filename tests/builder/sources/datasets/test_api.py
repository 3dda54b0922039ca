"""Platforms are asked for documents politely and safely, and whatever they answer is one status."""

import gzip
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.http.errors import OUTCOMES, FetchError
from builder.http.limits import Limits
from builder.sources.datasets.download import api, download
from builder.sources.datasets.protocols import ApiAnswer, FilesetError
from builder.sources.datasets.status import BOTH, FILE, RESULT, STATUSES
from tests.builder.sources.datasets.server import (
    Answer,
    Server,
    bomb,
    bot_wall,
    endless,
    html,
    json_of,
    login,
    redirect,
    served,
    silent,
    status,
    text,
    then,
)
from tests.builder.sources.datasets.world import World, manifest_file, world
from tests.memory import at_most

URL = "https://api.example.org/records/1?x=%2F"
PAGE = "https://www.example.org/records/1"


def refusal(there: World, url: str = URL, **more: object) -> FilesetError:
    with pytest.raises(FilesetError) as error:
        there.api().document(url, **more)
    return error.value


def page_refusal(there: World) -> FilesetError:
    with pytest.raises(FilesetError) as error:
        there.api().page(PAGE)
    return error.value


def test_a_document(there: World) -> None:
    there.server.add(URL, json_of({"id": 1, "ä": ["ß"]}))
    assert there.api().document(URL) == {"id": 1, "ä": ["ß"]}
    (asked,) = there.server.asked()
    assert asked.target == "/records/1?x=%2F"
    assert asked.headers["accept"] == "application/json"


def test_an_answer_tells_where_it_came_from(there: World) -> None:
    there.server.add(URL, redirect("https://doi.example.org/a"))
    there.server.add("https://doi.example.org/a", redirect("../b?c=d"))
    end = there.server.add("https://doi.example.org/b?c=d", json_of([1], X_Total="3"))
    found = there.api().answer(URL)
    assert isinstance(found, ApiAnswer)
    assert (found.url, found.hops) == (end, (URL, "https://doi.example.org/a"))
    assert (found.status, found.media_type, found.body) == (200, "application/json", b"[1]")
    assert found.headers["x-total"] == "3"


def test_statuses_that_are_asked_for_are_answers(there: World) -> None:
    there.server.add(URL, json_of({"gone": True}, 410))
    found = there.api().answer(URL, accept="application/vnd.x+json", statuses=frozenset({410}))
    assert (found.status, json.loads(found.body)) == (410, {"gone": True})
    assert there.server.asked()[0].headers["accept"] == "application/vnd.x+json"


@pytest.mark.parametrize(
    ("code", "told", "many"),
    [
        (404, "platform-404", 1),
        (410, "platform-gone", 1),
        (401, "platform-restricted", 1),
        (403, "platform-restricted", 1),
        (451, "platform-restricted", 1),
        (429, "platform-rate-limited", 4),
        (500, "platform-http-error", 4),
        (503, "platform-http-error", 4),
        (400, "platform-http-error", 1),
        (418, "platform-http-error", 1),
    ],
)
def test_statuses_that_are_none(there: World, code: int, told: str, many: int) -> None:
    there.server.add(URL, status(code))
    error = refusal(there)
    assert error.status == told
    assert str(code) in error.detail
    assert len(there.server.asked()) == many


def test_what_passes_is_asked_for_again(there: World) -> None:
    there.server.add(URL, then(status(502), served(b'{"id"', length=99), json_of([2])))
    assert there.api().document(URL) == [2]


def test_a_rest_that_is_too_long_is_told_at_once(there: World) -> None:
    there.server.add(URL, status(429, Retry_After="7200"))
    assert refusal(there).status == "platform-rate-limited"
    assert refusal(there).status == "platform-http-error"  # left alone, whatever is asked for
    assert len(there.server.asked()) == 1


def test_a_host_that_was_not_reached_is_tried_again_later(server: Server, tmp_path: Path) -> None:
    """A worker that goes on for days meets hosts that are down for an hour."""
    now = [time.monotonic()]
    there = world(server, tmp_path, clock=lambda: now[0])
    url = "https://down.example.org/"
    for _ in range(2):
        with pytest.raises(FilesetError, match=r"dns|not requested"):
            there.ways.api(now[0] + 60).document(url)
    server.add(url, json_of([1]))
    with pytest.raises(FilesetError, match="not requested"):
        there.ways.api(now[0] + 60).document(url)
    now[0] += 700
    assert there.ways.api(now[0] + 60).document(url) == [1]


def test_who_is_busy_is_waited_for(server: Server, tmp_path: Path) -> None:
    """As long as there is time: large files of a host may take it for hours."""
    there = world(server, tmp_path, http__host_concurrent=1, http__tries=1)
    file = server.add("https://api.example.org/large", served(b"x" * 60, drip=(0.01, 1)))
    server.add(URL, json_of([1]))
    fetching = threading.Thread(
        target=lambda: there.downloader().download(manifest_file(file), 1000, there.sink)
    )
    fetching.start()
    while not server.asked(file):
        time.sleep(0.01)
    assert replace(there.api(), patience=0.1).document(URL) == [1]
    fetching.join()
    assert there.kept == [b"x" * 60]


def test_packed_answers_are_unpacked(there: World) -> None:
    packed = gzip.compress(b'{"a": 1}')
    there.server.add(URL, text(packed, "application/json", Content_Encoding="gzip"))
    assert there.api().document(URL) == {"a": 1}
    assert "gzip" in there.server.asked()[0].headers["accept-encoding"]


def test_a_bomb_fails_in_little_memory(there: World) -> None:
    """Scenario 22: ten gigabytes, were they unpacked."""
    there.server.add(URL, bomb(10))
    with at_most(150 << 20):
        assert refusal(there).status == "platform-bad-response"


def said(data: bytes, **headers: str) -> Answer:
    return text(data, "application/json", **headers)


PACKED = gzip.compress(b'{"a": 1}')
BAD, BOT = "platform-bad-response", "platform-bot-wall"
REFUSED: dict[str, tuple[Answer, str]] = {
    "empty": (said(b""), BAD),
    "cut": (said(b"{"), BAD),
    "nan": (said(b'{"a": NaN}'), BAD),
    "no text": (said(b"\xff\xfe"), BAD),
    "deep": (said(b"[" * 200_000), BAD),
    "long number": (said(b"1" * 10_000), BAD),
    "more behind": (said(b'{"a": 1} x'), BAD),
    "packed and cut": (said(PACKED[:-3], Content_Encoding="gzip"), BAD),
    "not packed": (said(b"{}", Content_Encoding="gzip"), BAD),
    "packed in an unknown way": (said(b"{}", Content_Encoding="br"), BAD),
    "endless": (endless("application/json", pause=0), BAD),
    # Scenario 26: a login wall is told from a wall against robots, and both from an odd page.
    "login": (login(), "platform-login-wall"),
    "wall": (bot_wall(), BOT),
    "wall with 200": (bot_wall(200), BOT),
    "wall with 503": (bot_wall(503), BOT),
    "page": (html("<html><body>Welcome</body></html>"), BAD),
    "riddle": (html("<title>x</title><p>anubis_challenge", 200), BOT),
    # A 403 of who was asked too often restricts nothing.
    "403": (json_of({"message": "no"}, 403), "platform-restricted"),
    "403 for now": (json_of({}, 403, Retry_After="0"), "platform-rate-limited"),
    "403 of none left": (json_of({}, 403, X_RateLimit_Remaining="0"), "platform-rate-limited"),
    "403 of some left": (json_of({}, 403, X_RateLimit_Remaining="59"), "platform-restricted"),
    "redirect to a file": (redirect("file:///etc/passwd"), BAD),
    "redirect with a password": (redirect("https://u:p@x.example.org/"), BAD),
    "redirect to itself": (redirect(URL), BAD),
    "redirect to nowhere": (status(302), "platform-http-error"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_no_document_is_refused(there: World, why: str) -> None:
    answer, told = REFUSED[why]
    there.server.add(URL, answer)
    error = refusal(there)
    assert error.status == told
    assert len(error.detail) < 400
    if told in ("platform-login-wall", BOT):
        assert len(there.server.asked()) == 1


@pytest.mark.parametrize(
    "document",
    [
        {"status": 403, "message": "Ask the\nowner"},
        {"errors": [{"detail": "Ask the owner"}]},
        {"error": {"message": "Ask the owner"}},
    ],
)
def test_a_refusal_has_the_message_of_the_platform(there: World, document: Any) -> None:
    there.server.add(URL, json_of(document, 403))
    error = refusal(there)
    assert error.status == "platform-restricted"
    assert error.detail == "HTTP status 403: Ask the owner"


def test_links_lead_to_hosts_of_the_platform_alone(there: World) -> None:
    there.server.add(URL, json_of([1]))
    assert there.api().document(URL, hosts=("api.example.org",)) == [1]
    evil = there.server.add("https://evil.example.net/next", json_of([2]))
    error = refusal(there, evil, hosts=("api.example.org",))
    assert (error.status, error.code) == ("platform-bad-response", "foreign-link")
    broken = refusal(there, "https://[::1", hosts=("api.example.org",))
    assert (broken.status, broken.code) == ("platform-bad-response", "foreign-link")
    there.server.add(URL, redirect(evil))
    assert refusal(there, hosts=("api.example.org",)).status == "platform-bad-response"
    assert not there.server.asked(evil)
    assert there.api().document(URL) == [2]


def test_what_never_answers_is_a_timeout(server: Server, tmp_path: Path) -> None:
    there = world(server, tmp_path, limits=Limits(5, 0.3, rate=1), http__tries=2)
    server.add(URL, silent())
    assert refusal(there).status == "platform-timeout"


def test_a_deadline_and_a_stop(there: World) -> None:
    there.server.add(URL, silent())
    with pytest.raises(FilesetError) as error:
        there.api(0.3).document(URL)
    assert error.value.status in ("deadline-exceeded", "platform-timeout")
    threading.Timer(0.2, there.stop.set).start()
    begun = time.monotonic()
    assert refusal(there).status == "cancelled"
    assert time.monotonic() - begun < 30


def test_a_landing_page(there: World) -> None:
    there.server.add(PAGE, html("<html><title>A dataset</title><input type=password></html>"))
    found = there.api().page(PAGE)
    assert found.media_type == "text/html"
    assert b"A dataset" in found.body
    assert [one.target for one in there.server.asked()] == ["/robots.txt", "/records/1"]


@pytest.mark.parametrize("path", ["/rpxlogin", "/cas-2020/weights", "/sso-survey", "/blogin/1"])
def test_a_page_that_offers_a_login_is_no_login_page(there: World, path: str) -> None:
    url = f"https://www.example.org{path}"
    there.server.add(url, login())
    assert there.api().page(url).status == 200


def test_nothing_is_asked_when_the_time_is_over(there: World) -> None:
    there.server.add(URL, json_of([1]))
    with pytest.raises(FilesetError) as error:
        there.api(0.0).document(URL)
    assert (error.value.status, error.value.detail) == ("deadline-exceeded", "")
    assert not there.server.asked()


def test_robots_are_asked_about_pages_alone(server: Server, tmp_path: Path) -> None:
    there = world(server, tmp_path)
    robots = "User-agent: Sheaf\nDisallow: /records/\n"
    server.add("https://www.example.org/robots.txt", text(robots, "text/plain"))
    server.add(PAGE, html("<html>"))
    assert page_refusal(there).status == "robots-disallowed"
    assert not server.asked(PAGE)
    assert there.api().answer(PAGE, accept="text/html").status == 200
    assert world(server, tmp_path, http__robots=False).api().page(PAGE).status == 200


def test_robots_that_cannot_be_had_forbid(there: World) -> None:
    there.server.add("https://www.example.org/robots.txt", status(500))
    there.server.add(PAGE, html("<html>"))
    error = page_refusal(there)
    assert error.status == "platform-http-error"
    assert "robots" in error.detail
    assert not there.server.asked(PAGE)


@pytest.mark.parametrize(
    ("end", "answer", "told"),
    [
        ("https://www.example.org/login?next=x", login(), "platform-login-wall"),
        (PAGE, bot_wall(200), "platform-bot-wall"),
        (PAGE, bot_wall(403), "platform-bot-wall"),
    ],
)
def test_walls_before_landing_pages(there: World, end: str, answer: Answer, told: str) -> None:
    there.server.add(PAGE, redirect(end))
    there.server.add(end, answer)
    assert page_refusal(there).status == told


def test_a_wall_that_asks_to_be_left_alone_is_left_alone(server: Server, tmp_path: Path) -> None:
    """Who keeps robots out by 429 is asked again by nobody before the time that it tells."""
    now = [0.0]
    there = world(server, tmp_path, clock=lambda: now[0])
    page = "<html><title>Just a moment...</title></html>"
    server.add(URL, html(page, 429, Retry_After="3600", cf_mitigated="challenge"))
    assert refusal(there).status == "platform-bot-wall"
    assert there.ways.client.hosts.resting(3599) == ["api.example.org"]


@pytest.mark.parametrize("coding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("half", ["\\ud800", "\ud800"], ids=["escaped", "raw"])
def test_half_a_character_is_none_however_it_is_written(
    there: World, coding: str, half: str
) -> None:
    written = f'{{"a{half}": ["{half}b", "😀"]}}'
    there.server.add(URL, text(written.encode(coding, "surrogatepass"), "application/json"))
    assert there.api().document(URL) == {"a\ufffd": ["\ufffdb", "😀"]}


def test_a_document_of_more_values_than_can_be_held_is_refused(there: World) -> None:
    """What is small as bytes is large as a document: three bytes become some seventy."""
    data = b"[" + b"{}," * 4_000_000 + b"{}]"
    there.server.add(URL, text(data, "application/json"))
    with at_most(100_000_000):
        error = refusal(there)
    assert error.status == "platform-bad-response"
    assert "values" in error.detail


@pytest.mark.parametrize(
    ("kind", "first", "is_it"),
    [
        ("text/html", b"<!doctype HTML>", True),
        ("text/html", b"\xef\xbb\xbf \n<html>", True),
        ("text/html", b"<script>1</script>", True),
        ("text/html", b"a,b\n1,2", False),
        ("text/html", b"PK\x03\x04", False),
        ("text/html", b"", True),
        (None, b"", False),
        ("application/zip", b"<HTML lang=en>", True),
        ("application/zip", b"<script>", False),
        ("application/xml", b"<?xml version='1.0'?><data/>", False),
        ("application/xml", b"<?xml version='1.0'?>\n<html xmlns='x'>", True),
        ("image/svg+xml", b"<svg>", False),
        (None, b"<htmlish>", False),
    ],
)
def test_a_page_is_known_by_its_first_bytes(kind: str | None, first: bytes, is_it: bool) -> None:
    assert api.is_page(kind, first) is is_it


@settings(deadline=None)
@given(st.binary(max_size=2000), st.sampled_from([None, "text/html", "text/csv"]))
def test_any_bytes_are_a_page_or_none(data: bytes, kind: str | None) -> None:
    assert api.is_page(kind, data) in (True, False)
    assert api.blocks_robots({}, data) in (True, False)


@pytest.mark.parametrize("code", sorted(OUTCOMES))
def test_every_failure_has_a_status(code: str) -> None:
    failure = FetchError(code, "it was so")
    of_request, of_file = api.error_of(failure), download.error_of(failure)
    assert STATUSES[of_request.status].scope in (RESULT, BOTH)
    assert STATUSES[of_file.status].scope in (FILE, BOTH)
    assert of_request.code == of_file.code == code
    assert of_request.detail == of_file.detail == "it was so"
    assert not STATUSES[of_request.status].hit
    assert not STATUSES[of_file.status].hit


@pytest.mark.parametrize("table", [api.STATUSES, download.STATUSES])
def test_the_tables_name_failures_that_there_are(table: dict[str, str]) -> None:
    assert table.keys() <= OUTCOMES.keys()


@pytest.mark.parametrize("code", sorted(code for code, one in OUTCOMES.items() if one.soon))
def test_what_passes_may_be_otherwise_another_time(code: str) -> None:
    assert STATUSES[download.error_of(FetchError(code)).status].retryable
    if code != "robots-unreachable":
        assert STATUSES[api.error_of(FetchError(code)).status].retryable
