"""Connections of the local server: requests as events, and answers as their clients take them.

No thread ever waits for a client, neither for one that asks much and reads nothing nor for one that
takes an hour for a large body.
"""

import base64
import logging
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from wsgiref.types import WSGIEnvironment

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.task import WSGITask

from functions.snapshot.errors import SheafError

_LOG = logging.getLogger("sheaf")

_WAITING = 1 << 19
"""Bytes of a body that comes piece by piece which wait for the client at most."""
_TURN = 1 << 21
"""Bytes of such a body that a thread writes before it turns to others, however fast the client."""
_LINE_END = re.compile(r"[\r\n\0]")
_ASCII = "".join(map(chr, range(0x21, 0x7F)))


class _Request(HTTPRequestParser):
    """A request; what waitress itself would stumble over is 400, and so is more than one host."""

    def parse_header(self, header_plus: bytes) -> None:
        try:
            super().parse_header(header_plus)
        except ValueError as error:
            raise ParsingError("Invalid address or length") from error
        if "," in self.headers.get("HOST", ""):  # so waitress joins what is repeated
            raise ParsingError("More than one Host")


class _Later(BaseException):
    """Leaves an answer for a while, past all that a connection does when one ends."""


class _Task(WSGITask):
    """An answer. Of a body in pieces as many are written as are to wait for the client, not more.

    Then it is left (_Later), and gone on with when the client has them: it has no thread meanwhile,
    and little memory, however large it is and however slow the client.
    """

    pieces: Iterator[bytes] | None = None

    def service(self) -> None:
        try:
            super().service()
        except SheafError as error:
            # Without what is missing, and without the end of a chunked body, it is known as broken.
            _LOG.error("an answer broke off: %s", error)
            self.close_on_finish = True

    def execute(self) -> None:
        if self.pieces is None and not self._begin():
            return
        assert self.pieces is not None
        done = True
        try:
            written = 0
            for piece in self.pieces:
                self.write(piece)
                written += len(piece)
                if self.channel.total_outbufs_len > _WAITING or written > _TURN:
                    done = False
                    connection: Any = self.channel
                    connection.left = self
                    raise _Later
        finally:
            if done:
                self.close()
        if self.content_length not in (None, self.content_bytes_written):
            self.set_close_on_finish()

    def finish(self) -> None:
        if self._is_head():
            self.write(b"")
        else:
            super().finish()

    def close(self) -> None:
        """Let go of what is not written."""
        pieces, self.pieces = self.pieces, None
        if pieces is not None:
            pieces.close()  # type: ignore[attr-defined]

    def set_close_on_finish(self) -> None:
        """Close the connection behind the answer, but for one that ends by itself (RFC 9112, 6.3).

        Waitress closes it behind each that tells no length.
        """
        request: Any = self.request
        asked = request.headers.get("CONNECTION", "").lower() == "close"
        ends = self.chunked_response or self._is_head() or not self.has_body
        if asked or self.version != "1.1" or self.wrote_header or not ends:
            super().set_close_on_finish()

    def _is_head(self) -> bool:
        request: Any = self.request
        return bool(request.command == "HEAD")

    def _begin(self) -> bool:
        """Ask the handler, and write its answer; tell whether there are pieces to come."""
        server: Any = self.channel.server
        answer = server.application(self.get_environment(), None)
        headers = answer["headers"]
        if any(_LINE_END.search(text) for header in headers.items() for text in header):
            raise ValueError("a header has a line's end in it")
        status = HTTPStatus(answer["statusCode"])
        self.status = f"{status.value} {status.phrase}"
        self.response_headers = [*headers.items()]
        if "Content-Length" in headers:
            self.content_length = int(headers["Content-Length"])
        self.complete = True
        if isinstance(answer["body"], bytes):
            if self.content_length is None and not self._is_head():
                self.content_length = len(answer["body"])
            # What came behind the head would be taken for the next answer.
            self.write(b"" if self._is_head() else answer["body"])
            return False
        self.pieces = answer["body"]
        return True


class Connection(HTTPChannel):
    """A connection whose next request is taken up when the last answer is sent, not before.

    Waitress would have a thread wait without end for a client that asks many times and reads
    nothing, and hold many answers for it.
    """

    parser_class = _Request
    held = False
    """Whether a request, or the rest of an answer, waits for that."""
    left: _Task | None = None
    """The answer that was left."""

    def task_class(self, connection: Any, request: Any) -> _Task:  # type: ignore[override]
        """Return the answer to a request: the one that was left, or a new one."""
        # It is taken: another thread may be at the next request before this one is done.
        left, self.left = self.left, None
        return left or _Task(connection, request)

    def service(self) -> None:
        """Answer a request, or go on with it."""
        if self.left is not None and not self.connected:
            self.left.close()
        try:
            super().service()
        except _Later:
            self._wait()

    def _wait(self) -> None:
        """Have the answer gone on with when the client has taken what there is of it."""
        # What was taken of a buffer stays in it: the next part has one of its own.
        self.current_outbuf_count = self.adj.outbuf_high_watermark
        listener: Any = self.server
        listener.add_task(self)
        listener.pull_trigger()
        if not self.connected:
            self._leave()

    def _leave(self) -> None:
        """See that an answer which nobody waits for any more is let go of."""
        if self.held and self.left is not None:
            self.held = False
            listener: Any = self.server
            listener.task_dispatcher.add_task(self)

    def writable(self) -> bool:
        """Tell whether there is something to be done when the client takes more."""
        return bool(super().writable() or self.held)

    def handle_write(self) -> None:
        """Send what there is; when all of it is gone, go on with what waits."""
        super().handle_write()
        if self.held and not self.total_outbufs_len:
            self.held = False
            listener: Any = self.server
            listener.add_task(self)

    def handle_close(self) -> None:
        """Hang up."""
        super().handle_close()
        self._leave()


def event(environment: WSGIEnvironment) -> dict[str, Any]:
    """Return the request as API Gateway's HTTP API hands it over (payload format 2.0)."""
    headers = {
        name[5:].replace("_", "-").lower(): value
        for name, value in environment.items()
        if name.startswith("HTTP_")
    }
    headers["content-type"] = environment.get("CONTENT_TYPE", "")
    headers.setdefault("x-forwarded-proto", environment["wsgi.url_scheme"])
    body = environment["wsgi.input"].read()
    return {
        "version": "2.0",
        "rawPath": _path(environment),
        "rawQueryString": environment.get("QUERY_STRING", ""),
        "headers": headers,
        "requestContext": {"stage": "$default", "http": {"method": environment["REQUEST_METHOD"]}},
        "body": base64.b64encode(body).decode("ascii"),
        "isBase64Encoded": True,
    }


def _path(environment: WSGIEnvironment) -> str:
    """Return the path as the client wrote it, with %XX for bytes that are not ASCII."""
    target = environment["REQUEST_URI"].partition("?")[0].partition("#")[0]
    path = target if target.startswith("/") else environment.get("PATH_INFO", "/")
    return "/" + quote(path.encode("latin-1").lstrip(b"/"), safe=_ASCII)
