"""Archive files that lie in a bucket."""

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.sources.webarchives.ingest.splits import ArchiveFile
from builder.sources.webarchives.remote import bucket_files
from tests.bucket import Bucket, administrator
from tests.builder.indexes import line
from tests.e2e.conftest import Home, warc
from tests.e2e.test_commands import one_line
from tests.proxy import Answer, always, proxied

pytestmark = pytest.mark.shared(2)

PAGES = {f"http://a{n}.cz/": os.urandom(3000) for n in range(60)}


@pytest.fixture
def bucket(
    home: Home, make_bucket: Callable[..., Bucket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Bucket:
    """Give a bucket with archives, among others, and have the commands reach it."""
    made = make_bucket()
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    client = administrator(made.endpoint)
    data = warc(tmp_path / "a.warc.gz", PAGES).read_bytes()
    for key in ("crawls/b/2.warc.gz", "crawls/1.warc.gz", "crawls/.hidden/3.warc.gz", "other.warc"):
        client.put_object(Bucket=made.bucket, Key=key, Body=data)
    client.put_object(Bucket=made.bucket, Key="crawls/b/", Body=b"")
    client.put_object(Bucket=made.bucket, Key="crawls/notes.txt", Body=b"no archive")
    return made


def test_all_below_a_prefix(home: Home, bucket: Bucket, tmp_path: Path) -> None:
    """As a folder's files: in order, without what is hidden, and what is no archive is a fault."""
    place = f"s3://{bucket.bucket}/crawls"
    result = home("ingest", "--json", "--jobs", "1", f"{place}/", tmp_path / "a.warc.gz")
    assert result.code == 0, result.err
    sources = result.json["sources"]
    assert [s["path"] for s in sources] == [
        f"{place}/1.warc.gz",
        f"{place}/b/2.warc.gz",
        f"{place}/notes.txt",
        str(tmp_path / "a.warc.gz"),
    ]
    assert [s["captures"] for s in sources] == [60, 60, 0, 60]
    assert [s["source"] for s in sources[:2]] == ["1.warc.gz", "2.warc.gz"]
    assert sources[0]["digest"] == sources[3]["digest"]
    assert home("publish", "--json").json["new"] == 60


def test_objects_that_are_no_archives_into_a_bucket(
    home: Home, bucket: Bucket, make_bucket: Callable[..., Bucket]
) -> None:
    """The run is committed with its faults, whatever kind of store it goes to."""
    client = administrator(bucket.endpoint)
    client.put_object(Bucket=bucket.bucket, Key="bad/empty.warc.gz", Body=b"")
    store = ("--store", make_bucket().uri)
    sources = [f"s3://{bucket.bucket}/{key}" for key in ("crawls/notes.txt", "bad")]
    result = home("ingest", "--json", "--jobs", "1", *store, *sources)
    assert (result.code, result.json["failed"]) == (1, 2)
    assert home("publish", "--json", *store).json["faults"] == 2
    rows = home("query", *store, "SELECT source, code FROM faults ORDER BY 1").out.splitlines()
    assert rows[1:] == ["empty.warc.gz,empty-file", "notes.txt,not-an-archive"]


def test_an_index(home: Home, bucket: Bucket, tmp_path: Path) -> None:
    """An object that is an index gives what the same file gives, its digest too."""
    path = tmp_path / "i.cdxj.gz"
    lines = [line(f"http://a{n}.cz/{'x' * 200}", offset=str(n * 1000)) for n in range(3000)]
    path.write_bytes(gzip.compress(b"\n".join([*lines, b"broken"])))
    client = administrator(bucket.endpoint)
    client.put_object(Bucket=bucket.bucket, Key="indexes/i.cdxj.gz", Body=path.read_bytes())
    connection = ("--jobs", "2", f"s3://{bucket.bucket}/indexes/")
    result = home("ingest", "--json", *connection, path)
    assert result.code == 0, result.err
    remote, local = result.json["sources"]
    assert remote["captures"] == 3000
    assert remote["codes"] == {"index-line-invalid": 1}
    assert remote == {**local, "path": remote["path"], "reading": remote["reading"]}
    assert home("publish", "--json").json["new"] == 3000


@pytest.mark.parametrize(
    ("place", "said"), [("missing/", "no such object or prefix"), ("x?y", "without ? and #")]
)
def test_what_is_not_there(home: Home, bucket: Bucket, place: str, said: str) -> None:
    result = home("ingest", f"s3://{bucket.bucket}/{place}")
    assert result.code == 2
    assert said in one_line(result.err)


UNNAMED = ("crawls/50%41 ž*.warc.gz", "crawls/a#b.warc.gz", "crawls/z?.warc.gz")
ODD = ("crawls//double.warc.gz", "crawls/b//deep.warc.gz", "crawls/tab\there.warc.gz")


def test_odd_keys_are_read(home: Home, bucket: Bucket, tmp_path: Path) -> None:
    data = (tmp_path / "a.warc.gz").read_bytes()
    client = administrator(bucket.endpoint)
    for key in (*ODD, "crawls/0 a+b č.warc.gz", "crawls/../up.warc.gz", *UNNAMED):
        client.put_object(Bucket=bucket.bucket, Key=key, Body=data)
    place = f"s3://{bucket.bucket}"
    result = home("ingest", "--json", "--jobs", "1", f"{place}/crawls")
    assert (result.code, result.json["failed"]) == (0, 0)
    assert {s["path"].removeprefix(f"{place}/"): s["captures"] for s in result.json["sources"]} == {
        "crawls//double.warc.gz": 60,
        "crawls/0 a+b č.warc.gz": 60,
        "crawls/1.warc.gz": 60,
        "crawls/b//deep.warc.gz": 60,
        "crawls/b/2.warc.gz": 60,
        "crawls/50%41 ž*.warc.gz": 60,
        "crawls/a#b.warc.gz": 60,
        "crawls/notes.txt": 0,
        "crawls/tab?here.warc.gz": 60,
        "crawls/z?.warc.gz": 60,
    }


def test_an_object_that_may_not_be_read(home: Home, bucket: Bucket) -> None:
    """One that is another's, or lies in cold storage, is unreadable; the others are read."""
    with proxied(bucket.endpoint) as proxy, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHEAF_STORE_ENDPOINT", proxy.url)
        proxy.fault = lambda request: (
            Answer(403, "InvalidObjectState", "The object is in an archive")
            if request.key.endswith("/1.warc.gz")
            else None
        )
        result = home("ingest", "--json", "--jobs", "1", f"s3://{bucket.bucket}/crawls/")
    assert (result.code, result.json["failed"]) == (1, 1)
    first, second, _ = result.json["sources"]
    assert (first["codes"], first["captures"]) == ({"unreadable": 1}, 0)
    assert (second["codes"], second["captures"]) == ({}, 60)


@pytest.mark.thorough
@pytest.mark.parametrize("go", range(3))
def test_the_process_ends_in_good_order(home: Home, bucket: Bucket, go: int) -> None:
    """It ended by a signal in one run of five or so, by threads that outlive the requests."""
    place = f"s3://{bucket.bucket}/missing/"
    command = [sys.executable, "-m", "builder", "ingest", "--config", str(home.config), place]
    for _ in range(4):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2, (done.returncode, done.stderr)
        assert "no such object" in one_line(done.stderr)


def test_a_server_that_does_not_answer_ends_it_and_nothing_read_is_lost(
    home: Home, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no fault of the files."""
    monkeypatch.setenv("SHEAF_STORE_RETRY_SECONDS", "1")
    local = tmp_path / "a.warc.gz"
    place = f"s3://{bucket.bucket}/other.warc"
    with proxied(bucket.endpoint) as proxy:
        monkeypatch.setenv("SHEAF_STORE_ENDPOINT", proxy.url)
        monkeypatch.setattr("builder.sources.webarchives.ingest.splits.TOGETHER", 1)
        found = bucket_files.find

        def outage(*given: object) -> list[ArchiveFile]:
            files = found(*given)  # type: ignore[arg-type]
            proxy.fault = always(Answer(503))
            return files

        monkeypatch.setattr(bucket_files, "find", outage)
        failed = home("ingest", "--jobs", "1", local, place)
        assert failed.code == 2
        assert "the server is busy or failing" in one_line(failed.err)
    monkeypatch.setenv("SHEAF_STORE_ENDPOINT", bucket.endpoint)
    monkeypatch.setattr(bucket_files, "find", found)
    again = home("ingest", "--json", "--jobs", "1", local, place)
    assert again.code == 0, again.err
    assert "resuming: 1 of 2 files were read before" in again.err
    assert [s["captures"] for s in again.json["sources"]] == [60, 60]
