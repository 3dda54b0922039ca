"""Archive files on Hadoop clusters: over WebHDFS, and by a file system of pyarrow."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from builder.errors import UsageError
from builder.ingest.remote import hadoop_files, hdfs, web_client
from builder.ingest.remote.access import SourceAccess
from builder.ingest.remote.hdfs import NativeHdfs
from builder.ingest.splits import ArchiveFile
from functions.config.configuration import parse
from tests.builder.ingest.cluster import Cluster, running
from tests.builder.ingest.test_web_files import published
from tests.e2e.conftest import Home, make_home, warc
from tests.e2e.test_commands import PAGES, one_line

ACCESS = SourceAccess(settings=parse("[http]\nbackoff_seconds = 0\ntries = 3", {}))
REPLACED = "removed or replaced during the ingest"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    web_client._client.cache_clear()
    with running() as cluster:
        yield cluster


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("SHEAF_HTTP_BACKOFF_SECONDS", "0")
    return make_home(tmp_path / "home")


def find(source: str, environment: dict[str, str] | None = None) -> list[ArchiveFile]:
    return hadoop_files.find(source, ACCESS, environment or {})


def read(file: ArchiveFile) -> bytes:
    with hadoop_files.open_file(file, ACCESS, {}, None) as stream:
        return stream.read()


def test_a_folder_gives_what_it_gives_on_this_machine(
    home: Home, cluster: Cluster, tmp_path: Path
) -> None:
    folder = tmp_path / "crawls"
    (folder / "a b").mkdir(parents=True)
    files = [warc(folder / name, PAGES) for name in ("a b/1.warc.gz", "a.warc.gz", "b%20.warc.gz")]
    for path in files:
        cluster.files[f"/{path.relative_to(tmp_path)}"] = path.read_bytes(), 1_700_000_000_123
    for hidden in ("/crawls/_SUCCESS", "/crawls/.x/1.warc.gz", "/crawls/_temporary/0/1.warc.gz"):
        cluster.files[hidden] = b"", 1
    found = find(cluster.url("/crawls/"))
    assert [file.label for file in found] == [
        cluster.url(f"/{path.relative_to(tmp_path)}") for path in files
    ]
    assert {file.modified for file in found} == {1_700_000_000_123_000_000}
    done = home("ingest", cluster.url("/crawls"), "--json")
    local = make_home(tmp_path / "local")
    here = local("ingest", folder, "--json").json["sources"]
    own = [{"path": s["path"], "reading": s["reading"]} for s in done.json["sources"]]
    assert [one["path"] for one in own] == [file.label for file in found]
    assert done.json["sources"] == [one | mine for one, mine in zip(here, own, strict=True)]
    assert published(home) == published(local)


@pytest.mark.thorough
def test_machines_share_a_large_file(
    home: Home, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hadoop_files, "RANGED_FROM", 1_000_000)
    pages = {f"http://www.a.cz/{n}": os.urandom(5000) for n in range(300)}
    path = warc(tmp_path / "large.warc.gz", pages)
    cluster.files["/large.warc.gz"] = path.read_bytes(), 7
    done = home("ingest", cluster.url("/large.warc.gz"), "--engine", "local", "--chunk", "1")
    assert (done.code, "in one piece" in done.out) == (0, False)
    starts = {int(query["offset"]) for query in cluster.queries if query["op"] == "OPEN"}
    assert len(path.read_bytes()) // 2 in starts  # the second of two ranges
    local = make_home(tmp_path / "local")
    assert local("ingest", path).code == 0
    assert published(home) == published(local)


def test_a_data_node_that_fails_for_a_moment(cluster: Cluster) -> None:
    data = os.urandom(1_000_000)
    cluster.files["/a"] = data, 7
    cluster.failures = [500, 503]
    (file,) = find(cluster.url("/a"))
    assert read(file) == data
    cluster.failures = [500] * 3
    with pytest.raises(OSError, match="server-error: IOException: the disk failed"):
        read(file)


@pytest.mark.parametrize("after", [(b"b" * 1_000_000, 8), (b"a" * 999_999, 7), None])
def test_a_file_that_is_replaced_or_removed_while_it_is_read(
    cluster: Cluster, after: tuple[bytes, int] | None
) -> None:
    cluster.files["/a"] = b"a" * 1_000_000, 7
    (file,) = find(cluster.url("/a"))
    with hadoop_files.open_file(file, ACCESS, {}, None) as stream:
        assert stream.read(10) == b"a" * 10
        del cluster.files["/a"]
        if after:
            cluster.files["/a"] = after
        with pytest.raises(OSError, match=REPLACED):
            stream.read()
    with pytest.raises(OSError, match=REPLACED):
        read(file)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("webhdfs:///a", "expected webhdfs://host:port/path"),
        ("webhdfs://a:x/a", "expected webhdfs://host:port/path"),
        ("webhdfs://me:secret@a/b", "give the user in HADOOP_USER_NAME"),
        ("webhdfs://127.0.0.1:1/a", "cannot be read: connect"),
        ("hdfs://127.0.0.1:1/a", "use webhdfs://host:9870/path"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(home: Home, source: str, why: str) -> None:
    done = home("ingest", source)
    assert (done.code, "secret" in done.err) == (2, False)
    assert why in one_line(done.err)


def test_what_is_not_there_or_forbidden_is_refused(home: Home, cluster: Cluster) -> None:
    cluster.files["/empty/.x"] = b"", 1
    done = home("ingest", cluster.url("/a"))
    assert (done.code, "no such file or folder" in one_line(done.err)) == (2, True)
    with pytest.raises(UsageError, match="is an empty folder"):
        find(cluster.url("/empty"))
    cluster.token = "abc"
    with pytest.raises(
        UsageError, match=r"AccessControlException: Permission denied: user=dr\.who$"
    ):
        find(cluster.url("/empty"))


def test_the_user_and_the_token_are_those_of_the_environment(cluster: Cluster) -> None:
    cluster.files["/a"] = b"a", 7
    find(cluster.url("/a"), {"HADOOP_USER_NAME": "hdfs"})
    assert cluster.queries[-1]["user.name"] == "hdfs"
    cluster.token = "abc"
    (file,) = find(cluster.url("/a"), {"WEBHDFS_DELEGATION_TOKEN": "abc"})
    assert "abc" not in repr(file)


def test_the_native_client_reads_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow's file system of this machine stands for that of a cluster, which needs Java."""
    monkeypatch.setattr(hdfs, "connect", lambda place, user: NativeHdfs(fs.LocalFileSystem()))
    data = os.urandom(1_000_000)
    (tmp_path / "b").mkdir()
    for name in ("b/a.warc", "c.warc", "_SUCCESS"):
        (tmp_path / name).write_bytes(data)
    found = find(f"hdfs://head:8020{tmp_path}")
    assert [file.label for file in found] == [
        f"hdfs://head:8020{tmp_path}/{name}" for name in ("b/a.warc", "c.warc")
    ]
    assert read(found[0]) == data
    (tmp_path / "c.warc").write_bytes(data)
    with pytest.raises(OSError, match=REPLACED):
        read(found[1])
    with pytest.raises(UsageError, match="no such file or folder"):
        find(f"hdfs://head{tmp_path}/away")
