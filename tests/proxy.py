"""A proxy before a server of S3 that can do what networks and servers do: fail, in every way."""

import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from tests.listening import QuietHandler, listening


@dataclass(frozen=True)
class Seen:
    """A request that came to the proxy; `number` counts them from 0."""

    number: int
    method: str
    path: str
    range: str | None = None
    conditional: bool = False
    bytes: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return the path behind the bucket, without a query string."""
        return self.path.partition("?")[0].split("/", 2)[-1]


@dataclass(frozen=True)
class Answer:
    """An answer of the proxy's own; the request does not reach the server.

    `keys` makes it one to a removal, where each key has an error of its own.
    """

    status: int
    code: str = ""
    message: str = ""
    keys: tuple[str, ...] = ()

    @property
    def body(self) -> bytes:
        """Return the answer as S3 writes it."""
        inner = f"<Code>{self.code}</Code><Message>{self.message}</Message>"
        if not self.keys:
            return f"<Error>{inner}</Error>".encode()
        errors = "".join(f"<Error><Key>{key}</Key>{inner}</Error>" for key in self.keys)
        return f"<DeleteResult>{errors}</DeleteResult>".encode()


@dataclass(frozen=True)
class Lost:
    """The request is carried out, and its answer never comes."""


@dataclass(frozen=True)
class Truncated:
    """The answer's headers are right, and half of its body comes."""


@dataclass(frozen=True)
class Slow:
    """The answer comes, after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Trickle:
    """The answer's body comes in small parts, over so many seconds: a slow line."""

    seconds: float


@dataclass(frozen=True)
class Unconditional:
    """The server is one that knows nothing of conditions: it never hears of them."""


@dataclass(frozen=True)
class Unquoted:
    """The server compares If-Match of a PUT with the tag without its quotes, as Ceph 16 does."""


@dataclass(frozen=True)
class Altered:
    """A byte of the request's body is another when it arrives, as on a line that is damaged."""


Fault = Answer | Lost | Truncated | Slow | Trickle | Unconditional | Unquoted | Altered


@dataclass
class Proxy:
    """What tests steer: `fault` says of each request what shall happen to it."""

    url: str = ""
    fault: Callable[[Seen], Fault | None] = lambda seen: None
    seen: list[Seen] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def took(self, method: str) -> list[Seen]:
        """Return the requests of a method."""
        return [one for one in self.seen if one.method == method]

    def note(self, handler: BaseHTTPRequestHandler) -> Seen:
        """Remember a request."""
        headers = handler.headers
        with self.lock:
            conditional = "If-Match" in headers or "If-None-Match" in headers
            one = Seen(
                len(self.seen),
                handler.command,
                handler.path,
                headers.get("Range"),
                conditional,
                int(headers.get("Content-Length", 0)),
                {name.lower(): value for name, value in headers.items()},
            )
            self.seen.append(one)
        return one


def always(fault: Fault) -> Callable[[Seen], Fault]:
    """Return what gives every request the same fault."""
    return lambda seen: fault


@dataclass
class First:
    """What gives the fault to the first `count` requests of which `when` holds; `met` are these."""

    fault: Fault
    when: Callable[[Seen], bool]
    count: int = 1
    met: list[Seen] = field(default_factory=list)

    def __call__(self, seen: Seen) -> Fault | None:
        if len(self.met) == self.count or not self.when(seen):
            return None
        self.met.append(seen)
        return self.fault


def for_seconds(seconds: float, fault: Fault) -> Callable[[Seen], Fault | None]:
    """Return what gives every request the fault, for so long."""
    end = time.monotonic() + seconds
    return lambda seen: fault if time.monotonic() < end else None


@contextmanager
def proxied(target: str) -> Iterator[Proxy]:
    """Run a proxy before the server at `target`."""
    proxy = Proxy()
    with listening(_handler(proxy, target)) as port:
        proxy.url = f"http://127.0.0.1:{port}"
        yield proxy


def _handler(proxy: Proxy, target: str) -> type[BaseHTTPRequestHandler]:
    host = urlsplit(target).netloc

    class Handler(QuietHandler):
        def handle_any(self) -> None:
            body = self._body()
            fault = proxy.fault(proxy.note(self))
            if isinstance(fault, Answer):
                self._send(fault.status, [("Content-Type", "application/xml")], fault.body)
                return
            if isinstance(fault, Slow):
                time.sleep(fault.seconds)
            if isinstance(fault, Altered) and body:
                body = bytes([body[0] ^ 1]) + body[1:]
            status, headers, data = self._forwarded(body, fault)
            if isinstance(fault, Lost):
                self.close_connection = True
                return
            if isinstance(fault, Truncated) and len(data) > 1:
                self._send(status, headers, data[: len(data) // 2], len(data))
                self.close_connection = True
                return
            self._send(status, headers, data, trickle=fault if isinstance(fault, Trickle) else None)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any

        def _body(self) -> bytes:
            if "chunked" in self.headers.get("Transfer-Encoding", ""):
                chunks = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    chunks.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(chunks)
            return self.read_body()

        def _forwarded(
            self, body: bytes, fault: Fault | None
        ) -> tuple[int, list[tuple[str, str]], bytes]:
            dropped = {"connection", "transfer-encoding", "content-length"}
            if isinstance(fault, Unconditional):
                dropped |= {"if-match", "if-none-match"}
            headers = {k: v for k, v in self.headers.items() if k.lower() not in dropped}
            if isinstance(fault, Unquoted) and self.command == "PUT" and "If-Match" in headers:
                tag = headers["If-Match"]
                headers["If-Match"] = '"none"' if tag.startswith('"') else f'"{tag}"'
            connection = http.client.HTTPConnection(host, timeout=60)
            try:
                connection.request(self.command, self.path, body=body, headers=headers)
                answer = connection.getresponse()
                data = answer.read()
                kept = [
                    (k, v)
                    for k, v in answer.getheaders()
                    if k.lower() not in {"connection", "transfer-encoding", "content-length"}
                ]
                if self.command == "HEAD":
                    kept.append(("Content-Length", answer.getheader("Content-Length") or "0"))
                return answer.status, kept, data
            finally:
                connection.close()

        def _send(
            self,
            status: int,
            headers: list[tuple[str, str]],
            data: bytes,
            said: int = -1,
            trickle: Trickle | None = None,
        ) -> None:
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(data) if said < 0 else said))
            self.end_headers()
            if self.command == "HEAD":
                return
            parts = 1 if trickle is None else 10
            size = -(-len(data) // parts)
            for number in range(parts):
                if trickle is not None:
                    time.sleep(trickle.seconds / parts)
                self.wfile.write(data[number * size : (number + 1) * size])

    return Handler
