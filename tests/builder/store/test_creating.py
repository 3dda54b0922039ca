"""Objects that are written as their bytes come: one suite over a folder and buckets."""

import hashlib
import io
import zipfile
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.store import multipart
from builder.store.client import DeadUploadError
from builder.store.folder import FolderStore
from builder.store.s3 import PROOF
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.snapshot.store import Writer
from tests.bucket import Bucket, administrator, fresh
from tests.memory import at_most
from tests.proxy import Altered, Answer, Fault, First, Lost, Proxy, Seen, Unconditional, proxied

pytestmark = pytest.mark.shared(2)

PART = 5 << 20  # S3 takes no smaller ones but the last


def body(size: int) -> bytes:
    return (hashlib.sha512(b"%d" % size).digest() * (size // 64 + 1))[:size]


def dangling(store: Writer) -> list[Any]:
    """Return what is left of uploads in parts, or of temporary files."""
    if isinstance(store, Bucket):
        client = administrator(store.endpoint)
        found = client.list_multipart_uploads(Bucket=store.bucket)
        return list(found.get("Uploads") or [])
    assert isinstance(store, FolderStore)
    return list((store.root / ".tmp").glob("*"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 3 * PART, 3 * PART + 7])
def test_an_object_is_what_was_written(store: Writer, size: int) -> None:
    assert store.size("a/b c%2F~ä.bin") is None
    data = body(size)
    with store.creating("a/b c%2F~ä.bin") as sink:
        for start in range(0, size, 1_000_003):
            assert sink.write(data[start : start + 1_000_003]) == len(data[start:][:1_000_003])
        with pytest.raises(MissingObject):
            store.read("a/b c%2F~ä.bin")
    assert store.read("a/b c%2F~ä.bin") == data
    assert store.size("a/b c%2F~ä.bin") == size
    assert not dangling(store)


class Mine(Exception):
    pass


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [10, 3 * PART])
@pytest.mark.parametrize("error", [Mine("mine"), KeyboardInterrupt("mine"), OSError("mine")])
def test_what_raises_within_leaves_nothing(store: Writer, size: int, error: BaseException) -> None:
    def write() -> None:
        with store.creating("x") as sink:
            sink.write(body(size))
            raise error

    with pytest.raises(type(error), match=r"^mine$"):
        write()
    assert list(store.keys("")) == []
    assert not dangling(store)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [10, 3 * PART])
def test_what_is_there_stays(store: Writer, size: int) -> None:
    store.create("x", b"first")
    with pytest.raises(Conflict), store.creating("x") as sink:
        sink.write(body(size))
    assert store.read("x") == b"first"
    assert not dangling(store)


def create_twice(store: Writer, data: bytes) -> None:
    """Create an object of these bytes, and meanwhile one of them backwards."""
    with store.creating("x") as late:
        late.write(data)
        with store.creating("x") as early:
            early.write(data[::-1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [10, 3 * PART])
def test_of_two_that_create_the_first_to_end_wins(store: Writer, size: int) -> None:
    data = body(size)
    with pytest.raises(Conflict):
        create_twice(store, data)
    assert store.read("x") == data[::-1]
    assert not dangling(store)


@pytest.mark.sampled(3)
def test_a_zip_is_written_forwards(store: Writer) -> None:
    with store.creating("x.zip") as sink, zipfile.ZipFile(sink, "w") as made:  # type: ignore[call-overload]
        made.writestr("a.txt", b"a" * PART)
        made.writestr("b.txt", b"b" * PART)
    found = store.read("x.zip")
    assert found[6] & 8  # sizes behind the bytes: nobody went back
    with zipfile.ZipFile(io.BytesIO(found)) as read:
        assert read.testzip() is None
        assert read.read("b.txt") == b"b" * PART


@pytest.mark.parametrize(("way", "most"), [("creating", 5 * PART), ("file", 4 << 20)])
def test_little_is_in_memory(weed_server: str, tmp_path: Path, way: str, most: int) -> None:
    with (path := tmp_path / "large").open("wb") as out:
        for number in range(80):
            out.write(bytes([number]) * (1 << 20))
    with closing(fresh(weed_server, part=PART)) as bucket:
        assert bucket.tag("x") is None  # the library is loaded by now
        with at_most(most):
            if way == "file":
                bucket.create_file("x", path)
            else:
                with bucket.creating("x") as sink, path.open("rb") as source:
                    while data := source.read(1 << 20):
                        sink.write(data)
        assert bucket.size("x") == 80 << 20


@pytest.mark.parametrize("way", ["creating", "put"])
def test_parts_are_of_one_size_and_enough(
    make_bucket: Callable[..., Bucket], proxy: Proxy, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """R2 completes no upload whose parts differ in size, but for the last one."""
    monkeypatch.setattr(multipart, "_PARTS", 4)
    bucket, size = faulty(proxy, make_bucket), 13 * PART
    if way == "put":
        bucket.put("x", io.BytesIO(body(size)))
    else:
        with bucket.creating("x", size) as sink:
            sink.write(body(size))
    assert bucket.read("x") == body(size)
    parts = [seen for seen in proxy.seen if "partNumber" in seen.path and seen.key.endswith("/x")]
    last, *equal = sorted(seen.bytes for seen in parts)
    assert len(equal) == 3
    assert len({*equal}) == 1
    assert sum(equal) + last == size
    with pytest.raises(StoreError, match="is larger than"), bucket.creating("y") as sink:
        sink.write(body(5 * PART))
    assert not dangling(bucket)


def faulty(proxy: Proxy, make_bucket: Callable[..., Bucket], **settings: Any) -> Bucket:
    return make_bucket().through(proxy.url, part=PART, **settings)


def test_the_uploads_of_killed_processes_are_aborted(moto_server: str) -> None:
    with closing(fresh(moto_server, part=PART)) as bucket, closing(fresh(moto_server)) as other:
        client = administrator(bucket.endpoint)
        for store, key in ((bucket, "a/1"), (bucket, "a/2"), (bucket, "b/1"), (other, "a/1")):
            client.create_multipart_upload(Bucket=store.bucket, Key=f"store/{key}")
        began = client.list_multipart_uploads(Bucket=bucket.bucket)["Uploads"][0]["Initiated"]
        assert bucket.abort_uploads("a/", began) == 0
        assert bucket.abort_uploads("a/", began + timedelta(seconds=1)) == 2
        assert [one["Key"] for one in dangling(bucket)] == ["store/b/1"]
        assert len(dangling(other)) == 1


COMPLETION = "?uploadId="
STEPS = ("uploads", "partNumber=2", COMPLETION)
PASSING = [(step, fault) for step in STEPS for fault in (Answer(503, "SlowDown"), Lost())]
PASSING.append((STEPS[-1], Answer(200, "InternalError")))  # S3 says 200 before it knows


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("step", "fault"), PASSING)
def test_what_passes_is_tried_again(
    make_bucket: Callable[..., Bucket], proxy: Proxy, step: str, fault: Fault
) -> None:
    """A write whose answer was lost is known for ours by its parts."""
    bucket = faulty(proxy, make_bucket)
    proxy.fault = met = First(fault, lambda seen: step in seen.path and seen.key.endswith("/x"))
    with bucket.creating("x") as sink:
        sink.write(body(3 * PART))
    assert met.met
    assert bucket.read("x") == body(3 * PART)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fault", "count"),
    [
        (Lost(), 1),
        (Answer(503, "SlowDown"), 2),
        (Answer(409, "ConditionalRequestConflict"), 2),
        (Answer(500, "InternalError"), 1),
    ],
)
@pytest.mark.parametrize("server", ["moto_server", "weed_server"])
def test_a_file_comes_through_by_one_request(
    server: str, request: pytest.FixtureRequest, tmp_path: Path, fault: Fault, count: int
) -> None:
    (path := tmp_path / "large").write_bytes(body(2 * PART))
    endpoint = request.getfixturevalue(server)
    with (
        proxied(endpoint) as proxy,
        closing(fresh(endpoint)) as plain,
        closing(plain.through(proxy.url, part=PART)) as bucket,
    ):
        proxy.fault = First(fault, lambda seen: seen.key.endswith("/x"), count)
        bucket.create_file("x", path)
        sent = [seen for seen in proxy.took("PUT") if seen.key.endswith("/x")]
        assert (len(sent), all(seen.conditional for seen in sent)) == (count + 1, True)
        assert bucket.read("x") == body(2 * PART)


def test_a_server_that_completes_over_an_object_gets_it_with_one_request(
    make_bucket: Callable[..., Bucket], proxy: Proxy
) -> None:
    def decide(seen: Seen) -> Fault | None:
        if seen.method == "PUT" and seen.key.endswith("/x") and not lost:
            lost.append(seen)
            return Lost()
        return Unconditional() if COMPLETION in seen.path else None

    bucket, data = faulty(proxy, make_bucket), body(3 * PART)
    lost: list[Seen] = []
    proxy.fault = decide
    with pytest.raises(Conflict):
        create_twice(bucket, data)
    assert lost  # and what was written is known for ours all the same
    assert bucket.read("x") == data[::-1]
    assert not dangling(bucket)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", ["partNumber=2", f"x{COMPLETION}", f"{PROOF}{COMPLETION}"])
def test_what_does_not_pass_leaves_nothing(
    make_bucket: Callable[..., Bucket], proxy: Proxy, step: str
) -> None:
    bucket = faulty(proxy, make_bucket, retry_seconds=1)
    proxy.fault = lambda seen: (
        Answer(403, "AccessDenied") if step in seen.path and seen.method != "DELETE" else None
    )
    with pytest.raises(StoreError, match="s3:PutObject"), bucket.creating("x") as sink:
        sink.write(body(3 * PART))
    proxy.fault = lambda seen: None
    assert bucket.tag("x") is None
    assert not dangling(bucket)


@pytest.mark.parametrize("way", ["creating", "put"])
def test_an_upload_that_another_request_came_between_is_not_completed_again(
    make_bucket: Callable[..., Bucket], proxy: Proxy, way: str
) -> None:
    """S3 wants another upload then, from the first part on."""
    bucket = faulty(proxy, make_bucket)
    proxy.fault = First(
        Answer(409, "ConditionalRequestConflict"),
        lambda seen: f"/x{COMPLETION}" in seen.path and seen.method == "POST",
    )
    if way == "put":
        bucket.put("x", io.BytesIO(body(3 * PART)))
        completed = [seen.path for seen in proxy.took("POST") if COMPLETION in seen.path]
        assert len(completed) == len({*completed}) == 2
        assert bucket.read("x") == body(3 * PART)
    else:
        with pytest.raises(DeadUploadError), bucket.creating("x") as sink:
            sink.write(body(3 * PART))
        assert bucket.tag("x") is None
    assert not dangling(bucket)


def test_a_test_of_the_server_that_another_one_came_between_shows_the_condition(
    make_bucket: Callable[..., Bucket], proxy: Proxy
) -> None:
    bucket = faulty(proxy, make_bucket)
    proxy.fault = met = First(
        Answer(409, "ConditionalRequestConflict"),
        lambda seen: f"{PROOF}{COMPLETION}" in seen.path and seen.method == "POST",
    )
    with bucket.creating("x") as sink:
        sink.write(body(2 * PART))
    assert met.met
    assert [seen for seen in proxy.seen if "partNumber=2" in seen.path]  # in parts after all


@pytest.mark.parametrize("way", ["creating", "file"])
def test_what_is_damaged_on_its_way_is_sent_again(
    weed_server: str, tmp_path: Path, way: str
) -> None:
    """moto would take it as it comes."""
    (path := tmp_path / "large").write_bytes(body(2 * PART))
    with (
        proxied(weed_server) as proxy,
        closing(fresh(weed_server)) as plain,
        closing(plain.through(proxy.url, part=PART)) as bucket,
    ):
        step, count = ("partNumber=1", 1) if way == "creating" else ("store/x", 2)
        proxy.fault = met = First(Altered(), lambda seen: step in seen.path, count)
        if way == "creating":
            with bucket.creating("x") as sink:
                sink.write(path.read_bytes())
        else:
            bucket.create_file("x", path)
        assert len(met.met) == count
        assert bucket.read("x") == body(2 * PART)
