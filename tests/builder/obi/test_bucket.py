"""Objects written to a bucket: large ones, many at once, and a line that fails."""

import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from builder.obi.run import claim
from functions.snapshot.errors import Conflict, StoreError
from tests.bucket import Bucket, administrator, fresh
from tests.builder.obi.conftest import Time
from tests.builder.obi.holding import GATHER, HANDLE, URL
from tests.proxy import Altered, Answer, Fault, Lost, Proxy, Seen, Unconditional, proxied

pytestmark = pytest.mark.shared(2)

DATA = bytes(range(256)) * (36 << 10)  # more than a part of an upload


@pytest.fixture(params=["moto_server", "weed_server"])
def server(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def proxy(server: str) -> Iterator[Proxy]:
    with proxied(server) as proxy:
        yield proxy


@pytest.fixture
def bucket(server: str, proxy: Proxy) -> Iterator[Bucket]:
    with closing(fresh(server)) as direct, closing(direct.through(proxy.url)) as through:
        yield through


@pytest.fixture
def large(tmp_path: Path) -> Path:
    (tmp_path / "large").write_bytes(DATA)
    return tmp_path / "large"


def first(fault: Fault, count: int = 1) -> Callable[[Seen], Fault | None]:
    """Return what gives the first so many writes of a large object the fault."""
    left = [fault] * count

    def chosen(seen: Seen) -> Fault | None:
        return left.pop() if seen.method == "PUT" and "a.pdf" in seen.path and left else None

    return chosen


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fault", "count"),
    [
        (Lost(), 1),
        (Answer(503, "SlowDown"), 2),
        (Answer(409, "ConditionalRequestConflict"), 2),
        (Answer(500, "InternalError"), 1),
    ],
    ids=["lost", "busy", "conflict", "error"],
)
def test_a_large_object_comes_through(
    bucket: Bucket, proxy: Proxy, time: Time, large: Path, fault: Fault, count: int
) -> None:
    run = claim(bucket, GATHER, time.runtime)
    proxy.fault = first(fault, count)
    where = run.put_file(URL, large)
    assert bucket.read(where) == DATA
    puts = [seen for seen in proxy.took("PUT") if "a.pdf" in seen.path]
    assert len(puts) == count + 1
    assert all(seen.conditional for seen in puts)


def test_a_large_object_that_was_altered_on_its_way_is_written_again(
    weed_server: str, time: Time, large: Path
) -> None:
    """moto would take it as it comes."""
    with (
        proxied(weed_server) as proxy,
        closing(fresh(weed_server)) as direct,
        closing(direct.through(proxy.url)) as bucket,
    ):
        run = claim(bucket, GATHER, time.runtime)
        proxy.fault = first(Altered(), 2)
        assert bucket.read(run.put_file(URL, large)) == DATA


@pytest.mark.sampled(3)
@pytest.mark.parametrize("status", [(403, "AccessDenied"), (400, "EntityTooLarge")])
def test_a_large_object_that_is_refused_is_told(
    bucket: Bucket, proxy: Proxy, time: Time, large: Path, status: tuple[int, str]
) -> None:
    run = claim(bucket, GATHER, time.runtime)
    proxy.fault = first(Answer(*status), 9)
    with pytest.raises(StoreError, match=r"a.pdf: (permission denied|the object is larger)"):
        run.put_file(URL, large)
    assert len(run.turn()) == 0


def test_a_server_that_ignores_conditions_is_refused(moto_server: str, large: Path) -> None:
    with proxied(moto_server) as proxy, closing(fresh(moto_server)) as direct:
        proxy.fault = lambda seen: Unconditional()
        for write in (
            lambda bucket: bucket.create_file("obi/000/000/0001/x", large),
            lambda bucket: list(bucket.create_all([("obi/000/000/0001/x", b"x")])),
        ):
            with closing(direct.through(proxy.url)) as bucket:
                with pytest.raises(StoreError, match="ignores If-None-Match"):
                    write(bucket)
                assert bucket.tag("obi/000/000/0001/x") is None


@pytest.mark.sampled(2)
def test_of_many_who_write_a_large_object_one_does(bucket: Bucket, tmp_path: Path) -> None:
    together = threading.Barrier(6)

    def write(number: int) -> int | None:
        path = tmp_path / str(number)
        path.write_bytes(bytes([number]) * (9 << 20))
        together.wait(30)
        try:
            bucket.create_file("obi/x", path)
        except Conflict:
            return None
        return number

    with ThreadPoolExecutor(6) as pool:
        (winner,) = [n for n in pool.map(write, range(6)) if n is not None]
    assert bucket.read("obi/x") == bytes([winner]) * (9 << 20)


def test_a_large_object_is_never_in_memory(weed_server: str, time: Time, tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as out:
        for number in range(64):
            out.write(bytes([number]) * (1 << 20))
    with closing(fresh(weed_server)) as bucket:
        run = claim(bucket, GATHER, time.runtime)
        tracemalloc.start()
        try:
            where = run.put_file(URL, path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 4 << 20
        client = administrator(weed_server)
        held = client.head_object(Bucket=bucket.bucket, Key=f"store/{where}")
        assert held["ContentLength"] == 64 << 20


@pytest.mark.sampled(2)
def test_many_at_once_stop_at_the_first_refusal(bucket: Bucket, proxy: Proxy) -> None:
    """And what was to be written behind it is not asked for to the end."""
    proxy.fault = lambda seen: Answer(403, "AccessDenied") if "-50" in seen.path else None
    asked: list[int] = []

    def templates() -> Iterator[tuple[str, bytes]]:
        for number in range(10_000):
            asked.append(number)
            yield f"{HANDLE}-{number}", b"x"

    with pytest.raises(StoreError, match="permission denied"):
        list(bucket.create_all(templates()))
    assert len(asked) < 300
