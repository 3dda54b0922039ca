"""One HTTP exchange, kept byte for byte as transferred."""

import gzip
import io
import socket
import zlib
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse
from typing import cast
from urllib.parse import urlsplit

from functions.snapshot.errors import SheafError


class CrawlError(SheafError):
    """The site could not be fetched."""


@dataclass(frozen=True)
class Exchange:
    """A request and its response: the bytes sent and received, and their parsed values."""

    request: bytes
    head: bytes
    """The status line and the headers as received, with the blank line."""
    body: bytes
    """The body as received, with every encoding that the server applied."""
    status: int
    headers: HTTPMessage
    content: bytes
    """The body without its transfer and content encoding."""


def fetch(url: str, connect_to: tuple[str, int], user_agent: str, timeout: float) -> Exchange:
    """Fetch `url` from the server at `connect_to`, whatever the address of its host is.

    Raises CrawlError if there is no complete response.
    """
    parts = urlsplit(url)
    connection = _TapedConnection(*connect_to, timeout=timeout)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", parts.netloc)
        connection.putheader("User-Agent", user_agent)
        connection.putheader("Accept-Encoding", "gzip")
        connection.putheader("Connection", "close")
        connection.endheaders()
        with connection.getresponse() as response:
            content = _decode(response, response.read())
        head, blank, body = bytes(response.received).partition(b"\r\n\r\n")
        return Exchange(
            request=bytes(connection.sent),
            head=head + blank,
            body=body,
            status=response.status,
            headers=response.headers,
            content=content,
        )
    except (OSError, HTTPException, EOFError, zlib.error) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise CrawlError(f"{url} could not be fetched: {said}") from error
    finally:
        connection.close()


def _decode(response: HTTPResponse, body: bytes) -> bytes:
    if response.headers.get("Content-Encoding", "").strip().lower() == "gzip":
        return gzip.decompress(body)
    return body


class _TapedConnection(HTTPConnection):
    """A connection for one exchange that keeps the bytes sent."""

    def __init__(self, host: str, port: int, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self.sent = bytearray()
        self.response_class = _TapedResponse

    def send(self, data: object) -> None:
        """Send and keep `data`: http.client passes the request's head as bytes."""
        if not isinstance(data, bytes):
            raise TypeError("only a request without a body can be recorded")
        self.sent += data
        super().send(data)

    def getresponse(self) -> "_TapedResponse":
        """Return the response, which keeps its bytes."""
        return cast(_TapedResponse, super().getresponse())


class _TapedResponse(HTTPResponse):
    """A response that keeps every byte as received."""

    def __init__(
        self,
        sock: socket.socket,
        debuglevel: int = 0,
        method: str | None = None,
        url: str | None = None,
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        self.received = bytearray()
        self.fp = io.BufferedReader(_Tape(self.fp, self.received))


class _Tape(io.RawIOBase):
    """Reads from `source` and copies everything read to `copy`."""

    def __init__(self, source: io.BufferedReader, copy: bytearray) -> None:
        super().__init__()
        self._source = source
        self._copy = copy

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the front of `buffer`; return 0 at the end."""
        data = self._source.read1(len(buffer))
        buffer[: len(data)] = data
        self._copy += data
        return len(data)

    def close(self) -> None:
        """Close the source too."""
        self._source.close()
        super().close()
