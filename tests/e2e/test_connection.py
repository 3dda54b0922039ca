"""Clients that ask and do not read, over real connections: they hinder nobody else."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from builder.serve.server import LocalServer
from tests.patience import in_real_time

SECONDS = 20
"""How long a test waits for what should take no time."""
LARGE = "x" * 4_000_000
"""An answer of which the kernel takes a part at most for a client that reads nothing."""
ASKED = b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n"


def large(event: dict[str, Any]) -> dict[str, Any]:
    """Answer with the path, a large body behind it where that asks for one."""
    time.sleep(float(event["rawQueryString"] or 0))
    body = event["rawPath"] + (LARGE if event["rawPath"].startswith("/large") else "")
    headers = {"Content-Length": str(len(body))}
    return {"statusCode": 200, "headers": headers, "body": body.encode()}


@contextmanager
def listening(patience: int = 60, host: str = "127.0.0.1") -> Iterator[tuple[str, int]]:
    server = LocalServer(large, host, 0, threads=2, patience=patience)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield "127.0.0.1", urlsplit(server.url).port or 0
    finally:
        server.close()
        thread.join()


def connected(stack: ExitStack, address: tuple[str, int]) -> socket.socket:
    """Connect, with as little room for what is not read as can be."""
    connection = stack.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(SECONDS)
    connection.connect(address)
    return connection


def answered(address: tuple[str, int], path: str = "/small") -> bytes:
    connection = HTTPConnection(*address, timeout=SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def all_read(connection: socket.socket) -> bytes:
    """Read until the server hangs up."""
    received = bytearray()
    try:
        while data := connection.recv(1 << 20):
            received += data
    except ConnectionResetError:
        pass
    return bytes(received)


@in_real_time
@pytest.mark.parametrize("host", ["127.0.0.1", "*"])
def test_those_who_ask_much_and_read_nothing_hold_no_thread(host: str) -> None:
    with listening(host=host) as address, ExitStack() as stack:
        for _ in range(6):
            connected(stack, address).sendall(ASKED % b"/large" * 40)
        time.sleep(0.5)
        started = time.monotonic()
        for _ in range(3):
            assert answered(address) == b"/small"
        assert time.monotonic() - started < SECONDS


@pytest.mark.parametrize(("host", "times"), [("127.0.0.1", 1), ("127.0.0.1", 40), ("*", 40)])
def test_a_connection_that_is_not_read_from_is_closed_in_time(host: str, times: int) -> None:
    with listening(patience=1, host=host) as address, ExitStack() as stack:
        connection = connected(stack, address)
        connection.sendall(ASKED % b"/large" * times)
        time.sleep(2.5)
        assert len(all_read(connection)) < len(LARGE)


def test_a_connection_on_which_nothing_is_asked_is_closed_in_time() -> None:
    with listening(patience=1) as address, ExitStack() as stack:
        connection = connected(stack, address)
        assert all_read(connection) == b""


@in_real_time
def test_an_answer_that_takes_long_is_waited_for() -> None:
    """A client is not cut off for what is slow on this side."""
    with listening(patience=1) as address, ExitStack() as stack:
        connection = connected(stack, address)
        connection.sendall(ASKED % b"/small?2.5")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


@in_real_time
def test_who_reads_slowly_gets_the_whole() -> None:
    """A few hundred KB a second for seconds, of which the kernel could hold much more."""
    with listening(patience=1) as address, ExitStack() as stack:
        connection = connected(stack, address)
        connection.sendall(ASKED.replace(b"Host", b"Connection: close\r\nHost") % b"/large")
        slowly = bytearray()
        end = time.monotonic() + 4
        while time.monotonic() < end:
            slowly += connection.recv(8192)
            time.sleep(0.02)
        rest = all_read(connection)
    assert len(slowly) < len(LARGE) / 2
    assert len(slowly) + len(rest) > len(LARGE)


@pytest.mark.parametrize("pieces", [lambda text: [text], lambda text: [text[:40], text[40:]]])
def test_what_is_asked_at_once_is_answered_in_order(
    pieces: Callable[[bytes], list[bytes]],
) -> None:
    paths = [b"/small1", b"/large2", b"/large3", b"/small4", b"/large5", b"/small6"]
    text = b"".join(ASKED % path for path in paths[:-1])
    text += ASKED.replace(b"Host", b"Connection: close\r\nHost") % paths[-1]
    with listening() as address, ExitStack() as stack:
        connection = connected(stack, address)
        for piece in pieces(text):
            connection.sendall(piece)
            time.sleep(0.05)
        bodies = [part.partition(b"\r\n\r\n")[2] for part in all_read(connection).split(b"HTTP/")]
    assert [body[:7] for body in bodies[1:]] == paths
    assert [len(body) > len(LARGE) for body in bodies[1:]] == [b"large" in path for path in paths]


def test_nothing_stands_behind_the_head_that_was_asked_for() -> None:
    with listening() as address, ExitStack() as stack:
        connection = connected(stack, address)
        connection.sendall(ASKED.replace(b"GET", b"HEAD") % b"/small" + ASKED % b"/other")
        taken = b""
        while b"/other" not in taken:
            taken += connection.recv(4096)
        first, second, body = taken.split(b"\r\n\r\n")
        assert b"Content-Length: 6" in first
        assert second.startswith(b"HTTP/1.1 200")
        assert body == b"/other"
