"""The whole way over a bucket: the commands as processes, outages, and what a page costs."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from msgspec import structs

from builder.snapshot import query as question
from builder.store.s3 import PROOF
from functions.config import configuration
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import layout
from functions.snapshot.errors import StoreError
from functions.snapshot.pointer import Pointer, Witness
from functions.store.catalog import Catalogue
from functions.store.client import Client
from functions.store.connection import BucketConnection
from functions.store.store_reader import BucketReader
from tests.bucket import Bucket, fresh
from tests.e2e.conftest import Home, Result, make_home, sheaf, warc
from tests.functions.oai.client import event, respond
from tests.proxy import Answer, Proxy, always

pytestmark = pytest.mark.shared(2)

Make = Callable[..., Bucket]
PAGES = {f"http://a{n % 5}.cz/{n}": f"<title>Page {n}</title>".encode() for n in range(40)}
TOKEN = re.compile(r"<resumptionToken[^>]*>([^<]+)</resumptionToken>")
PREFIX = "metadataPrefix=oai_dc"


class Bucketed(Home):
    """A home whose store is a bucket."""

    def __init__(self, folder: Path, bucket: Bucket, endpoint: str | None = None) -> None:
        super().__init__(make_home(folder).folder)
        self.bucket = bucket
        self.variables = dict(bucket.environment)
        if endpoint is not None:
            self.variables["SHEAF_STORE_ENDPOINT"] = endpoint
        self.variables["XDG_CACHE_HOME"] = str(folder / "cache")
        text = self.config.read_text().replace('# uri = "store"', f'uri = "{bucket.uri}"')
        assert bucket.uri in text
        self.config.write_text(text)

    def __call__(self, command: str, *arguments: object, **settings: str) -> Result:
        """Carry out a command in this process."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self.variables, **settings}.items():
                patch.setenv(name, value)
            return super().__call__(command, *arguments)

    def line(self, command: str, *arguments: object) -> list[str]:
        config = ["--config", str(self.config)]
        return [sys.executable, "-m", "builder", command, *config, *map(str, arguments)]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables}


@pytest.fixture
def home(tmp_path: Path, make_bucket: Make, proxy: Proxy) -> Bucketed:
    """Give a home whose commands reach their bucket through the proxy."""
    return Bucketed(tmp_path / "home", make_bucket(), proxy.url)


@pytest.fixture(scope="module")
def original(moto_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    """Give a bucket in which the pages are published, which is only read."""
    folder = tmp_path_factory.mktemp("original")
    bucket = fresh(moto_server)
    Bucketed(folder / "home", bucket).publish_pages(folder / "one.warc.gz", PAGES)
    yield bucket
    bucket.close()


@pytest.fixture
def published(tmp_path: Path, original: Bucket, proxy: Proxy) -> Bucketed:
    """Give a home whose commands reach the bucket of published pages through the proxy."""
    return Bucketed(tmp_path / "home", original, proxy.url)


class Served:
    """The handler over a bucket, asked without a server before it."""

    def __init__(self, bucket: Bucket, endpoint: str, limit: int = 64 << 20) -> None:
        text = '[repository]\nnamespace = "b.cz"\n[pages]\nrecords = 4\nidentifiers = 4\n'
        connection = BucketConnection(endpoint=endpoint, retry_seconds=0.3)
        client = Client(bucket._address, connection, bucket.environment)
        self.reader = BucketReader(bucket._address, client, limit)
        self.repository = DuckRepository(self.reader)
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.application = Application(
            self.repository, configuration.parse(text, {}), lambda: self.now()
        )

    def ask(self, query: str) -> tuple[int, str, dict[str, str]]:
        answer = respond(self.application, event(query))
        return answer["statusCode"], answer["body"], answer["headers"]

    def harvest(self) -> list[str]:
        """Return the headers' identifiers, with ! before those of tombstones."""
        found: list[str] = []
        query = f"verb=ListRecords&{PREFIX}"
        while True:
            status, body, _ = self.ask(query)
            assert status == 200, body
            found += [
                ("!" if "deleted" in attributes else "") + name
                for attributes, name in re.findall(
                    r"<header([^>]*)>\s*<identifier>([^<]+)</identifier>", body
                )
            ]
            token = TOKEN.search(body)
            if token is None:
                return found
            query = f"verb=ListRecords&resumptionToken={quote(token[1])}"

    def close(self) -> None:
        self.repository.close()
        self.reader.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def make(*arguments: Any) -> Served:
        made.append(Served(*arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_init_names_a_bucket_and_gives_it_an_id(
    tmp_path: Path, home: Bucketed, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = home("init", "--store", home.bucket.uri)
    assert made.code == 2  # it is there already
    for name, value in home.bucket.environment.items():
        monkeypatch.setenv(name, value)
    config = tmp_path / "other.toml"
    assert sheaf("init", "--config", config, "--store", home.bucket.uri).code == 0
    assert f'\nuri = "{home.bucket.uri}"\n' in config.read_text()
    given = Pointer.from_json(home.bucket.read(layout.POINTER))
    assert given.store == Witness.from_json(home.bucket.read(layout.WITNESS)).store != ""
    again = tmp_path / "again.toml"
    assert sheaf("init", "--config", again, "--store", home.bucket.uri).code == 0
    assert Pointer.from_json(home.bucket.read(layout.POINTER)) == given


def test_a_question_fetches_the_tables_that_it_reads(published: Bucketed, proxy: Proxy) -> None:

    def asked(sql: str) -> tuple[Result, set[str]]:
        proxy.seen.clear()
        result = published("query", sql)
        data = [s.key for s in proxy.seen if "/records/" in s.key]
        return result, {key.split("/")[2] for key in data}

    result, read = asked("SELECT set_spec, records FROM sets ORDER BY ALL LIMIT 1")
    assert (result.out, read) == ("set_spec,records\ndomain,40\n", {"sets"})
    assert asked("SELECT count(*) FROM captures")[1] == {"records"}
    assert asked("SHOW TABLES")[1] == set()
    assert asked("WITH captures AS (SELECT 1 AS x) FROM captures")[1] == set()
    pivoted, read = asked("SELECT 1; CREATE TEMP TABLE t AS FROM sets; PIVOT t ON set_spec")
    assert pivoted.code == 0
    assert read == {"sets"}
    hidden, read = asked("SELECT 1; PIVOT query_table('s' || 'ets') ON set_spec")
    assert hidden.code == 2
    assert "sets: name this view in the statement" in hidden.err
    assert read == set()
    built = "SELECT count(*) AS n FROM query('FROM cap' || 'tures')"
    hidden, read = asked(built)
    assert (hidden.code, hidden.out, read) == (2, "", set())
    assert "records: name this view in the statement" in hidden.err
    assert asked(f"{built} -- captures")[0].out == "n\n40\n"
    derived = (
        "CREATE VIEW html AS FROM captures WHERE fetch_status = 200; FROM html SELECT count(*)"
    )
    assert asked(derived)[0].out.splitlines()[1] == "40"


def test_a_question_that_the_disk_is_too_small_for_is_told(published: Bucketed) -> None:
    catalogue = Catalogue(published.bucket)
    manifest = catalogue.manifest(1)
    (leaf,) = manifest.tables["sets"]
    huge = replace(
        manifest, tables={**manifest.tables, "sets": (structs.replace(leaf, bytes=1 << 60),)}
    )
    with pytest.raises(StoreError, match=r"take 1,152,921,504,606,846,976 bytes, but .* TMPDIR"):
        question.statements(published.bucket, huge, {"sets"})
    assert "set_spec" in question.statements(published.bucket, huge, {"records"})


def test_an_outage_is_a_503_and_passes(
    published: Bucketed, proxy: Proxy, serve: Callable[..., Served]
) -> None:
    served = serve(published.bucket, proxy.url)
    status, body, _ = served.ask(f"verb=ListRecords&{PREFIX}")
    token = TOKEN.search(body)
    assert token is not None
    more = f"verb=ListRecords&resumptionToken={quote(token[1])}"

    proxy.fault = always(Answer(503, "SlowDown"))
    assert served.ask(more)[0] == 200  # its row group was read with the first page
    late = datetime.now(UTC).timestamp() + 60
    served.now = lambda: datetime.fromtimestamp(late, UTC)  # the pointer is to be read anew
    assert served.ask(more)[0] == 200
    assert served.ask("verb=Identify")[0] == 200
    status, body, headers = served.ask(f"verb=ListRecords&{PREFIX}&set=domain:cz:a1")
    assert (status, headers["Retry-After"]) == (503, "30")
    assert "SlowDown" not in body
    new = serve(published.bucket, proxy.url)
    assert new.ask("verb=Identify")[0] == 503

    proxy.fault = lambda seen: None
    assert new.ask("verb=Identify")[0] == 200
    assert served.ask(f"verb=ListRecords&{PREFIX}&set=domain:cz:a1")[0] == 200
    assert len(served.harvest()) == 40


@pytest.mark.thorough
def test_serving_ends_and_leaves_nothing(published: Bucketed, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        published.line("serve", "--port", "0", "--json"),
        env={**published.environment, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        text = ""
        while not text.endswith("}\n"):
            text += process.stdout.readline()
        url = json.loads(text)["oai"]
        with urllib.request.urlopen(f"{url}?verb=ListRecords&{PREFIX}") as answer:
            assert answer.read().count(b"<header>") == 40
        assert list(scratch.glob("sheaf-cache-*"))
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        process.stdout.close()
    assert list(scratch.glob("sheaf-cache-*")) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"SHEAF_STORE_ENDPOINT": "http://127.0.0.1:9"}, "cannot be reached; check the"),
        ({"SHEAF_STORE_URI": "s3://no-such-bucket/x"}, "there is no such bucket"),
        ({"SHEAF_STORE_ENDPOINT": "ftp://x"}, "store.endpoint (SHEAF_STORE_ENDPOINT) is"),
        ({"SHEAF_STORE_ENDPOINT": "http://me:hidden@x"}, "store.endpoint (SHEAF_STORE_ENDPOINT)"),
        (
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "nobody"},
            "(nobody) could not be found",
        ),
    ],
)
@pytest.mark.parametrize("command", ["status", "publish", "serve"])
def test_what_is_wrong_with_a_bucket_is_one_line(
    home: Bucketed, command: str, settings: dict[str, str], said: str
) -> None:
    result = home(command, **{"SHEAF_STORE_RETRY_SECONDS": "0", **settings})
    assert result.code == 2
    assert said in result.err
    assert result.err.count("\n") == 1
    assert "hidden" not in result.err
    assert home.bucket.environment["AWS_SECRET_ACCESS_KEY"] not in result.err


def test_ingest_looks_for_the_store_before_it_reads(
    home: Bucketed, proxy: Proxy, tmp_path: Path
) -> None:
    path = warc(tmp_path / "one.warc.gz", PAGES)
    proxy.fault = always(Answer(403, "AccessDenied"))
    refused = home("ingest", path)
    assert refused.code == 2
    assert "permission denied" in refused.err
    assert [s.key.rpartition("/")[2] for s in proxy.seen] == [PROOF]
