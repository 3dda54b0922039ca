"""Large bodies over a real connection: none is in memory, and none holds a thread."""

import json
import socket
import time
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path

import pytest

from functions.content.protocols import ContentError
from tests.functions.content.fakes import ID, Asker, Made, listening

SECONDS = 30
"""How long a test waits for what should take no time."""
HUGE = 10 << 30
ASKED = f"GET /content/{ID} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


def memory() -> int:
    """Return how many bytes of memory this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def received(connection: socket.socket, count: int) -> None:
    while count > 0:
        count -= len(data := connection.recv(min(count, 1 << 20)))
        assert data


def test_what_is_larger_than_memory_comes_through_little_of_it() -> None:
    """Ten gigabytes of zeros, none of which is anywhere."""
    asker = Asker(Made(b"", size=HUGE))
    asker.contents.zeros = HUGE
    with listening(asker.application) as address, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        connection.settimeout(SECONDS)
        connection.connect(address)
        connection.sendall(ASKED)
        received(connection, 8 << 20)
        before = memory()
        received(connection, 192 << 20)
        assert memory() - before < 48 << 20
        assert asker.contents.read < 232 << 20
        connection.close()
        end = time.monotonic() + SECONDS
        while asker.contents.open:
            assert time.monotonic() < end
            time.sleep(0.01)
    (line,) = map(json.loads, asker.lines)
    assert 192 << 20 < line["bytes"] < HUGE


@pytest.mark.parametrize("size", [3_000_000, None])
def test_what_breaks_off_is_known_to_be_incomplete(size: int | None) -> None:
    broken = ContentError("damaged", "the digest is another one")
    asker = Asker(Made(bytes(3_000_000), size=size, broken=broken))
    with listening(asker.application) as address:
        connection = HTTPConnection(*address, timeout=SECONDS)
        connection.request("GET", f"/content/{ID}")
        response = connection.getresponse()
        assert (response.headers["Content-Length"] is None) == (size is None)
        with pytest.raises(IncompleteRead) as error:
            response.read()
        assert len(error.value.partial) < 3_000_000
        connection.close()
    assert asker.contents.open == 0
