"""Kept pages over a socket: what is open meanwhile, and what a bad file or a full disk changes."""

import errno
import gzip
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, IncompleteRead, RemoteDisconnected
from pathlib import Path

import pytest

from builder.serve.server import LocalServer
from tests.builder.conftest import World, capture
from tests.builder.serve.test_kept_pages import GZIP, Served

SECONDS = 20
_DATE = re.compile(rb"<responseDate>[^<]*<")


@contextmanager
def listening(served: Served) -> Iterator[str]:
    server = LocalServer(served.pages, "127.0.0.1", 0, threads=2)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.url.removeprefix("http://")
    finally:
        server.close()
        thread.join(SECONDS)


def text(body: bytes) -> bytes:
    return _DATE.sub(b"", gzip.decompress(body))


def ask(connection: HTTPConnection, query: str) -> bytes:
    connection.request("GET", f"/oai?{query}", headers=GZIP)
    return connection.getresponse().read()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Give a server that has kept the pages of its list."""
    world = World(tmp_path / "store")
    world.ingest([capture(n) for n in range(40)])
    world.publish()
    world.clock.sleep(30)
    served = Served(world, tmp_path / "pages", pages_records=9)
    served.queries = [query for query, _ in served.walk()]
    with listening(served) as address:
        connection = HTTPConnection(address, timeout=SECONDS)
        served.bodies = [ask(connection, query) for query in served.queries]
        for query in served.queries:
            ask(connection, query)
        connection.close()
    yield served
    world.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_client_that_idles_keeps_no_file_open(served: Served) -> None:
    with listening(served) as address:
        idle = [HTTPConnection(address, timeout=SECONDS) for _ in range(5)]
        for connection in idle:
            assert ask(connection, served.queries[1]) == served.bodies[1]
        assert ask(idle[0], "verb=Identify")  # so that the answers before are done with
        handles = [*Path("/proc/self/fd").iterdir()]
        opened = [str(handle.readlink()) for handle in handles if handle.is_symlink()]
        for connection in idle:
            connection.close()
    assert [name for name in opened if name.startswith(str(served.folder))] == []


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSYS])
def test_a_file_system_without_sendfile_sends_the_same(
    served: Served, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("os.sendfile", fail)
    with listening(served) as address:
        connection = HTTPConnection(address, timeout=SECONDS)
        assert ask(connection, served.queries[1]) == served.bodies[1]
        assert ask(connection, served.queries[1]) == served.bodies[1]
        connection.close()


def test_a_page_that_cannot_be_read_breaks_off_once_and_is_rendered_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("os.sendfile", fail)
    with listening(served) as address:
        connection = HTTPConnection(address, timeout=SECONDS)
        with monkeypatch.context() as broken:
            broken.setattr("os.pread", fail)
            with pytest.raises((IncompleteRead, RemoteDisconnected, ConnectionResetError)):
                ask(connection, served.queries[1])
        connection.close()
        for _ in range(2):  # rendered, and kept again
            assert text(ask(connection, served.queries[1])) == text(served.bodies[1])
        connection.close()


def test_a_log_that_cannot_be_written_costs_no_answer(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(line: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(served.recorder, "_write", fail)
    with listening(served) as address:
        for _ in range(3):
            connection = HTTPConnection(address, timeout=SECONDS)
            assert ask(connection, served.queries[1]) == served.bodies[1]
            connection.close()
    assert caplog.text.count("access log cannot be written") == 1
