"""One HTTP/1.1 connection: turns requests into events, and sends the responses (RFC 9112).

h11 parses and frames. The event loop reads and writes, so that no thread ever waits for a client.
"""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Protocol, cast, runtime_checkable

import h11

from builder.serve.http_request import LONGEST_BODY, RefusalError, check_request, make_event
from builder.serve.page_cache import KeptBody
from builder.serve.threads import Threads
from functions.snapshot.errors import SheafError

_LOG = logging.getLogger("sheaf")

Handler = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes an event of API Gateway's HTTP API, and returns status, headers and a body.

The body is bytes, or an iterator of bytes with `close`, which raises SheafError if it fails.
"""

_LONGEST_HEAD = 1 << 18
"""Maximum bytes of a request line with its headers."""
_AT_ONCE = 1 << 16
"""Bytes that are read from a socket at once."""
_MORE = getattr(socket, "MSG_MORE", 0)  # not on macOS
_UNSENDABLE = {errno.EINVAL, errno.EIO, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""Errors of sendfile that come from the file or its file system, and not from the client."""
_LINGER = 10.0
"""Seconds for which the rest of a refused request is read. If a connection is closed while bytes
arrive, it is reset, and the client may lose the response (RFC 9112, section 9.6).
"""


@dataclass(frozen=True, slots=True)
class QuickAnswer:
    """A response that is ready, with status 200; `sent` is called when the client has it."""

    headers: Mapping[str, str]
    body: KeptBody
    sent: Callable[[], None]


@runtime_checkable
class QuickHandler(Protocol):
    """A handler that has some answers ready."""

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        """Answer an event (Handler)."""
        ...

    def quick(self, data: bytes) -> QuickAnswer | None:
        """Return the answer to the bytes of a request, without waiting; None if it has to wait."""
        ...


class ClientConnection:
    """Serves the requests of one client, one after another.

    The next request is read after the last response is sent. The connection is closed if the client
    neither sends nor reads for `patience` seconds, or if its request takes longer than that.
    """

    def __init__(
        self, sock: socket.socket, handler: Handler, threads: Threads, patience: float
    ) -> None:
        self._socket = sock
        self._handler = handler
        self._quick = handler.quick if isinstance(handler, QuickHandler) else None
        self._threads = threads
        self._patience = patience
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
        self._is_idle = True
        self._is_ending = False

    async def serve(self) -> None:
        """Serve until either side ends the connection, and close the socket."""
        try:
            while await self._serve_one():
                self._http.start_next_cycle()
        except RefusalError as refusal:
            await self._refuse(refusal)
        except OSError:
            pass  # the client is gone or idle: TimeoutError is an OSError
        except h11.LocalProtocolError as error:
            # Without its declared length or last chunk, the response is known to be incomplete.
            _LOG.error("a response broke off: %s", error)
        finally:
            self._socket.close()

    def end(self) -> None:
        """End the connection: at once without a request in progress, else after the response."""
        self._is_ending = True
        if self._is_idle:
            self.abort()

    def abort(self) -> None:
        """End the connection at once."""
        with suppress(OSError):  # it has ended already
            self._socket.shutdown(socket.SHUT_RDWR)

    async def _serve_one(self) -> bool:
        """Answer one request. Return whether another may follow."""
        try:
            if not self._http.trailing_data[0]:
                data = await self._answer_quickly()
                if self._is_ending:
                    return False
                self._http.receive_data(data)
            self._is_idle = False
            async with asyncio.timeout(self._patience):
                request = await self._read_request()
        except h11.RemoteProtocolError as error:
            raise RefusalError(error.error_status_hint, str(error)) from error
        if request is None:
            return False
        head, body = await self._answer(request)
        if isinstance(body, bytes | KeptBody):
            await self._write(head, h11.Data(data=cast(bytes, body)), h11.EndOfMessage())
        else:
            await self._stream(head, body)
        is_done = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        return is_done and not self._is_ending

    async def _answer_quickly(self) -> bytes:
        """Answer requests whose answers are ready; return the bytes of the first other one."""
        while True:
            self._is_idle = True
            data = await self._read()
            answer = self._quick(data) if self._quick else None
            if answer is None or self._is_ending:
                return data
            self._is_idle = False
            head = self._fields(answer.headers)
            lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
            await self._send(f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode("latin-1"), more=True)
            await self._send_file(answer.body)
            answer.sent()
            await asyncio.sleep(0)  # others are served, too, if the next request is there already

    async def _read(self) -> bytes:
        """Return the next bytes; empty if the client has closed its side."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._patience):
            return await loop.sock_recv(self._socket, _AT_ONCE)

    async def _read_request(self) -> dict[str, Any] | None:
        """Return the next request as an event, or None at the end. Raises RefusalError."""
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    await self._write(h11.InformationalResponse(status_code=100, headers=[]))
                self._http.receive_data(await self._read())
            elif isinstance(event, h11.Request):
                request = event
                check_request(event)
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > LONGEST_BODY:
                    raise RefusalError(413, "The body is too large.")
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                return make_event(request, bytes(body))
            else:
                return None

    async def _answer(
        self, event: dict[str, Any]
    ) -> tuple[h11.Response, bytes | KeptBody | Iterator[bytes]]:
        """Return the head and the body of the response to a request."""
        is_head = event["requestContext"]["http"]["method"] == "HEAD"
        answer: dict[str, Any] = {}
        try:
            answer = await self._threads.run(self._handler, event)
            return self._head(answer, is_head=is_head), b"" if is_head else answer["body"]
        except Exception:  # noqa: BLE001 - logged; the client learns that the fault is ours
            _LOG.exception("a request was not answered: %a", event["rawPath"])
            if close := getattr(answer.get("body"), "close", None):
                await self._threads.run(close)
        body = b"" if is_head else b"Something went wrong here.\n"
        return self._head({"statusCode": 500, "headers": {}, "body": body}, is_head=is_head), body

    def _head(self, answer: dict[str, Any], *, is_head: bool = False) -> h11.Response:
        status = HTTPStatus(answer["statusCode"])
        headers = self._fields(answer["headers"])
        is_empty = is_head or status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
        if isinstance(answer["body"], bytes) and not is_empty:
            headers.setdefault("Content-Length", str(len(answer["body"])))
        if self._is_ending:
            headers["Connection"] = "close"
        return h11.Response(
            status_code=status.value,
            reason=status.phrase,
            headers=[
                (name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()
            ],
        )

    @staticmethod
    def _fields(headers: Mapping[str, str]) -> dict[str, str]:
        return {"Server": "sheaf", "Date": formatdate(usegmt=True), **headers}

    async def _stream(self, head: h11.Response, pieces: Iterator[bytes]) -> None:
        """Write a response in chunks; the next one is read when the client has taken the last."""
        try:
            await self._write(head)
            while piece := await self._threads.run(next, pieces, b""):
                await self._write(h11.Data(data=piece))
            await self._write(h11.EndOfMessage())
        except SheafError as error:
            raise h11.LocalProtocolError(str(error)) from error
        finally:
            await self._threads.run(pieces.close)  # type: ignore[attr-defined]

    async def _refuse(self, refusal: RefusalError) -> None:
        """Answer with an error, and close the connection after the client could read it."""
        loop = asyncio.get_running_loop()
        text = f"{refusal}\n".encode()
        headers = {"Content-Type": "text/plain", "Connection": "close"}
        answer = {"statusCode": refusal.status, "headers": headers, "body": text}
        try:
            if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                await self._write(self._head(answer))
                with suppress(h11.LocalProtocolError):  # the response to HEAD has no body
                    await self._write(h11.Data(data=text), h11.EndOfMessage())
            self._socket.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(min(self._patience, _LINGER)):
                while await loop.sock_recv(self._socket, _AT_ONCE):
                    pass
        except OSError:
            pass  # the client is gone, or does not stop sending

    async def _write(self, *events: h11.Event) -> None:
        """Send parts of a response, as fast as the client reads them."""
        ready = b""
        for event in events:
            for data in self._http.send_with_data_passthrough(event) or ():
                if isinstance(data, KeptBody):
                    await self._send(ready, more=True)
                    await self._send_file(data)
                    ready = b""
                    continue
                if len(ready) + len(data) > _AT_ONCE:
                    await self._send(ready)
                    ready = b""
                ready = ready + data if ready else data
        await self._send(ready)

    async def _send(self, data: bytes, *, more: bool = False) -> None:
        """Send bytes; with `more`, the kernel may wait for the next ones."""
        view, flags = memoryview(data), _MORE if more else 0
        while view:
            try:
                view = view[self._socket.send(view, flags) :]
            except BlockingIOError:
                await self._wait_until_writable()

    async def _send_file(self, body: KeptBody) -> None:
        """Have the kernel send a part of a file, and close it: an idle client keeps none open."""
        place, end, handle = body.offset, body.offset + body.size, self._socket.fileno()
        with body.file:
            while place < end:
                try:
                    count = os.sendfile(handle, body.file.fileno(), place, end - place)
                except BlockingIOError:
                    await self._wait_until_writable()
                    continue
                except OSError as error:
                    if error.errno not in _UNSENDABLE:
                        raise
                    data = body.read(place, min(_AT_ONCE, end - place))
                    await self._send(data)
                    count = len(data)
                if not count:
                    raise h11.LocalProtocolError("a kept page became shorter")
                place += count

    async def _wait_until_writable(self) -> None:
        """Wait until the client has read. Raises TimeoutError after `patience` seconds."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_writer(self._socket, ready.set)
        try:
            async with asyncio.timeout(self._patience):
                await ready.wait()
        finally:
            loop.remove_writer(self._socket)
