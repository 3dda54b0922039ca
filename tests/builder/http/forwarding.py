"""A proxy of HTTP: it asks one server for whatever host it is told, or leads a tunnel to it."""

import base64
import http.client
import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.listening import QuietHandler, listening


@dataclass
class Forwarding:
    """What a proxy was asked for: a method and a target, as they came.

    One that `ends` its connections behind each answer does not say so before.
    """

    target: int
    user: str = ""
    port: int = 0
    ends: bool = False
    seen: list[tuple[str, str]] = field(default_factory=list)
    connections: int = 0

    def url(self, scheme: str = "http") -> str:
        return f"{scheme}://{self.user and f'{self.user}@'}localhost:{self.port}"


class _Handler(QuietHandler):
    forwarding: Forwarding

    def setup(self) -> None:
        super().setup()
        self.forwarding.connections += 1

    def do_GET(self) -> None:
        if not self._is_let_in():
            return
        parts = urlsplit(self.path)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        there = http.client.HTTPConnection("127.0.0.1", self.forwarding.target)
        passed = {k: v for k, v in self.headers.items() if not k.startswith("Proxy-")}
        there.request("GET", target, headers={**passed, "Connection": "close"})
        answer = there.getresponse()
        body = answer.read()
        left_out = ("connection", "transfer-encoding", "content-length")
        headers = {k: v for k, v in answer.getheaders() if k.lower() not in left_out}
        self.reply(answer.status, body, headers)
        there.close()
        self.close_connection = self.forwarding.ends

    def do_CONNECT(self) -> None:
        if not self._is_let_in():
            return
        self.send_response(200)
        self.end_headers()
        with socket.create_connection(("127.0.0.1", self.forwarding.target)) as there:
            ways = {self.connection: there, there: self.connection}
            while True:
                for one in select.select([*ways], [], [])[0]:
                    data = one.recv(1 << 16)
                    if not data:
                        self.close_connection = True
                        return
                    ways[one].sendall(data)

    def _is_let_in(self) -> bool:
        forwarding = self.forwarding
        forwarding.seen.append((self.command, self.path))
        wanted = base64.b64encode(forwarding.user.encode()).decode()
        if forwarding.user and self.headers["Proxy-Authorization"] != f"Basic {wanted}":
            self.reply(407)
            return False
        return True


@contextmanager
def forwarding(
    target: int, user: str = "", tls: ssl.SSLContext | None = None
) -> Iterator[Forwarding]:
    """Serve a proxy to a port of this machine, for one user if there is one, by TLS if told so."""
    proxy = Forwarding(target, user)
    with listening(type("Handler", (_Handler,), {"forwarding": proxy}), tls=tls) as proxy.port:
        yield proxy
