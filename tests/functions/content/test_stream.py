"""Large bodies over a real connection: none is in memory, and none holds a thread."""

import json
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path

import pytest

from functions.content.protocols import ContentError
from tests.functions.content.fakes import ID, Asker, Made, listening

SECONDS = 30
"""How long a test waits for what should take no time."""
HUGE = 10 << 30
ASKED = f"GET /content/{ID} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


def huge() -> Asker:
    """Hold ten gigabytes of zeros, none of which is anywhere."""
    asker = Asker(Made(b"", size=HUGE))
    asker.contents.zeros = HUGE
    return asker


def memory() -> int:
    """Return how many bytes of memory this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def asked(stack: ExitStack, address: tuple[str, int], room: int = 4096) -> socket.socket:
    """Ask, with that much room for what is not read."""
    connection = stack.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    connection.settimeout(SECONDS)
    connection.connect(address)
    connection.sendall(ASKED)
    return connection


def received(connection: socket.socket, count: int) -> None:
    while count > 0:
        count -= len(data := connection.recv(min(count, 1 << 20)))
        assert data


def test_what_is_larger_than_memory_comes_through_little_of_it() -> None:
    asker = huge()
    with listening(asker.application) as address, ExitStack() as stack:
        connection = asked(stack, address, 1 << 20)
        received(connection, 8 << 20)
        before = memory()
        received(connection, 192 << 20)
        assert memory() - before < 48 << 20
        assert asker.contents.read < 232 << 20
        connection.close()
        until(lambda: asker.contents.open == 0)
    (line,) = map(json.loads, asker.lines)
    assert 192 << 20 < line["bytes"] < HUGE


def test_those_who_read_nothing_hinder_nobody_and_hold_few_bytes() -> None:
    asker = huge()
    with listening(asker.application) as address, ExitStack() as stack:
        idle = [asked(stack, address) for _ in range(8)]
        until(lambda: asker.contents.open == 8)
        time.sleep(0.5)
        assert asker.contents.read < 8 * (4 << 20)
        connection = HTTPConnection(*address, timeout=SECONDS)
        connection.request("GET", "/content?id=nobody")
        assert connection.getresponse().status == 404
        connection.close()
        received(idle[3], 16 << 20)
        for one in idle:
            one.close()
        until(lambda: asker.contents.open == 0)
    # Whoever went away gave back his place.
    assert len(asker.lines) == 9


def test_who_stands_still_is_cut_off() -> None:
    asker = huge()
    with listening(asker.application, patience=1) as address, ExitStack() as stack:
        asked(stack, address)
        until(lambda: asker.contents.open == 1)
        until(lambda: asker.contents.open == 0)


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


@pytest.mark.parametrize("size", [3_000_000, None])
def test_it_comes_whole_and_the_connection_goes_on(size: int | None) -> None:
    payload = bytes(range(256)) * 12_000
    asker = Asker(Made(payload, size=size and len(payload)))
    with listening(asker.application) as address:
        connection = HTTPConnection(*address, timeout=SECONDS)
        for _ in range(3):
            for method, body in (("GET", payload), ("HEAD", b"")):
                connection.request(method, f"/content/{ID}")
                response = connection.getresponse()
                assert (response.status, response.read()) == (200, body)
                assert response.headers["Connection"] == "keep-alive"
        connection.close()
    assert [json.loads(line)["bytes"] for line in asker.lines] == [len(payload), 0] * 3


def test_a_connection_goes_on_behind_an_answer_without_a_body() -> None:
    """Unless the client wants it closed."""
    asker = Asker(Made(b"x"))
    with listening(asker.application) as address:
        connection = HTTPConnection(*address, timeout=SECONDS)
        for method, headers, status in (
            ("GET", {"If-None-Match": "*"}, 304),
            ("OPTIONS", {}, 204),
            ("HEAD", {}, 200),
            ("HEAD", {"Connection": "close"}, 200),
        ):
            connection.request(method, f"/content/{ID}", headers=headers)
            response = connection.getresponse()
            assert (response.status, response.read()) == (status, b"")
            assert response.headers["Connection"] == headers.get("Connection", "keep-alive")
        connection.close()


def test_several_are_asked_for_at_once_on_one_connection() -> None:
    payload = bytes(range(256)) * 8000
    asker = Asker(Made(payload))
    with listening(asker.application) as address, ExitStack() as stack:
        connection = asked(stack, address)
        connection.sendall(ASKED * 2 + ASKED.replace(b"Host", b"Connection: close\r\nHost"))
        got = bytearray()
        while data := connection.recv(1 << 20):
            got += data
    assert got.count(payload) == 4
