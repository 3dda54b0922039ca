"""HTTP exchanges of the demo, kept byte for byte, and what is read from them.

The links of an HTML page are read for the crawl. Outlines of OAI-PMH records are text with one
line for each element.
"""

import gzip
import io
import re
import socket
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse
from textwrap import shorten
from typing import cast
from urllib.parse import quote, urlencode, urljoin, urlsplit, urlunsplit
from xml.etree import ElementTree

from functions.snapshot.errors import SheafError

_CHARSET = re.compile(rb"""charset\s*=\s*["']?([A-Za-z0-9_.:-]+)""")
_SAFE = "/%:@!$&'()*+,;=~"
_OAI = "{http://www.openarchives.org/OAI/2.0/}"
_WIDTH = 96  # characters of a line


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


def links(content: bytes, base: str, charset: str | None) -> list[str]:
    """Return the URLs that a page at `base` refers to by href and src, in the page's order.

    `charset` is that of the HTTP header; without it the page's own meta counts. Only http URLs are
    returned, each in one canonical form and without a fragment.
    """
    parser = _Links()
    parser.feed(_text(content, charset))
    parser.close()
    found = (canonical(link, base) for link in parser.found)
    return list(dict.fromkeys(url for url in found if url is not None))


def canonical(link: str, base: str = "") -> str | None:
    """Return `link` as an absolute http URL of ASCII characters, or None if it is not one."""
    try:
        parts = urlsplit(urljoin(base, link.strip()))
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme != "http" or not host:
        return None
    netloc = host if port in (None, 80) else f"{host}:{port}"
    path = quote(parts.path or "/", safe=_SAFE)
    return urlunsplit(("http", netloc, path, quote(parts.query, safe=_SAFE + "?"), ""))


def _text(content: bytes, charset: str | None) -> str:
    if charset is None:
        meta = _CHARSET.search(content[:1024])
        charset = meta[1].decode("ascii") if meta else "utf-8"
    try:
        return content.decode(charset, "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the values of href and src."""
        self.found += [value for name, value in attrs if name in ("href", "src") and value]


def get_record(endpoint: str, identifier: str, prefix: str) -> ElementTree.Element:
    """Return a record in the format `prefix`. Raises CrawlError if it does not exist."""
    query = {"verb": "GetRecord", "metadataPrefix": prefix, "identifier": identifier}
    parts = urlsplit(endpoint)
    address = parts.hostname or "", parts.port or 80
    answer = fetch(f"{endpoint}?{urlencode(query)}", address, "sheaf-demo", 60.0)
    found = ElementTree.fromstring(answer.content).find(f".//{_OAI}record")
    if found is None:
        raise CrawlError(f"{endpoint} has no record of {identifier} in {prefix}")
    return found


def outline(record: ElementTree.Element) -> list[str]:
    """Return lines for the header and the metadata of a `record`; its `about` is left out.

    A line has an element's name and text; its children are indented below it.
    """
    header = record.find(f"{_OAI}header")
    assert header is not None
    status = header.get("status")
    lines = [
        f"{header.findtext(f'{_OAI}identifier')}  {header.findtext(f'{_OAI}datestamp')}"
        + (f"  {status}" if status else "")
    ]
    for metadata in record.findall(f"{_OAI}metadata"):
        for root in metadata:
            lines += _lines(root, "  ")
    return lines


def _lines(element: ElementTree.Element, indent: str) -> Iterator[str]:
    name = element.tag.rpartition("}")[2]
    text = element.text or ""
    if len(element) or "\n" not in text.strip():
        named = [f"{k}={v}" for k, v in element.items() if not k.startswith("{")]
        line = " ".join([name, *named, *text.split()])
        yield indent + shorten(line, _WIDTH - len(indent), placeholder=" ...")
    else:  # text in lines of its own, as a template is
        yield indent + name
        for line in text.strip().splitlines():
            yield f"{indent}  {shorten(line, _WIDTH - len(indent) - 2, placeholder=' ...')}"
    for child in element:
        yield from _lines(child, f"{indent}  ")
