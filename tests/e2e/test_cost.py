"""What requests take of a bucket: counted by a proxy, and by the access log alike."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from functions.config import configuration
from functions.content import cdx, memento
from functions.content.search import CaptureSearch
from functions.http.http_message import Call, Reply
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from functions.search.query import parse
from functions.search.search import WordSearch
from functions.site.assembly import site_over
from functions.snapshot import dumps, layout
from functions.snapshot.manifest import Manifest
from functions.store import mirror
from functions.store.client import Client
from functions.store.connection import BucketConnection
from functions.store.store_reader import BucketReader
from tests.bucket import Bucket, fresh
from tests.e2e.test_s3 import Bucketed
from tests.functions.oai.client import event, respond
from tests.proxy import Proxy, Slow, always, proxied

FIRST = "verb=ListRecords&metadataPrefix=oai_dc"
TOKEN = re.compile(r"<resumptionToken[^>]*>([^<]+)</resumptionToken>")


@pytest.fixture(scope="module")
def proxy(moto_server: str) -> Iterator[Proxy]:
    with proxied(moto_server) as one:
        yield one


@pytest.fixture(scope="module")
def bucket(moto_server: str, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Bucket:
    """Give a bucket with files of many row groups, out of two publishes; none is small."""
    folder = tmp_path_factory.mktemp("cost")
    home = Bucketed(folder / "home", fresh(moto_server), proxy.url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "GROUP_ROWS", 256)
        patch.setattr(layout, "WORD_GROUP_ROWS", 1024)
        for number, (start, end) in enumerate(((0, 5000), (4950, 5500))):
            pages = {
                f"http://h{n % 700}.cz/{n}": f"<title>{number}, the {n}th</title>".encode()
                for n in range(start, end)
            }
            home.publish_pages(folder / f"{number}.warc.gz", pages)
    return home.bucket.through(proxy.url)


class Environment:
    """The handler over the bucket, as one execution environment has it, and its access log."""

    def __init__(
        self, bucket: Bucket, proxy: Proxy, page: int = 100, more: str = "", **kept: Any
    ) -> None:
        text = f"""
[repository]
namespace = "b.cz"
[pages]
records = {page}
[serve]
pointer_seconds = 30
concurrent = 64
{more}
"""
        connection = BucketConnection(endpoint=proxy.url, retry_seconds=0.3)
        self.proxy = proxy
        client = Client(bucket._address, connection, bucket.environment)
        self.reader = BucketReader(bucket._address, client, 64 << 20)
        self.repository = DuckRepository(self.reader, **kept)
        self.lines: list[str] = []
        self.application = Application(
            self.repository,
            configuration.parse(text, {}),
            lambda: datetime.now(UTC),
            self.lines.append,
            pages=site_over(self.repository),
        )

    def ask(self, query: str, path: str = "/oai") -> str:
        answer = respond(self.application, event(query, path=path))
        assert answer["statusCode"] == 200, answer["body"]
        return str(answer["body"])

    def cost(self, query: str, path: str = "/oai") -> int:
        """Return how many requests an answer takes; the log must say the same."""
        self.proxy.seen.clear()
        self.ask(query, path)
        told = json.loads(self.lines[-1])
        assert told["store_requests"] == len(self.proxy.seen)
        assert (told["store_bytes"] > 0) == (told["store_requests"] > 0)
        return len(self.proxy.seen)

    def manifest(self) -> Manifest:
        newest = self.repository.pointer().newest()
        return self.repository.manifest(newest.snapshot)

    def search(self, address: str) -> tuple[int, Reply]:
        """Return how many requests a list of captures takes, the manifest known, and the list."""
        path, _, query = address.partition("?")
        captures = CaptureSearch(self.repository.catalogue, self.repository.files)
        answers = {"cdx": cdx.reply, "timemap": memento.timemap, "timegate": memento.timegate}
        manifest, settings = self.manifest(), configuration.parse("", {})
        self.proxy.seen.clear()
        call = Call("GET", "http://x", path, query)
        reply = answers[path.split("/")[1]](call, captures, manifest, settings)
        return len(self.proxy.seen), reply

    def after(self, body: str) -> str:
        """Return the query that goes on behind a page."""
        token = TOKEN.search(body)
        return f"verb=ListRecords&resumptionToken={quote(token[1])}"

    def close(self) -> None:
        self.repository.close()
        self.reader.close()


@pytest.fixture
def begin(
    bucket: Bucket, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Environment]]:
    """Give what begins an environment; no file counts as one that is fetched whole."""
    monkeypatch.setattr(mirror, "SMALL", 30_000)
    made: list[Environment] = []

    def environment(**settings: Any) -> Environment:
        proxy.fault = lambda seen: None
        made.append(Environment(bucket, proxy, **settings))
        return made[-1]

    yield environment
    for one in made:
        one.close()


def identifiers(body: str) -> list[str]:
    return re.findall(r"<identifier>(oai:[^<]+)", body)


@pytest.mark.thorough
def test_what_an_answer_takes_of_a_cold_environment(begin: Callable[..., Environment]) -> None:
    """The pointer, the manifest, and what the answer itself needs."""
    found = begin()
    (identifier, *_) = identifiers(found.ask(FIRST))
    for query, most in (
        ("verb=Identify", 2),
        ("verb=ListMetadataFormats", 2),
        (FIRST, 3),
        ("verb=ListIdentifiers&metadataPrefix=oai_dc", 3),
        (f"{FIRST}&from=2020-01-01", 3),
        (f"{FIRST}&set=mime:text:html", 4),
    ):
        assert begin().cost(query) == most, query
    # The look-up of both publishes, and which positions are superseded.
    get = f"verb=GetRecord&metadataPrefix=oai_dc&identifier={identifier}"
    assert begin().cost(get) <= 6


def test_the_figures_are_one_request_and_a_page_of_publishes_is_another(
    begin: Callable[..., Environment], proxy: Proxy
) -> None:
    """Besides the pointer and the manifest."""
    environment = begin()
    proxy.seen.clear()
    repository, manifest = environment.repository, environment.manifest()
    for _ in range(2):
        figures = repository.figures(manifest)
        assert (figures.captures, len(figures.hosts)) == (5550, 100)
        assert len(proxy.seen) == 3
    for _ in range(2):
        assert len(repository.publishes(manifest, None, 10)) == 2
        assert len(proxy.seen) == 4


def test_a_page_that_goes_on_is_one_request_however_new_its_file(
    begin: Callable[..., Environment], bucket: Bucket
) -> None:
    for number in range(0, 5000, 1000):
        environment = begin(page=200)
        body = environment.ask(FIRST)
        for _ in range(number // 1000):
            body = environment.ask(environment.after(body))
        costs = []
        for _ in range(4):
            costs.append(environment.cost(environment.after(body)))
            body = environment.ask(environment.after(body))
        assert max(costs) <= 2, costs  # a row group, and once which positions are superseded
        assert sorted(costs)[-2] <= 1, costs


def test_a_page_in_two_row_groups_is_one_request(begin: Callable[..., Environment]) -> None:
    environment = begin(page=400)
    assert environment.cost(FIRST) == 3


def test_what_a_record_takes_of_a_warm_environment(begin: Callable[..., Environment]) -> None:
    environment = begin(page=1000)
    names = identifiers(environment.ask(FIRST))
    get = "verb=GetRecord&metadataPrefix=oai_dc&identifier="
    environment.ask(get + names[0])
    costs = [environment.cost(get + name) for name in names[100::90]]
    assert max(costs) <= 3, costs


def test_lines_tell_what_came_though_many_ask_at_once(
    begin: Callable[..., Environment], proxy: Proxy
) -> None:
    environment = begin(page=150, ahead=True)
    environment.ask("verb=Identify")
    proxy.fault = always(Slow(0.01))
    proxy.seen.clear()
    before = len(environment.lines)

    def harvest(query: str) -> None:
        body = environment.ask(query)
        for _ in range(5):
            if TOKEN.search(body):
                body = environment.ask(environment.after(body))

    asked = [
        *(f"{FIRST}&set=domain:cz:h{n}" for n in range(6)),
        *[FIRST] * 4,
        *[f"{FIRST}&set=mime:text:html"] * 4,
    ]
    threads = [threading.Thread(target=harvest, args=(query,)) for query in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [json.loads(line) for line in environment.lines[before:]]
    environment.repository.close()  # what is read ahead comes to its end
    counted = sum(line["store_requests"] for line in told)
    ahead = len(proxy.seen) - counted
    assert 0 <= ahead <= 2  # read ahead, and nobody asked
    assert counted > 10


@pytest.mark.thorough
def test_what_is_read_ahead_is_told_of_the_page_that_needs_it(
    begin: Callable[..., Environment], proxy: Proxy
) -> None:
    environment = begin(page=100, ahead=True)
    proxy.seen.clear()
    body = environment.ask(FIRST)
    for _ in range(20):
        body = environment.ask(environment.after(body))
    told = [json.loads(line)["store_requests"] for line in environment.lines]
    environment.repository.close()
    assert 0 <= len(proxy.seen) - sum(told) <= 1
    assert max(told[1:]) <= 2
    assert told.count(0) > 8


PAGES = {
    # path, query: the most requests of an environment that has read nothing yet. Look-ups take one
    # for each run of the log, of which there are two here.
    ("/", ""): 6,  # the figures, the newest records and the sets at the top
    ("/charts", ""): 3,
    ("/record", "id={identifier}"): 6,  # one for the captures before and behind it
    ("/captures", "url=http://h3.cz/703&match=exact"): 5,
    ("/checks", ""): 3,
    ("/publishes", ""): 3,
    ("/sets", ""): 4,
}


@pytest.mark.parametrize(("path", "query"), PAGES)
def test_a_page_takes_few_requests(bucket: Bucket, proxy: Proxy, path: str, query: str) -> None:
    if "{identifier}" in query:
        environment = Environment(bucket, proxy)
        found = re.search(r"<identifier>([^<]+)", environment.ask(FIRST))
        environment.close()
    environment = Environment(bucket, proxy)
    whole = query.format(identifier=quote(found[1])) if "{identifier}" in query else query
    assert environment.cost(whole, path) <= PAGES[path, query]
    if path in ("/", "/charts"):
        assert sum(one["store_bytes"] for one in map(json.loads, environment.lines)) < 300_000
    environment.close()


def test_the_page_of_publishes_takes_one_more_if_it_lists_dumps(
    bucket: Bucket, proxy: Proxy
) -> None:
    environment = Environment(bucket, proxy, more='[publish]\ndumps = ["jsonl"]')
    assert environment.cost("", "/publishes") <= PAGES["/publishes", ""] + 1
    assert dumps.INDEX in [seen.key.partition("/")[2] for seen in proxy.seen]
    environment.close()


@pytest.mark.parametrize(
    "path",
    ["/cdx?url=http://h7.cz/707", "/timemap/link/http://h7.cz/707", "/timegate/http://h7.cz/707"],
)
def test_one_url_takes_few_requests(begin: Callable[..., Environment], path: str) -> None:
    """A row group of each of two runs, one of the dead, and one of the records."""
    environment = begin()
    count, reply = environment.search(path)
    assert reply.status in (200, 302)
    assert count <= 4
    again, _ = environment.search(path.replace("707", "1407"))
    assert again == 0  # the same row groups, which are here now


def test_a_host_takes_what_its_lines_take(begin: Callable[..., Environment]) -> None:
    """Its captures lie side by side, but for those that changed since."""
    count, reply = begin().search("/cdx?url=h7.cz/*")
    assert len(reply.body.splitlines()) == 8
    assert count <= 7
    count, reply = begin().search("/cdx?url=h7.cz/nothing")
    assert (reply.body, count <= 2) == (b"", True)


@pytest.mark.parametrize("text", ["h3", "17th", "0 17th", "17th the 17*", '"the 17th"', "17*"])
def test_a_search_of_words_takes_few_requests(
    begin: Callable[..., Environment], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    environment = begin()
    monkeypatch.setattr(mirror, "SMALL", 1 << 10)
    repository, manifest = environment.repository, environment.manifest()
    environment.proxy.seen.clear()
    WordSearch(repository.catalogue, repository.files).find(manifest, parse(text), None, 20)
    assert 1 <= len(environment.proxy.seen) <= 4
