"""`sheaf serve` in several processes: they answer as one."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from builder.serve.mirror import CacheServer, SharedCache
from functions.snapshot.errors import MissingObject, StoreError
from functions.store import s3_request
from tests.e2e.conftest import Home
from tests.e2e.test_server import SECONDS, entries, fetched, published, running

pytestmark = pytest.mark.shared(2)

__all__ = ["published"]

TWO = {"SHEAF_SERVE_WORKERS": "2"}


def children(process: int) -> list[int]:
    """Return the workers of a server, by number."""
    found = subprocess.run(
        ["pgrep", "-P", str(process), "-f", "spawn_main"], capture_output=True, text=True
    )
    return [int(line) for line in found.stdout.split()]


def connections(url: str, count: int) -> list[HTTPConnection]:
    """Open connections that stay, one after another, each with a request answered."""
    opened = [HTTPConnection(urlsplit(url).netloc, timeout=SECONDS) for _ in range(count)]
    for connection in opened:
        ask(connection)
    return opened


def ask(connection: HTTPConnection) -> int:
    connection.request("GET", "/oai?verb=ListSets")
    answer = connection.getresponse()
    answer.read()
    return answer.status


def waited_for(process: int, without: int) -> list[int]:
    """Return the workers when there are two again, the one that ended not among them."""
    end = time.monotonic() + SECONDS
    while len(found := children(process)) < 2 or without in found:
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def cpu(process: int) -> int:
    """Return the ticks of processor time that a process took."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_each_worker_has_its_share_and_all_write_one_log(published: Home, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with running(published, "--access-log", log, **TWO) as (url, _, process):
        workers = children(process.pid)
        assert len(workers) == 2
        before = [cpu(worker) for worker in workers]
        opened = connections(url, 4)

        def walk(connection: HTTPConnection) -> None:
            for _ in range(50):
                assert ask(connection) == 200

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(walk, opened))
        entries(log, 4 + 200)
        assert all(cpu(worker) > then for worker, then in zip(workers, before, strict=True))
        log.rename(tmp_path / "access.log.1")
        for connection in opened:
            ask(connection)
        entries(log, 4)  # of both workers, though the file was moved away


def test_a_worker_that_dies_is_started_again(published: Home) -> None:
    with running(published, **TWO) as (url, errors, process):
        first = children(process.pid)[0]
        os.kill(first, signal.SIGSTOP)  # it takes none of the connections that are passed to it
        opened = [HTTPConnection(urlsplit(url).netloc, timeout=SECONDS) for _ in range(3)]
        for connection in opened:
            connection.request("GET", "/oai?verb=ListSets")
        os.kill(first, signal.SIGKILL)
        assert [connection.getresponse().status for connection in opened] == [200] * 3
        assert first not in waited_for(process.pid, first)
        fetched(url)
        assert "ended and is replaced" in errors.read_text()
        assert "Traceback" not in errors.read_text()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_server_ends_with_its_workers(
    published: Home, number: signal.Signals, workers: str
) -> None:
    with running(published, SHEAF_SERVE_WORKERS=workers) as (url, errors, process):
        (idle,) = connections(url, 1)
        found = children(process.pid)
        os.kill(process.pid, number)
        assert process.wait(SECONDS) == 0
        assert not any(Path(f"/proc/{worker}").exists() for worker in found)
        assert "\nstopped\n" in errors.read_text()
        with pytest.raises(OSError):
            fetched(url)
        idle.close()


def test_workers_end_when_the_first_process_is_killed(published: Home) -> None:
    with running(published, **TWO) as (_, _, process):
        found = children(process.pid)
        process.kill()
        end = time.monotonic() + SECONDS
        while any(Path(f"/proc/{worker}").exists() for worker in found):
            assert time.monotonic() < end
            time.sleep(0.05)


def test_what_is_wrong_is_reported_once(published: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = published("serve", "--port", port)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"sheaf: port {port} of 127.0.0.1 is in use: choose another with --port\n"


class Files:
    """A cache that counts, in place of one of a bucket."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def local(self, key: str, spans: Sequence[tuple[int, int]] | None) -> Path:
        self.asked.append((key, spans))
        s3_request.add_to_tally(2, 300)
        if key == "none":
            raise MissingObject("there is no such object")
        return Path("/files") / key

    def parts(self, key: str, size: int, spans: Sequence[tuple[int, int]]) -> list[Path]:
        self.asked.append((key, size, spans))
        return [Path("/files") / key] * len(spans)

    def close(self) -> None:
        pass


@pytest.fixture
def cache() -> Iterator[tuple[Files, SharedCache]]:
    files = Files()
    door, lent = socket.socketpair()
    CacheServer(files).lend(lent)
    shared = SharedCache(door)
    yield files, shared
    shared.close()


def test_a_shared_cache_answers_as_its_own_process_has_it(cache: tuple[Files, SharedCache]) -> None:
    files, shared = cache
    with s3_request.count_requests() as cost:
        assert shared.local("a", [(0, 5)]) == Path("/files/a")
        with pytest.raises(MissingObject, match="no such object"):
            shared.local("none", None)
    assert (cost.requests, cost.bytes) == (4, 600)
    assert shared.parts("a", 9, [(0, 5), (5, 4)]) == [Path("/files/a")] * 2
    assert files.asked == [("a", [(0, 5)]), ("none", None), ("a", 9, [(0, 5), (5, 4)])]


def test_many_threads_ask_a_shared_cache_at_once(cache: tuple[Files, SharedCache]) -> None:
    files, shared = cache
    together = threading.Barrier(8)

    def ask_for(number: int) -> Path:
        together.wait(SECONDS)
        return shared.local(str(number), None)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask_for, range(8)))
    assert found == [Path("/files") / str(number) for number in range(8)]
    assert len(files.asked) == 8


def test_a_shared_cache_whose_process_is_gone_is_an_error() -> None:
    door, lent = socket.socketpair()
    lent.close()
    with pytest.raises(StoreError, match="does not respond"):
        SharedCache(door).local("a", None)
    door.close()


@pytest.mark.thorough
def test_a_log_shared_by_workers_is_json(published: Home) -> None:
    """Also on standard error, to which both write."""
    with running(published, **TWO) as (url, errors, _):
        opened = connections(url, 4)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda one: [ask(one) for _ in range(25)], opened))
        entries(errors, 104)
        assert all(json.loads(line) for line in errors.read_text().splitlines())
