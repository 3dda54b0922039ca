"""A proxy of HTTP: it asks one server for whatever host it is told, or leads a tunnel to it."""

import base64
import http.client
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass
class Forwarding:
    """What a proxy was asked for: a method and a target, as they came.

    One that `ends` its connections behind each answer does not say so before.
    """

    port: int
    target: int
    user: str = ""
    ends: bool = False
    seen: list[tuple[str, str]] = field(default_factory=list)
    connections: int = 0

    def url(self, scheme: str = "http") -> str:
        return f"{scheme}://{self.user and f'{self.user}@'}localhost:{self.port}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    forwarding: Forwarding


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.forwarding.connections += 1

    def do_GET(self) -> None:
        if not self._is_let_in():
            return
        parts = urlsplit(self.path)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        there = http.client.HTTPConnection("127.0.0.1", self.server.forwarding.target)
        passed = {k: v for k, v in self.headers.items() if not k.startswith("Proxy-")}
        there.request("GET", target, headers={**passed, "Connection": "close"})
        answer = there.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        there.close()
        self.close_connection = self.server.forwarding.ends

    def do_CONNECT(self) -> None:
        if not self._is_let_in():
            return
        self.send_response(200)
        self.end_headers()
        with socket.create_connection(("127.0.0.1", self.server.forwarding.target)) as there:
            ways = {self.connection: there, there: self.connection}
            while True:
                for one in select.select([*ways], [], [])[0]:
                    data = one.recv(1 << 16)
                    if not data:
                        self.close_connection = True
                        return
                    ways[one].sendall(data)

    def _is_let_in(self) -> bool:
        forwarding = self.server.forwarding
        forwarding.seen.append((self.command, self.path))
        wanted = base64.b64encode(forwarding.user.encode()).decode()
        if forwarding.user and self.headers["Proxy-Authorization"] != f"Basic {wanted}":
            self.send_response(407)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False
        return True

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def forwarding(
    target: int, user: str = "", tls: ssl.SSLContext | None = None
) -> Iterator[Forwarding]:
    """Serve a proxy to a port of this machine, for one user if there is one, by TLS if told so."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        server.forwarding = Forwarding(server.server_port, target, user)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.forwarding
        finally:
            server.shutdown()
            thread.join()
