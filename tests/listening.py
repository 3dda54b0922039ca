"""The web server of the tests: any of theirs is this one with a handler of its own."""

import random
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens at, no two alike.

    They are below those that the system gives to connections: one of these is soon taken.
    """
    ports: list[int] = []
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100 * count):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            ports.append(port)
        if len(ports) == count:
            break
    return ports


def free_port() -> int:
    """Return a port that nobody listens at."""
    return free_ports(1)[0]


class QuietHandler(BaseHTTPRequestHandler):
    """Keeps connections open, and says nothing of requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments: Any) -> None:
        """Leave standard error to pytest."""

    def read_body(self) -> bytes:
        """Return the body of a request that says how long it is."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send an answer with a length, where the headers have none; to HEAD without its body."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    tls: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection, by TLS where it begins with a handshake of that."""
        if self.tls is not None and request.recv(1, socket.MSG_PEEK) == b"\x16":
            request = self.tls.wrap_socket(request, server_side=True)
        with request:
            super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over clients that went away, or were killed, which some tests are about."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


@contextmanager
def listening(
    handler: Callable[..., BaseHTTPRequestHandler],
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> Iterator[int]:
    """Serve by a handler, in threads, also by TLS where a context is given; give the port."""
    with _Server((host, port), handler) as server:
        server.tls = tls
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
