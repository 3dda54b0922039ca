"""The repository of this machine behind a socket, with connections that stay open."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.builder.sources.harvest.defects import defective
from tests.builder.sources.harvest.element import Item
from tests.builder.sources.harvest.provider import Answer, Provider
from tests.listening import QuietHandler
from tests.listening import listening as open_server


class _Handler(QuietHandler):
    provider: Provider
    timeout = 120

    def do_GET(self) -> None:
        self._answer(self.path.partition("?")[2])

    def do_POST(self) -> None:
        self._answer(self.read_body().decode())

    def _answer(self, query: str) -> None:
        provider = self.provider
        provider.keys.append(self.headers.get("X-Key", ""))
        call = provider.call(query, self.headers.get("Accept-Encoding", ""))
        self._send(provider.answer(call))

    def _send(self, answer: Answer) -> None:
        provider = self.provider
        if answer.pause:
            provider.over.wait(answer.pause)
        self.close_connection = answer.close or answer.silent or answer.cut is not None
        if answer.silent:
            return
        lines = [f"HTTP/1.1 {answer.status} Said"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        body = answer.body
        if answer.chunked:
            lines.append("Transfer-Encoding: chunked")
            size = max(1, len(body) // 3)
            parts = [body[at : at + size] for at in range(0, len(body), size)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        elif "Content-Length" not in answer.headers and not answer.close:
            lines.append(f"Content-Length: {len(body)}")
        if answer.close:
            lines.append("Connection: close")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        self.wfile.write(head + body[: answer.cut])  # at once, so that nothing waits for an ACK


@contextmanager
def listening(provider: Provider, host: str = "127.0.0.1") -> Iterator[Provider]:
    """Serve the repository; its host and its port are set."""
    provider.host = host
    handler = type("Handler", (_Handler,), {"provider": provider})
    with open_server(handler, host) as provider.port:
        try:
            yield provider
        finally:
            provider.over.set()


@contextmanager
def serving(some: Iterable[Item], *defects: str, **more: Any) -> Iterator[Provider]:
    """Serve a repository of these items that has these defects. `more` are fields of Provider."""
    with listening(defective({one.identifier: one for one in some}, *defects, **more)) as provider:
        yield provider
