"""Kept pages: always what would be rendered, whatever is published, purged or expired meanwhile."""

import gzip
import json
import os
import random
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.publish.selection import Selection
from builder.publish.withdraw import withdraw
from builder.serve.kept_pages import KeptPages
from functions.http import service
from functions.http.http_message import Call, HttpResponse
from functions.oai.application import Application
from tests.builder.conftest import World, capture
from tests.functions.oai.client import answer, call_of, configured, event

pytestmark = pytest.mark.shared(2)

GZIP = {"accept-encoding": "gzip", "host": "a.cz"}
FIRST = "verb=ListRecords&metadataPrefix=oai_dc"
_TOKEN = re.compile(rb"<resumptionToken[^>]*>([^<]+)<")
_DATE = re.compile(rb"<responseDate>[^<]*<")


class Served:
    """A store that is answered with kept pages, and without."""

    def __init__(self, world: World, folder: Path, **settings: Any) -> None:
        folder.mkdir()
        values = configured(repository_namespace="archive.example.org", **settings)
        self.lines: list[str] = []
        self.plain = Application(world.repository(), values, world.clock)
        self.application = Application(world.repository(), values, world.clock, self.lines.append)
        self.pages = KeptPages(
            self.application.answer,
            self.application.find_pin,
            self.application,
            folder,
            1 << 24,
            own_host=not values["repository.base_url"],
        )
        self.folder = folder

    def ask(self, query: str, **headers: str) -> dict[str, Any]:
        """Ask with kept pages; give the answer with its body in bytes, and `kept`."""
        response = self.pages(call_of(event(query, headers={**GZIP, **headers})))
        body = response.body
        data = body if isinstance(body, bytes) else b"".join(body)
        found = {"statusCode": response.status, "headers": response.headers}
        return {**found, "body": data, "kept": not isinstance(body, bytes)}

    def rendered(self, query: str) -> dict[str, Any]:
        return answer(self.plain, event(query, headers=GZIP))

    def walk(self, query: str = FIRST) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the requests of a list with their answers."""
        while query:
            answer = self.ask(query)
            yield query, answer
            match = _TOKEN.search(gzip.decompress(answer["body"]))
            query = f"verb=ListRecords&resumptionToken={match[1].decode()}" if match else ""


def text(answer: dict[str, Any]) -> bytes:
    """Return an answer's document; only its date may be older in a kept page."""
    return _DATE.sub(b"", gzip.decompress(answer["body"]))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    world.ingest([capture(n) for n in range(40)])
    world.publish()
    world.clock.sleep(30)
    yield world
    world.close()


def test_a_page_is_rendered_once_and_then_the_same_bytes(world: World, tmp_path: Path) -> None:
    served = Served(world, tmp_path / "pages", pages_records=9)
    first = list(served.walk())
    assert [answer["kept"] for _, answer in first] == [False] * 5
    world.clock.sleep(5)
    again = list(served.walk())
    # The first and the last page may change: they are rendered each time.
    assert [answer["kept"] for _, answer in again] == [False, True, True, True, False]
    for (query, one), (_, two) in zip(first, again, strict=True):
        assert text(one) == text(two) == text(served.rendered(query))
        if two["kept"]:
            assert (one["body"], one["headers"]) == (two["body"], two["headers"])
            assert not served.ask(query, host="b.cz")["kept"]  # its pages name another base URL
            held = served.ask(query, **{"if-none-match": one["headers"]["ETag"]})
            assert (held["statusCode"], held["body"]) == (304, b"")
    entries = [json.loads(line) for line in served.lines]
    (one, *others) = [e for e in entries if e.get("cursor") == 9]
    assert len(others) == 3  # kept, of another host, and held
    volatile = {"time": "", "milliseconds": 0, "store_requests": 0, "store_bytes": 0}
    assert {**others[0], **volatile} == {**one, **volatile}
    assert (others[2]["status"], others[2]["cached"], others[2]["bytes"]) == (304, True, 0)


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_other_requests_are_rendered(world: World, tmp_path: Path, method: str) -> None:
    served = Served(world, tmp_path / "pages", pages_records=9)
    for _ in range(2):
        queries = [query for query, _ in served.walk()]
    asked = call_of(event(queries[1], method, headers=GZIP))
    body = served.pages(asked).body
    assert isinstance(body, bytes)
    assert body == served.plain.answer(asked).body


def test_one_page_is_kept_for_clients_with_gzip_and_without(world: World, tmp_path: Path) -> None:
    """Whoever comes first has it kept; both get the bytes and headers that are rendered."""
    served = Served(world, tmp_path / "pages", pages_records=9)
    *_, (_, last) = walk = [*served.walk()]
    for path in served.folder.iterdir():
        path.unlink()
    identity = {"accept-encoding": "identity"}
    for number, (query, _) in enumerate(walk[1:-1]):
        orders: list[dict[str, str]] = [{}, identity]
        ways = {str(way): served.ask(query, **way) for way in orders[:: 1 - 2 * (number % 2)]}
        assert [way["kept"] for way in ways.values()] == [False, True]
        for way in orders:
            again, call = served.ask(query, **way), call_of(event(query, headers={**GZIP, **way}))
            rendered = served.plain.answer(call)
            assert again["kept"]
            assert again["body"] == ways[str(way)]["body"]
            assert again["headers"] == ways[str(way)]["headers"]
            assert {**rendered.headers, "Content-Length": ""} == {
                **again["headers"],
                "Content-Length": "",
            }
            assert int(again["headers"]["Content-Length"]) == len(again["body"])
            tag = {"if-none-match": again["headers"]["ETag"]}
            assert served.ask(query, **way, **tag)["statusCode"] == 304
        assert gzip.decompress(ways["{}"]["body"]) == ways[str(identity)]["body"]
    assert len([*served.folder.iterdir()]) == len(walk) - 2
    assert last["statusCode"] == 200


def test_a_kept_page_takes_no_place_of_those_that_are_rendered(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PATIENCE", 0.01)
    served = Served(world, tmp_path / "pages", pages_records=9, serve_concurrent=1)
    for _ in range(2):
        queries = [query for query, _ in served.walk()]
    with served.application._places:  # another request is being rendered
        assert served.ask(FIRST)["statusCode"] == 503
        assert served.ask(queries[1])["kept"]


def test_nothing_of_a_purged_item_is_answered_or_stays(world: World, tmp_path: Path) -> None:
    served = Served(world, tmp_path / "pages", pages_records=9)
    for _ in range(2):
        queries = [query for query, _ in served.walk()]
    secret = capture(20).url.encode()
    assert any(secret in gzip.decompress(served.ask(q)["body"]) for q in queries)
    chosen = Selection(set="domain:cz:example:h3")
    withdraw(world.store, world.configuration(), world.runtime(), chosen, "a court", purge=True)
    world.clock.sleep(100)
    for query in queries[1:-1]:
        found = served.ask(query)
        assert not found["kept"]
        assert secret not in gzip.decompress(found["body"])
    assert not any(secret in gzip.decompress(_body(path)) for path in served.folder.iterdir())


def _body(path: Path) -> bytes:
    data = path.read_bytes()
    return data[data.index(b"\x1f\x8b\x08") :]


def test_pages_of_an_expired_snapshot_are_not_answered_while_their_files_remain(
    world: World, tmp_path: Path
) -> None:
    served = Served(world, tmp_path / "pages", pages_records=9)
    old = [query for query, _ in served.walk()][1]
    world.ingest([capture(50)])
    world.publish()
    world.clock.sleep(100)
    assert served.ask(old)["kept"]
    world.expire()
    world.clock.sleep(3)  # a reading of the pointer serves for two seconds
    assert answer(served.application, event("verb=Identify"))["statusCode"] == 200
    assert list(served.folder.glob("1-*"))
    assert not served.ask(old)["kept"]


def test_a_page_that_is_rendered_during_a_purge_does_not_stay(world: World, tmp_path: Path) -> None:
    served = Served(world, tmp_path / "pages", pages_records=9)
    queries = [query for query, _ in served.walk()]
    for path in served.folder.iterdir():
        path.unlink()
    render = served.application.answer

    def render_slowly(call: Call) -> HttpResponse:
        """Render a page, and purge before it is stored; another request learns of that."""
        found = render(call)
        chosen = Selection(set="domain:cz:example:h3")
        withdraw(world.store, world.configuration(), world.runtime(), chosen, "a court", purge=True)
        world.clock.sleep(100)
        served.pages.answer = render
        assert served.ask("verb=Identify")["statusCode"] == 200
        return found

    served.pages.answer = render_slowly
    assert not served.ask(queries[1])["kept"]
    assert list(served.folder.iterdir()) == []


def test_a_purge_removes_files_with_the_next_request_of_any_kind(
    world: World, tmp_path: Path
) -> None:
    served = Served(world, tmp_path / "pages", pages_records=9)
    list(served.walk())
    assert list(served.folder.iterdir())
    chosen = Selection(set="domain:cz:example:h3")
    withdraw(world.store, world.configuration(), world.runtime(), chosen, "a court", purge=True)
    world.clock.sleep(100)
    assert served.ask("verb=Identify")["statusCode"] == 200
    assert list(served.folder.iterdir()) == []


def test_the_spelling_of_a_request_makes_no_page_of_its_own(world: World, tmp_path: Path) -> None:
    served = Served(world, tmp_path / "pages", pages_records=9)
    queries = [query for query, _ in served.walk()]
    files = {*served.folder.iterdir()}
    verb, token = queries[1].split("&")
    for other in (f"{token}&{verb}", queries[1].replace("List", "%4Cist")):
        found = served.ask(other)
        assert found["kept"]
        assert text(found) == text(served.rendered(other))
    assert {*served.folder.iterdir()} == files


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(4))
def test_over_any_history_kept_pages_are_what_would_be_rendered(
    world: World, tmp_path: Path, seed: int
) -> None:
    """Tokens of all times are asked for again after each publish, withdrawal and expiry."""
    draw = random.Random(seed)
    served = Served(world, tmp_path / "pages", pages_records=7, serve_pointer_seconds=2)
    queries: list[str] = []
    hits = 0
    for step in range(8):
        queries += [query for query, _ in served.walk()]
        for query in draw.sample(queries, min(len(queries), 20)):
            found, plain = served.ask(query), served.rendered(query)
            assert found["statusCode"] == plain["statusCode"]
            assert text(found) == text(plain), (seed, step)
            hits += found["kept"]
        what = draw.choice(("publish", "publish", "expire", "withdraw", "nothing"))
        if what == "publish":
            some = [capture(draw.randrange(60), title=str(step)) for _ in range(5)]
            world.ingest(list({one.url: one for one in some}.values()))
            world.publish()
        elif what == "expire":
            world.clock.sleep(100)
            world.expire(keep=1, older=timedelta(0))
        elif what == "withdraw":
            chosen = Selection(set=f"domain:cz:example:h{draw.randrange(5)}")
            withdraw(world.store, world.configuration(), world.runtime(), chosen, "asked")
        world.clock.sleep(draw.choice((1, 3, 100)))
    assert hits


def made(folder: Path, most: int, world: World, workers: int = 1) -> KeptPages:
    """Return pages in a folder whose bodies do not matter."""
    application = Application(world.repository(), configured(), world.clock)
    answer, find_pin = application.answer, application.find_pin
    return KeptPages(answer, find_pin, application, folder, most, own_host=True, workers=workers)


def store(pages: KeptPages, folder: Path, name: str, size: int) -> None:
    headers = {"Content-Encoding": "gzip"}
    pages._store(folder / f"1-{name}", HttpResponse(200, headers, b"x" * size))


def test_the_folder_stays_within_its_bound_and_the_oldest_pages_go(
    world: World, tmp_path: Path
) -> None:
    folder, most, draw = tmp_path / "pages", 100_000, random.Random(1)
    folder.mkdir()
    workers = [made(folder, most, world, 2) for _ in range(2)]
    for number in range(200):
        store(draw.choice(workers), folder, str(number), draw.randrange(1, 4900))
        os.utime(folder / f"1-{number}", ns=(number, number))
        assert sum(path.stat().st_size for path in folder.iterdir()) <= most
    left = sorted(int(path.name[2:]) for path in folder.iterdir())
    assert left == list(range(left[0], 200))
    store(workers[0], folder, "large", 5001)
    assert not (folder / "1-large").exists()


def test_a_folder_that_takes_nothing_is_told_of_once(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pages = made(tmp_path / "nowhere", 1 << 20, world)
    for name in "abc":
        store(pages, tmp_path / "nowhere", name, 10)
    assert caplog.text.count("pages cannot be kept") == 1
