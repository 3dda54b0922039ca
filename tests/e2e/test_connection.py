"""The probe of a server: what it must hold over real connections, whatever clients do.

Whoever replaces the server runs this first: a body that is not read stops being produced, one that
breaks off is known to be incomplete, a refusal can be read, and slow or silent clients hinder
nobody.
"""

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, IncompleteRead
from typing import Any

import pytest

from functions.http.http_message import Call, HttpResponse
from functions.oai.application import Application
from functions.snapshot.errors import StoreUnavailable
from tests.functions.oai.client import START, configured
from tests.functions.oai.conftest import holding
from tests.patience import in_real_time
from tests.serving import Serving, serving

Answer = Callable[[Call], HttpResponse]

SECONDS = 20
"""How long a test waits for what should take no time."""
LARGE = "x" * 4_000_000
"""An answer of which the kernel takes a part at most for a client that reads nothing."""
ASKED = b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = ASKED.replace(b"Host", b"Connection: close\r\nHost")


def large(call: Call) -> HttpResponse:
    """Answer with the path, a large body behind it where that asks for one."""
    time.sleep(float(call.query or 0))
    body = (call.path + (LARGE if call.path.startswith("/large") else "")).encode()
    return HttpResponse(200, {"Content-Length": str(len(body))}, body)


@contextmanager
def listening(
    patience: float = 60, host: str = "127.0.0.1", answer: Answer = large, **limits: int
) -> Iterator[tuple[str, int]]:
    with serving(answer, host, patience=patience, **limits) as server:
        yield server.address


def connected(stack: ExitStack, address: tuple[str, int]) -> socket.socket:
    """Connect, with as little room for what is not read as can be."""
    connection = stack.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(SECONDS)
    connection.connect(address)
    return connection


@contextmanager
def asking(asked: bytes = b"", **limits: Any) -> Iterator[socket.socket]:
    """Listen; give a connection on which something was asked."""
    with listening(**limits) as address, ExitStack() as stack:
        connection = connected(stack, address)
        connection.sendall(asked)
        yield connection


def answered(address: tuple[str, int], path: str = "/small") -> bytes:
    connection = HTTPConnection(*address, timeout=SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def has_body(connection: socket.socket, body: bytes) -> bool:
    """Return whether an answer on a connection that stays open ends so, in however many pieces."""
    answer = b""
    while not answer.endswith(body) and (piece := connection.recv(4096)):
        answer += piece
    return answer.endswith(body)


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
def test_those_who_ask_much_and_read_nothing_hinder_nobody(host: str) -> None:
    with listening(host=host) as address, ExitStack() as stack:
        for _ in range(6):
            connected(stack, address).sendall(ASKED % b"/large" * 40)
        time.sleep(0.5)
        started = time.monotonic()
        for _ in range(3):
            assert answered(address) == b"/small"
        assert time.monotonic() - started < SECONDS


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("host", "times"), [("127.0.0.1", 1), ("127.0.0.1", 40), ("*", 40)])
def test_a_connection_that_is_not_read_from_is_closed_in_time(host: str, times: int) -> None:
    with asking(ASKED % b"/large" * times, patience=1, host=host) as connection:
        time.sleep(2.5)
        assert len(all_read(connection)) < len(LARGE)


def test_a_connection_on_which_nothing_is_asked_is_closed_in_time() -> None:
    with asking(patience=1) as connection:
        assert all_read(connection) == b""


@in_real_time
def test_an_answer_that_takes_long_is_waited_for() -> None:
    """A client is not cut off for what is slow on this side."""
    with asking(ASKED % b"/small?2.5", patience=1) as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


@in_real_time
def test_who_reads_slowly_gets_the_whole() -> None:
    """A few hundred KB a second for seconds, of which the kernel could hold much more."""
    with asking(LAST % b"/large", patience=1) as connection:
        slowly = bytearray()
        end = time.monotonic() + 4
        while time.monotonic() < end:
            slowly += connection.recv(8192)
            time.sleep(0.02)
        rest = all_read(connection)
    assert len(slowly) < len(LARGE) / 2
    assert len(slowly) + len(rest) > len(LARGE)


@pytest.mark.parametrize("pieces", [lambda text: [text], lambda text: [text[:40], text[40:]]])
def test_what_is_asked_at_once_is_answered_in_order(pieces: Callable[[bytes], list[bytes]]) -> None:
    paths = [b"/small1", b"/large2", b"/large3", b"/small4", b"/large5", b"/small6"]
    text = b"".join(ASKED % path for path in paths[:-1])
    text += LAST % paths[-1]
    with asking() as connection:
        for piece in pieces(text):
            connection.sendall(piece)
            time.sleep(0.05)
        bodies = [part.partition(b"\r\n\r\n")[2] for part in all_read(connection).split(b"HTTP/")]
    assert [body[:7] for body in bodies[1:]] == paths
    assert [len(body) > len(LARGE) for body in bodies[1:]] == [b"large" in path for path in paths]


def test_nothing_stands_behind_the_head_that_was_asked_for() -> None:
    with asking(ASKED.replace(b"GET", b"HEAD") % b"/small" + ASKED % b"/other") as connection:
        taken = b""
        while b"/other" not in taken:
            taken += connection.recv(4096)
        first, second, body = taken.split(b"\r\n\r\n")
        assert b"Content-Length: 6" in first
        assert second.startswith(b"HTTP/1.1 200")
        assert body == b"/other"


@in_real_time
@pytest.mark.parametrize(
    "start",
    [
        b"GET /small HTTP/1.1\r\nX: ",
        b"POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n",
    ],
)
def test_a_request_that_comes_byte_by_byte_is_cut_off(start: bytes) -> None:
    """A byte now and then keeps no connection open: the whole request has its time."""
    with asking(start, patience=1) as connection:
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < SECONDS:
                connection.sendall(b"x")
                time.sleep(0.1)
        assert time.monotonic() - began < SECONDS / 2


def test_two_lengths_of_one_body_are_refused() -> None:
    """Two parties may disagree on where the body ends (RFC 9112, section 6.1)."""
    head = ASKED.replace(b"GET", b"POST").removesuffix(b"\r\n") % b"/small"
    head += b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    with asking(head + b"0\r\n\r\n" + ASKED % b"/smuggled") as connection:
        received = all_read(connection)
    assert received.startswith(b"HTTP/1.1 400")
    assert b"Connection: close" in received
    assert received.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("length", [b"Content-Length: 10000000", b"Transfer-Encoding: chunked"])
def test_a_client_can_read_that_its_body_was_too_large(length: bytes) -> None:
    """It sends all of the body first, as most do; a reset would take the answer away."""
    body = b"x" * 10_000_000
    if b"chunked" in length:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    with asking(b"POST /small HTTP/1.1\r\nHost: a\r\n" + length + b"\r\n\r\n" + body) as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_refused_head_is_answered_without_a_body() -> None:
    with asking(b"HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\nx") as connection:
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while piece := connection.recv(4096):
            found += piece
    assert found.startswith(b"HTTP/1.1 413")
    assert found.endswith(b"\r\n\r\n")


def test_a_client_that_asks_first_does_not_send_what_is_too_large() -> None:
    expecting = (
        b"POST /small HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    )
    with listening() as address, ExitStack() as stack:
        connection = connected(stack, address)
        connection.sendall(expecting % 10_000_000)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")
        connection = connected(stack, address)
        connection.sendall(expecting % 1)
        assert connection.recv(4096).startswith(b"HTTP/1.1 100")
        connection.sendall(b"x")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_request_names_its_host() -> None:
    """HTTP/1.1 asks for it (RFC 9112, section 3.2); HTTP/1.0 does not know it."""
    with listening() as address, ExitStack() as stack:
        connection = connected(stack, address)
        connection.sendall(b"GET /small HTTP/1.1\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 400")
        connection = connected(stack, address)
        connection.sendall(b"GET /small HTTP/1.0\r\n\r\n")
        received = all_read(connection)
    assert received.split()[1] == b"200"
    assert received.endswith(b"/small")


@pytest.mark.parametrize(
    ("target", "path"),
    [(b"/a%2Fb%20c", b"/a%2Fb%20c"), (b"//a//b", b"/a//b"), (b"http://b.cz/a%2Fb?x", b"/a%2Fb")],
)
def test_the_path_is_as_the_client_wrote_it(target: bytes, path: bytes) -> None:
    def echo(call: Call) -> HttpResponse:
        return HttpResponse(200, {"Content-Length": str(len(path))}, call.path.encode())

    with asking(LAST % target, answer=echo) as connection:
        assert all_read(connection).endswith(b"\r\n\r\n" + path)


class Pieces:
    """A large body in pieces, which breaks off at `breaks`."""

    def __init__(self, count: int, breaks: int | None = None) -> None:
        self.given, self.count, self.breaks = 0, count, breaks
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self.given == self.breaks:
            raise StoreUnavailable("the disk is gone")
        if self.given == self.count:
            raise StopIteration
        self.given += 1
        return b"x" * 100_000

    def close(self) -> None:
        self.closed.set()


@contextmanager
def giving(pieces: Pieces) -> Iterator[tuple[str, int]]:
    """Serve a body in pieces, without saying how long it is."""
    with listening(answer=lambda call: HttpResponse(200, {}, pieces)) as address:
        yield address


def test_a_large_body_waits_for_its_client_and_ends_with_it() -> None:
    pieces = Pieces(10_000)
    with giving(pieces) as address, ExitStack() as stack:
        connection = connected(stack, address)
        connection.sendall(ASKED % b"/")
        assert connection.recv(1000)
        time.sleep(0.5)
        assert pieces.given < 50
        connection.close()
        assert pieces.closed.wait(SECONDS)


def test_a_body_in_pieces_has_an_end() -> None:
    pieces = Pieces(3)
    with giving(pieces) as address:
        assert len(answered(address)) == 300_000
        assert pieces.closed.wait(SECONDS)


@pytest.mark.parametrize("breaks", [0, 2])
def test_an_answer_that_breaks_off_has_no_end(
    breaks: int, caplog: pytest.LogCaptureFixture
) -> None:
    pieces = Pieces(3, breaks)
    with giving(pieces) as address:
        if breaks:
            with pytest.raises(IncompleteRead):
                answered(address)
        else:  # nothing was sent yet: this can be said
            assert b"Internal Server Error" in answered(address)
        assert pieces.closed.wait(SECONDS)
    assert "a response broke off: the disk is gone" in caplog.text
    assert "Traceback" not in caplog.text


@in_real_time
def test_an_answer_under_way_ends_though_the_server_does() -> None:
    begun = threading.Event()

    def slow(call: Call) -> HttpResponse:
        begun.set()
        time.sleep(1)
        return large(call)

    server = Serving(slow)
    with ExitStack() as stack:
        idle, connection = connected(stack, server.address), connected(stack, server.address)
        connection.sendall(ASKED % b"/large")
        assert begun.wait(SECONDS)
        server.worker.handle_exit(None, None)
        assert all_read(idle) == b""
        assert len(all_read(connection)) > len(LARGE)
    server.end()
    with pytest.raises(ConnectionRefusedError), socket.create_connection(server.address):
        pass


def test_a_target_in_absolute_form_has_its_own_authority() -> None:
    """It counts instead of Host (RFC 9112, section 3.2.2)."""

    def echo(call: Call) -> HttpResponse:
        return HttpResponse(200, {"Content-Length": "11"}, call.base.encode())

    with asking(answer=echo) as connection:
        connection.sendall(LAST % b"http://user@B.cz:80/oai?verb=Identify")
        assert all_read(connection).endswith(b"\r\n\r\nhttp://b.cz")


def test_the_server_has_options_of_its_own() -> None:
    """An asterisk asks for them (RFC 9110, section 9.3.7); it is nothing that one could get."""
    application = Application(holding({}), configured(), lambda: START)
    with asking(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", answer=application.answer) as connection:
        options = connection.recv(4096)
        connection.sendall(ASKED % b"*")
        assert connection.recv(4096).startswith(b"HTTP/1.1 400")
    assert options.startswith(b"HTTP/1.1 204")
    assert b"\r\nAllow: GET, HEAD, POST, OPTIONS\r\n" in options


@in_real_time
@pytest.mark.sampled(3)
@pytest.mark.parametrize("sent", [b"", b"GET /small HTTP/1.1\r\n", ASKED % b"/small"])
def test_idle_connections_do_not_stop_others(sent: bytes) -> None:
    """10,000 of them, or as many as this process may open: it has both ends of each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(10_000, (hard - 500) // 2)
    try:
        with listening(connections=20_000, threads=8) as address, ExitStack() as stack:
            for number in range(count):
                # Addresses of one's own have ports of their own.
                idle = stack.enter_context(socket.socket())
                idle.bind((f"127.0.0.{2 + number // 5000}", 0))
                idle.connect(address)
                if sent:
                    idle.sendall(sent)
            started = time.monotonic()
            for _ in range(3):
                assert answered(address) == b"/small"
            assert time.monotonic() - started < SECONDS
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@in_real_time
def test_silent_connections_of_one_client_give_way_to_others() -> None:
    """1,100 of them, at a server that has room for fewer; who has asked keeps its connection."""
    with listening(connections=100, threads=8) as address, ExitStack() as stack:
        harvester = connected(stack, address)
        harvester.sendall(ASKED % b"/small")
        assert has_body(harvester, b"/small")
        other = stack.enter_context(socket.socket())
        other.bind(("127.0.0.9", 0))
        other.connect(address)
        time.sleep(0.2)
        for _ in range(1100):
            stack.enter_context(socket.create_connection(address, timeout=SECONDS))
        started = time.monotonic()
        assert answered(address) == b"/small"
        other.sendall(ASKED % b"/other")
        assert has_body(other, b"/other")
        assert time.monotonic() - started < SECONDS / 2
