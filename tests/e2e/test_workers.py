"""`sheaf serve` in several processes: they answer as one."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from builder.serve.server import LogLines
from tests.e2e.conftest import Home
from tests.e2e.test_server import SECONDS, entries, fetched, published, running

pytestmark = pytest.mark.shared(2)

__all__ = ["published"]

TWO = {"SHEAF_SERVE_WORKERS": "2"}


def children(process: int) -> list[int]:
    """Return the workers of a server, by number."""
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True)
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
        assert f"Worker (pid:{first}) was sent SIGKILL" in errors.read_text()
        assert "Traceback" not in errors.read_text()
        # Every line of standard error is for a collector of logs, errors too.
        rows = [json.loads(line) for line in errors.read_text().splitlines()]
        assert all(("level" in row) != ("method" in row) and row["time"] for row in rows)


def test_an_error_is_a_line_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.Logger("own")
    log.addHandler(LogLines())
    try:
        raise ValueError("line\nand another")
    except ValueError:
        log.exception("a request was not answered: %a", "/oai")
    (line,) = capsys.readouterr().err.splitlines()
    row = json.loads(line)
    assert (row["level"], row["message"]) == ("error", "a request was not answered: '/oai'")
    assert row["trace"].startswith("Traceback")
    assert row["trace"].endswith("ValueError: line\nand another")


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
        last = json.loads(errors.read_text().splitlines()[-1])
        assert (last["level"], last["message"]) == ("info", "stopped")
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


FAILING = """
from builder.serve.server import Server
from functions.snapshot.errors import StoreError

def fail(number):
    raise StoreError("no template")

try:
    Server(fail, "127.0.0.1", 0, 3, lambda: print("ready")).run()
except StoreError as error:
    print(error)
"""


def test_what_workers_cannot_open_is_told_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING], capture_output=True, text=True, timeout=3 * SECONDS
    )
    assert (done.stdout, done.stderr) == ("no template\n", "")
