"""What a search takes of a bucket: counted by a proxy."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.content import cdx, memento
from functions.content.search import CaptureSearch
from functions.http.http_message import Call, Reply
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.snapshot import layout
from functions.snapshot.manifest import Manifest
from functions.store import mirror
from functions.store.client import Client
from functions.store.connection import BucketConnection
from functions.store.store_reader import BucketReader
from tests.bucket import Bucket, fresh
from tests.builder.conftest import World
from tests.functions.content.test_cdx import taken
from tests.proxy import Proxy, proxied


@pytest.fixture(scope="module")
def proxy(moto_server: str) -> Iterator[Proxy]:
    with proxied(moto_server) as one:
        yield one


@pytest.fixture(scope="module")
def bucket(moto_server: str, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Bucket:
    """Give a bucket with files of many row groups, out of two publishes, with changes."""
    folder = tmp_path_factory.mktemp("cost")
    target = fresh(moto_server).through(proxy.url)
    world = World(folder / "store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "GROUP_ROWS", 64)
        patch.setattr(World, "store", target)
        for turn, (start, end) in enumerate(((0, 3000), (2900, 3100))):
            world.ingest(
                [
                    taken(f"http://h{n % 70}.org/{n}", "2010-01-01T00:00:00Z", title=f"{turn}")
                    for n in range(start, end)
                ]  # type: ignore[arg-type]
            )
            world.publish()
    return target


class Environment:
    """What answers out of the bucket, as one execution environment has it."""

    def __init__(self, bucket: Bucket, proxy: Proxy) -> None:
        connection = BucketConnection(endpoint=proxy.url, retry_seconds=0.3)
        self.proxy = proxy
        client = Client(bucket._address, connection, bucket.environment)
        self.reader = BucketReader(bucket._address, client, 64 << 20)
        self.repository = DuckRepository(self.reader)
        self.search = CaptureSearch(self.repository.catalogue, self.repository.files)
        newest = self.repository.pointer().newest()
        assert newest is not None
        self.manifest: Manifest = self.repository.manifest(newest.snapshot)
        self.settings = World(Path("store")).configuration()

    def cost(self, path: str, query: str = "") -> tuple[int, Reply]:
        """Return how many requests an answer takes, the manifest being known, and the answer."""
        self.proxy.seen.clear()
        call = Call("GET", "http://x", path, query)
        answer = {"/cdx": cdx.reply, "/timemap": memento.timemap, "/timegate": memento.timegate}
        make = answer["/" + path.split("/")[1]]
        reply = make(call, self.search, self.manifest, self.settings)
        return len(self.proxy.seen), reply

    def close(self) -> None:
        self.repository.close()
        self.reader.close()


@pytest.fixture
def environment(
    bucket: Bucket, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Environment]:
    """Give an environment that has read nothing yet; no file is one that is fetched whole."""
    monkeypatch.setattr(mirror, "SMALL", 3_000)
    found = Environment(bucket, proxy)
    yield found
    found.close()


@pytest.mark.parametrize(
    "path",
    ["/cdx?url=h7.org/707", "/timemap/link/http://h7.org/707", "/timegate/http://h7.org/707"],
)
def test_one_url_takes_few_requests(environment: Environment, path: str) -> None:
    """A row group of each of two runs, one of the dead, and one of the records."""
    found, _, query = path.partition("?")
    count, reply = environment.cost(found, query)
    assert reply.status in (200, 302)
    assert count <= 4
    again, _ = environment.cost(found, query.replace("707", "777"))
    assert again == 0  # the same row groups, which are here now


def test_a_host_takes_what_its_lines_take(environment: Environment) -> None:
    """Its captures lie side by side, but for those that changed since."""
    count, reply = environment.cost("/cdx", "url=h7.org/*")
    assert len(reply.body.splitlines()) == 45
    assert count <= 7


def test_what_is_not_there_takes_the_table_alone(environment: Environment) -> None:
    count, reply = environment.cost("/cdx", "url=h7.org/nothing")
    assert reply.body == b""
    assert count <= 2
