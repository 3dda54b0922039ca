"""Large objects of buckets, read in ranges from moto's S3, give what the same files give here."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder.sources.webarchives.ingest import splits
from builder.sources.webarchives.ingest.join import commit
from builder.sources.webarchives.ingest.parts import read_part
from builder.sources.webarchives.ingest.plan import IngestJob, write_plan
from builder.sources.webarchives.remote import bucket_files
from builder.store.folder import FolderStore
from functions.config.configuration import parse
from functions.store import window_stream
from functions.store.connection import BucketConnection
from tests.bucket import Bucket, administrator
from tests.builder.sources.webarchives.ingest.test_ingest import (
    _SHARED,
    RULES,
    SETS,
    as_read,
    crawl,
    ingested,
)
from tests.builder.sources.webarchives.ingest.test_parts import RUN, rows
from tests.e2e.conftest import Home, warc
from tests.proxy import Proxy, proxied

pytestmark = pytest.mark.shared(2)

__all__ = ["crawl"]  # a fixture

MEGABYTE = 1_000_000


@pytest.fixture
def bucket(make_bucket: Callable[..., Bucket], monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """Give a bucket, have the commands reach it, and take a megabyte for large."""
    monkeypatch.setattr(splits, "RANGED_FROM", MEGABYTE)
    made = make_bucket()
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def proxy(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Give a proxy before the bucket, which remembers the requests of the commands."""
    with proxied(bucket.endpoint) as one:
        monkeypatch.setenv("SHEAF_STORE_ENDPOINT", one.url)
        yield one


def put(bucket: Bucket, key: str, data: bytes) -> str:
    administrator(bucket.endpoint).put_object(Bucket=bucket.bucket, Key=key, Body=data)
    return f"s3://{bucket.bucket}/{key}"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return a WARC of 1.5 MB, which is large for these tests."""
    pages = {f"http://www.a.cz/{n}": os.urandom(5000) for n in range(300)}
    return warc(tmp_path / "large.warc.gz", pages)


def spans(proxy: Proxy) -> list[tuple[int, int]]:
    """Return the first and last byte of each request for a range of the large object."""
    asked = [one.range or "" for one in proxy.seen if "large" in one.path]
    pairs = [one.removeprefix("bytes=").split("-") for one in asked]
    return [(int(first), int(last)) for first, last in pairs]


def test_only_large_objects_are_looked_at(
    home: Home, bucket: Bucket, proxy: Proxy, archive: Path
) -> None:
    data = archive.read_bytes()[:MEGABYTE]
    for number in range(5):
        put(bucket, f"crawls/small-{number}.warc.gz", data[:-1])
    for number in range(20):
        put(bucket, f"crawls/large-{number}.warc.gz", data)
    place = f"s3://{bucket.bucket}/crawls/"
    assert home("ingest", "plan", place, "--chunk", "1", "--json").json["files"] == 25
    looked = [one.path.rpartition("/")[2] for one in proxy.seen if one.range]
    assert sorted(looked) == sorted(f"large-{number}.warc.gz" for number in range(20))


def test_a_chunk_reads_only_its_range(
    bucket: Bucket, proxy: Proxy, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = archive.read_bytes()
    connection = BucketConnection(endpoint=proxy.url)
    place = put(bucket, "large.warc.gz", data)
    settings = parse(f'[store]\nendpoint = "{proxy.url}"', {})
    (file,) = bucket_files.find(place, settings, bucket.environment)
    assert file.ranged
    proxy.seen.clear()
    monkeypatch.setattr(window_stream, "LEAST", 10_000)
    with bucket_files.open_range(file, 200_000, connection, bucket.environment) as stream:
        stream.seek(100_000)
        assert stream.read(101_000) == data[100_000:201_000]
    assert min(first for first, _ in spans(proxy)) == 100_000
    assert max(last for _, last in spans(proxy)) < 211_000
    assert [one.conditional for one in proxy.seen] == [False] + [True] * (len(proxy.seen) - 1)


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_an_object_that_changes_between_two_ranges_is_unreadable(
    home: Home, bucket: Bucket, archive: Path, change: str
) -> None:
    """What replaces it has the same size, so that only the ETag tells."""
    data = archive.read_bytes()
    place = put(bucket, "large.warc.gz", data)
    made = home("ingest", "plan", place, "--chunk", "1", "--json").json
    for index in range(2):
        assert home("ingest", "part", "--run", made["run"], "--index", index).code == 0
    if change == "replaced":
        put(bucket, "large.warc.gz", data[:-8] + bytes(8))
    else:
        administrator(bucket.endpoint).delete_object(Bucket=bucket.bucket, Key="large.warc.gz")
    assert home("ingest", "part", "--run", made["run"], "--index", 2).code == 0
    done = home("ingest", "commit", "--run", made["run"], "--json")
    assert done.code == 1
    (source,) = done.json["sources"]
    assert (source["codes"], source["captures"]) == ({"unreadable": 1}, 0)
    assert home("publish").code == 0
    (line,) = home("query", "--json", "SELECT detail FROM faults").out.splitlines()
    assert "removed or replaced during the ingest" in line


@pytest.mark.sampled(2)
@pytest.mark.parametrize("chunk", [900, 2500])
def test_any_chunks_of_objects_give_the_run_of_local_files(
    bucket: Bucket, crawl: list[Path], tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose ranges do not join are among them; these are read in one piece."""
    monkeypatch.setattr(splits, "RANGED_FROM", 1)
    for number, path in enumerate(crawl):
        put(bucket, f"crawls/{number:02}/{path.name}", path.read_bytes())
    access = parse(f'[store]\nendpoint = "{bucket.endpoint}"', {})
    place = f"s3://{bucket.bucket}/crawls/"
    files = tuple(bucket_files.find(place, access, bucket.environment))
    store, work = FolderStore(tmp_path / "store"), tmp_path / "work"
    made = write_plan(store, RUN, IngestJob(files, SETS, RULES), chunk)
    for number in reversed(range(made.chunks)):
        read_part(store, made, number, work, access)
    said: list[str] = []
    commit(store, made, work / "scratch", said.append, access)
    assert rows(store, "captures") == as_read(crawl)[0]
    assert rows(store, "faults") == as_read(crawl)[1]
    run = json.loads(store.read(f"intake/{RUN}/run.json"))
    whole, _ = ingested(tmp_path / "whole", crawl, split=1 << 30)
    digests = [source.digest for source in whole.run.sources]
    assert [source["digest"] for source in run["sources"]] == digests
    assert len(said) == (len(_SHARED) if chunk < 1000 else 0)
