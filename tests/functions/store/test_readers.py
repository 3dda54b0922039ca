"""One suite over every reader of a store: a folder, a bucket, and a web server of two kinds."""

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from builder.store.folder import FolderStore
from builder.store.web_store import open_web_store
from functions.config import configuration
from functions.snapshot.errors import MissingObject, StoreError
from functions.snapshot.layout import parse_web
from functions.snapshot.store import Reader
from functions.store.connection import BucketConnection
from functions.store.slice import open_reader, open_slices
from tests.bucket import fresh
from tests.static import Site, on_the_web

LARGE = bytes(range(256)) * (12 << 10)
DATA = {"a/b.json": b"{}", "empty": b"", "records/x/large.parquet": LARGE}
SETTINGS = configuration.parse("[store]\nretry_seconds = 0\n", {})
Opened = tuple[Reader, Callable[[], str]]


@pytest.fixture(params=["folder", "bucket", "web", "web-plain", "web-store"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reader]:
    with ExitStack() as stack:
        if request.param == "bucket":
            bucket = fresh(request.getfixturevalue("moto_server"))
            stack.callback(bucket.close)
            for key, data in DATA.items():
                bucket.create(key, data)
            settings = SETTINGS.having("store.endpoint", bucket.endpoint)
            yield open_reader(bucket.uri, tmp_path, settings, bucket.environment)
            return
        folder = FolderStore(tmp_path / "the store")
        for key, data in DATA.items():
            folder.put(key, io.BytesIO(data))
        if request.param == "folder":
            yield open_reader("the store", tmp_path, SETTINGS, {})
            return
        site = stack.enter_context(on_the_web(tmp_path))
        site.tags = request.param != "web-plain"
        url = f"{site.url}/the%20store/"
        if request.param == "web-store":
            yield open_web_store(parse_web(url), BucketConnection.of(SETTINGS))
        else:
            yield open_reader(url, tmp_path, SETTINGS, {})


def test_objects_are_read_whole(reader: Reader) -> None:
    for key, data in DATA.items():
        assert reader.read(key) == data
        assert reader.local(key).read_bytes() == data
        with reader.open(key) as stream:
            assert stream.read() == data


def test_spans_are_right_where_they_lie(reader: Reader) -> None:
    key, spans = "records/x/large.parquet", [(5, 700), (2 << 20, 1000), (len(LARGE) - 9, 9)]
    path = reader.local(key, spans)
    assert path.stat().st_size == len(LARGE)
    for start, length in spans:
        for file in (path, reader.local(key, spans, len(LARGE))):
            with file.open("rb") as opened:
                opened.seek(start)
                assert opened.read(length) == LARGE[start : start + length]


def test_a_missing_object_is_told(reader: Reader) -> None:
    for method in (reader.read, reader.local, reader.open):
        with pytest.raises(MissingObject, match=r"no-such\.json"):
            method("no-such.json")


def test_a_key_stays_below_the_address(reader: Reader) -> None:
    with pytest.raises(ValueError, match="not a key"):
        reader.read("../secret")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "x").write_bytes(LARGE)
    with on_the_web(tmp_path) as found:
        yield found


def test_a_server_that_ignores_range_is_refused(site: Site, tmp_path: Path) -> None:
    site.ranges = False
    reader = open_reader(site.url, tmp_path, SETTINGS, {})
    assert reader.read("x") == LARGE
    for call in (lambda: reader.local("x", [(7, 9)]), lambda: reader.open("x")):
        with pytest.raises(StoreError, match="ignores Range"):
            call()


@pytest.mark.parametrize("tags", [True, False])
@pytest.mark.parametrize("size", [len(LARGE), len(LARGE) - 256])
def test_an_object_that_is_replaced_is_never_mixed(
    site: Site, tmp_path: Path, tags: bool, size: int
) -> None:
    """Without tags it is found by its size, and otherwise by the checksum of what is read."""
    site.tags = tags
    reader = open_reader(site.url, tmp_path, SETTINGS, {})
    reader.local("x", [(0, 2 << 20)])
    site.alter = lambda path, data: data[::-1][:size]
    if tags or size != len(LARGE):
        with pytest.raises(StoreError, match="was replaced"):
            reader.local("x", [(2 << 20, 99)])


def test_slices_of_a_web_server(site: Site, tmp_path: Path) -> None:
    slices = open_slices(site.url, tmp_path, SETTINGS, {})
    with slices.open("x", 300, 20) as stream:
        assert stream.read() == LARGE[300:320]
    assert slices.size("x") == len(LARGE)
    assert slices.bucket("x") == ("", "")


@pytest.mark.parametrize(("status", "said"), [(403, "it answers 403"), (500, "failing .500")])
def test_what_a_server_answers_is_told(site: Site, tmp_path: Path, status: int, said: str) -> None:
    site.status = lambda path: status
    reader = open_reader(site.url, tmp_path, SETTINGS, {})
    with pytest.raises(StoreError, match=said) as caught:
        reader.read("x")
    assert site.url in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("https://a.cz/x?y", "without . and #"),
        ("https://me:hidden@a.cz/x", "without credentials"),
        ("https://", "expected https://host/path"),
        ("https://a.cz/x/../y", "expected https://host/path"),
        ("http://a.cz/x", "on this machine"),
    ],
)
def test_an_address_of_no_web_server_is_told(uri: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        open_reader(uri, tmp_path, SETTINGS, {})
    assert "hidden" not in str(caught.value)
