"""Slices of objects: a folder and a bucket give the same, and a bucket by few requests."""

import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from functions.content.assembly import SMALL, KeptSlices
from functions.snapshot.errors import MissingObject, StoreError, StoreUnavailable
from functions.snapshot.layout import StoreAddress
from functions.store import s3_request, slice
from functions.store.client import Client
from functions.store.connection import BucketConnection
from functions.store.slice import BucketSlices, FolderSlices, Slices
from tests.bucket import Bucket, environment
from tests.builder.sources.webarchives.containers import captures
from tests.functions.content.stored import Stored
from tests.functions.content.test_record import FORMS, PAGES

DATA = bytes(range(256)) * 5000
PART = 1 << 18


@dataclass
class Place:
    """A place, and what puts objects there."""

    slices: Slices
    put: Callable[[str, bytes], None]


def of_bucket(bucket: Bucket) -> Slices:
    connection = BucketConnection(endpoint=bucket.endpoint, retry_seconds=1, part=PART)
    address = StoreAddress(bucket.bucket, "archives")
    return BucketSlices(address, Client(address, connection, environment(bucket.endpoint)))


@pytest.fixture
def archives(make_bucket: Callable[..., Bucket]) -> Bucket:
    """Give a store in a bucket, at the prefix of `of_bucket`."""
    bucket = make_bucket()
    return Bucket(bucket.endpoint, bucket.bucket, "archives")


@pytest.fixture(params=["folder", "bucket", "kept"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":

        def write(key: str, data: bytes) -> None:
            (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / key).write_bytes(data)

        return Place(FolderSlices(tmp_path), write)
    store: Bucket = request.getfixturevalue("archives")
    slices = of_bucket(store)
    kept = slices if request.param == "bucket" else KeptSlices(slices)
    return Place(kept, lambda key, data: store.put(key, io.BytesIO(data)))


@pytest.mark.sampled(3)
def test_any_stretch_is_read_forwards(place: Place) -> None:
    place.put("a/b.warc", DATA)
    for offset, length in [
        *((0, None), (0, 0), (0, 1), (7, 300), (1000, SMALL), (5, SMALL + 1), (100, None)),
        *((len(DATA) - 3, 100), (len(DATA), 10), (len(DATA) + 50, 10), (len(DATA) + 50, None)),
    ]:
        with place.slices.open("a/b.warc", offset, length) as stream:
            found = b""
            while piece := stream.read(100_001):
                found += piece
        end = None if length is None else offset + length
        assert found == DATA[offset:end], (offset, length)
    assert place.slices.size("a/b.warc") == len(DATA)


def test_what_is_not_there_is_missing(place: Place) -> None:
    place.put("a/b.warc", DATA)
    for key in ("b", "a", "a/b.warc/c", "x" * 300):
        with pytest.raises(MissingObject):
            place.slices.open(key, 0, 1).close()
    with pytest.raises(MissingObject):
        place.slices.size("b")


@pytest.mark.parametrize("key", ["../a", "a/../b", "a//b", "/a", "", ".", "a\0b", "a\nb"])
def test_a_key_that_leads_out_is_refused(place: Place, key: str) -> None:
    with pytest.raises(ValueError, match="is not a key"):
        place.slices.open(key, 0, 1)


def test_only_buckets_tell_of_one(place: Place) -> None:
    bucket, key = place.slices.bucket("a/b")
    if place.slices.address.startswith("s3://"):
        assert f"s3://{bucket}/{key}" == f"{place.slices.address}/a/b"
    else:
        assert (bucket, key) == ("", "")


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.warc")
    with pytest.raises(MissingObject):
        FolderSlices(tmp_path).open("a.warc", 0, 1)


def test_a_bucket_that_does_not_answer_is_told() -> None:
    connection = BucketConnection(endpoint="http://127.0.0.1:1", retry_seconds=0)
    address = StoreAddress("bucket", "archives")
    slices = BucketSlices(address, Client(address, connection, environment("http://127.0.0.1:1")))
    with pytest.raises(StoreUnavailable):
        slices.open("a.warc", 0, 1)


def test_addresses_of_files_are_taken_apart() -> None:
    assert slice.split_address("crawls/a.warc.gz") == ("crawls", "a.warc.gz")
    assert slice.split_address("a.warc.gz") == (".", "a.warc.gz")
    assert slice.split_address("/a.warc.gz") == ("/", "a.warc.gz")
    assert slice.split_address("s3://bucket/x/a.warc.gz") == ("s3://bucket/x", "a.warc.gz")
    assert slice.split_address("s3://bucket/a.warc.gz") == ("s3://bucket", "a.warc.gz")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORMS)
def test_a_capture_in_a_bucket_is_one_request(stored: Stored, archives: Bucket, name: str) -> None:
    """A WACZ is looked into once; a zstd file's dictionary is fetched once."""
    data = FORMS[name]()
    archives.put(name, io.BytesIO(data))
    stored.place = KeptSlices(of_bucket(archives))
    stored.list(captures(data, name=name))
    contents = stored.contents()
    besides = {"a.warc.zst": 1, "b.warc.zst": 2, "several.wacz": 6}
    besides |= dict.fromkeys(("stored.wacz", "deflated.wacz"), 3)
    for number, (url, body) in enumerate(PAGES.items()):
        with s3_request.count_requests() as spent:
            found = contents.find(None, stored.one(url=url.decode()))  # type: ignore[arg-type]
            with contents.open_content(found) as stream:
                assert stream.read() == body
        most = 1 if number else 1 + besides.get(name, 0)
        if name != "deflated.wacz":  # which is inflated from its beginning
            assert spent.requests <= most, (url, spent.requests)
            assert spent.bytes < 300_000


def test_no_more_is_fetched_than_is_soon_read(archives: Bucket) -> None:
    archives.put("a", io.BytesIO(bytes(8 * SMALL)))
    with (
        s3_request.count_requests() as spent,
        KeptSlices(of_bucket(archives)).open("a", 3, None) as stream,
    ):
        stream.read(100)
        assert (spent.requests, spent.bytes) == (SMALL // PART, SMALL)
        rest = io.BufferedReader(cast(io.RawIOBase, stream))
        rest.read(SMALL)
        assert spent.bytes <= SMALL + 3 * PART
        assert len(rest.read()) == 7 * SMALL - 103


def test_an_object_that_is_replaced_meanwhile_is_told(archives: Bucket) -> None:
    archives.put("a", io.BytesIO(bytes(4 * PART)))
    with of_bucket(archives).open("a", 0, None) as stream:
        stream.read(10)
        archives.remove("a")
        archives.put("a", io.BytesIO(b"x" * (4 * PART)))
        with pytest.raises(StoreError):
            io.BufferedReader(cast(io.RawIOBase, stream)).read()
