"""Kept pages: always what would be rendered, whatever is published, purged or expired meanwhile."""

import gzip
import json
import os
import random
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.serve.kept_pages import KeptPages, LineRecorder
from builder.serve.page_cache import KeptBody, PageCache
from builder.withdraw.selection import Selection
from builder.withdraw.withdraw import withdraw
from functions.oai.application import Application
from functions.oai.as_of import RENEWAL
from tests.builder.conftest import World, capture
from tests.functions.oai.client import configured, event

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
        self.queries: list[str] = []
        self.bodies: list[bytes] = []
        self.recorder = LineRecorder(self.lines.append)
        self.plain = Application(world.repository(), values, world.clock)
        kept = Application(world.repository(), values, world.clock, self.recorder)
        self.cache = PageCache(folder, 1 << 24)
        self.pages = KeptPages(
            kept.answer,
            kept,
            self.cache,
            world.clock,
            self.recorder,
            own_host=not values["repository.base_url"],
        )
        self.application = kept
        self.folder = folder

    def ask(self, query: str, **headers: str) -> dict[str, Any]:
        """Ask with kept pages; give the answer with its body in bytes, and `kept`."""
        answer = self.pages(event(query, headers={**GZIP, **headers}))
        body = answer["body"]
        found = {**answer, "kept": isinstance(body, KeptBody)}
        if isinstance(body, KeptBody):
            found["body"] = os.pread(body.file.fileno(), body.size, body.offset)
        return found

    def rendered(self, query: str) -> dict[str, Any]:
        return self.plain.answer(event(query, headers=GZIP))

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


def quick(served: Served, query: str, host: str = "a.cz") -> bytes | None:
    line = f"GET /oai?{query} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: gzip\r\n\r\n"
    found = served.pages.quick(line.encode())
    if found is None:
        return None
    found.sent()
    return os.pread(found.body.file.fileno(), found.body.size, found.body.offset)


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
            assert quick(served, query) == two["body"]
            assert quick(served, query, host="b.cz") is None  # its pages name another base URL
            held = served.ask(query, **{"if-none-match": one["headers"]["ETag"]})
            assert (held["statusCode"], held["body"]) == (304, b"")
    entries = [json.loads(line) for line in served.lines]
    (one, *others) = [e for e in entries if e.get("cursor") == 9]
    assert len(others) == 3  # kept, quick and held
    for other in others[:2]:
        assert {**other, "time": "", "milliseconds": 0} == {**one, "time": "", "milliseconds": 0}
    assert (others[2]["status"], others[2]["cached"], others[2]["bytes"]) == (304, True, 0)


def test_the_pointer_is_read_again_before_quick_answers_end(world: World, tmp_path: Path) -> None:
    served = Served(world, tmp_path / "pages", pages_records=9)
    second = [query for query, _ in served.walk()][1]
    served.ask(second)
    assert quick(served, second)
    for _ in range(5):
        world.clock.sleep(1)
        assert quick(served, second)
        for thread in threading.enumerate():
            if thread.name == RENEWAL:
                thread.join()
    world.clock.sleep(2)
    assert quick(served, second) is None


@pytest.mark.parametrize(
    ("method", "headers"),
    [("GET", {"accept-encoding": "identity"}), ("HEAD", {}), ("POST", {})],
)
def test_other_requests_are_rendered(
    world: World, tmp_path: Path, method: str, headers: dict[str, str]
) -> None:
    served = Served(world, tmp_path / "pages", pages_records=9)
    for _ in range(2):
        queries = [query for query, _ in served.walk()]
    asked = event(queries[1], method, headers={**GZIP, **headers})
    answer = served.pages(asked)
    assert isinstance(answer["body"], bytes)
    assert answer["body"] == served.plain.answer(asked)["body"]


def test_a_kept_page_takes_no_place_of_those_that_are_rendered(
    world: World, tmp_path: Path
) -> None:
    served = Served(world, tmp_path / "pages", pages_records=9, serve_concurrent=1)
    for _ in range(2):
        queries = [query for query, _ in served.walk()]
    with served.application._places:  # another request is being rendered
        assert served.ask(FIRST)["statusCode"] == 503
        assert served.ask(queries[1])["kept"]
        assert quick(served, queries[1]) is not None


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
        assert quick(served, query) is None
        answer = served.ask(query)
        assert not answer["kept"]
        assert secret not in gzip.decompress(answer["body"])
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
    assert quick(served, old) is not None
    world.expire()
    world.clock.sleep(3)  # a reading of the pointer serves for two seconds
    assert served.application.answer(event("verb=Identify"))["statusCode"] == 200
    assert list(served.folder.glob("1-*"))
    assert quick(served, old) is None
    assert not served.ask(old)["kept"]


def test_a_page_that_is_rendered_during_a_purge_does_not_stay(world: World, tmp_path: Path) -> None:
    served = Served(world, tmp_path / "pages", pages_records=9)
    queries = [query for query, _ in served.walk()]
    for path in served.folder.iterdir():
        path.unlink()
    answer = served.application.answer

    def answer_slowly(event: object) -> dict[str, Any]:
        """Render a page, and purge before it is stored; another request learns of that."""
        found = answer(event)
        chosen = Selection(set="domain:cz:example:h3")
        withdraw(world.store, world.configuration(), world.runtime(), chosen, "a court", purge=True)
        world.clock.sleep(100)
        served.pages._answer = answer
        assert served.ask("verb=Identify")["statusCode"] == 200
        return found

    served.pages._answer = answer_slowly
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
        assert quick(served, other) is None  # it was not asked for before
        answer = served.ask(other)
        assert answer["kept"]
        assert text(answer) == text(served.rendered(other))
        assert quick(served, other) == answer["body"]
    assert {*served.folder.iterdir()} == files


def test_pages_below_a_path_of_the_base_url_are_answered_quickly(
    world: World, tmp_path: Path
) -> None:
    base = "http://a.cz/archive/oai"
    served = Served(world, tmp_path / "pages", pages_records=9, repository_base_url=base)
    queries = [query for query, _ in served.walk()]
    asked = event(queries[1], headers=GZIP, path="/archive/oai")
    assert isinstance(served.pages(asked)["body"], KeptBody)
    line = f"GET /archive/oai?{queries[1]} HTTP/1.1\r\nHost: a.cz\r\nAccept-Encoding: gzip\r\n\r\n"
    assert served.pages.quick(line.encode()) is not None


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
            fast = quick(served, query)
            found, plain = served.ask(query), served.rendered(query)
            assert found["statusCode"] == plain["statusCode"]
            assert text(found) == text(plain), (seed, step)
            assert fast is None or fast == found["body"]
            hits += fast is not None
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
