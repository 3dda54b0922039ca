"""Responses: status, header fields (RFC 9110, section 5), body, and its content coding.

Gzip and deflate are unpacked in small pieces and within a limit. A body that breaks off or is not
packed is an error, because the response can be requested again. The module
functions.archive.coding, which reads archives, accepts such bodies.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from builder.http.errors import FetchError

REDIRECTS = frozenset({301, 302, 303, 307, 308})
SHORT = 1 << 12
"""Bytes of a redirect's body that are read."""
_PIECE = 1 << 18
_ANY = zlib.MAX_WBITS | 32  # gzip or zlib, by the header
_KNOWN = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP = b"\x1f\x8b"
_NONE = frozenset({"", "identity", "none", "utf-8", "binary", "aws-chunked"})
"""Values of Content-Encoding that are not codings: those of S3, and mistakes."""


Fields = tuple[tuple[str, str], ...]
"""Header fields in order, as they were sent."""


@dataclass(frozen=True, slots=True)
class Response:
    """The head of a response and its body as it arrives, without its transfer coding.

    `headers` has the first field of each name, with names in lower case. `raw` has all fields, in
    the order and spelling of the server. Values are decoded as UTF-8, else as latin-1. `sent` are
    the fields of the request without credentials. `address` is the server's IP address, None behind
    a proxy. `hops` are the URLs that led to `url` by redirects, in order, and `redirects` their
    responses, if these were to be recorded.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: Iterator[bytes]
    reason: str = ""
    raw: Fields = ()
    hops: tuple[str, ...] = ()
    sent: Fields = ()
    address: str | None = None
    redirects: tuple["FollowedRedirect", ...] = ()

    @property
    def location(self) -> str | None:
        """The target of a redirect as the server wrote it; None for other responses."""
        target = self.headers.get("location") if self.status in REDIRECTS else None
        return target or None

    def drain(self) -> bytes | None:
        """Read a short body to its end, so that its connection can be reused; None for others."""
        length = self.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length) <= SHORT:
            with suppress(FetchError):
                return b"".join(self.body)
        return None


@dataclass(frozen=True, slots=True)
class FollowedRedirect:
    """A redirect that was followed, at `at` in seconds since 1970.

    `body` is None if it was not read to its end, because it has more than SHORT bytes.
    """

    response: Response
    at: float
    body: bytes | None


def field_text(value: bytes) -> str:
    """Return the value of a field without surrounding blanks."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    return text.strip()


def fields_by_name(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the first field of each name, names in lower case."""
    firsts: dict[str, str] = {}
    for name, value in fields:
        firsts.setdefault(name.lower(), value)
    return firsts


def content_coding(headers: Mapping[str, str]) -> str | None:
    """Return the coding of a response, None if it has no coding."""
    coding = headers.get("content-encoding", "").strip().lower()
    return None if coding in _NONE else coding


def can_unpack(name: str) -> bool:
    """Return whether a coding can be unpacked here."""
    return name in _KNOWN


def read_body(headers: Mapping[str, str], received: Iterable[bytes], most: int) -> bytes:
    """Return a body of at most `most` bytes, unpacked. Raises FetchError for a larger one."""
    name = content_coding(headers)
    if name is not None and not can_unpack(name):
        raise FetchError("content-coding", name)
    data = bytearray()
    for piece in unpack(received) if name else received:
        data += piece
        if len(data) > most:
            raise FetchError("too-large", f"more than {most:,} bytes")
    return bytes(data)


def read_mislabelled(headers: Mapping[str, str], raw: bytes, most: int) -> tuple[bytes, bool]:
    """Return a body without its coding, and whether the coding is another than declared.

    Some servers pack without a word, or say so of text. Raises FetchError as `read_body` does.
    """
    name, is_packed = content_coding(headers), raw.startswith(_GZIP)
    if not is_packed and name != "deflate":
        if name is not None and not can_unpack(name):
            raise FetchError("content-coding", name)
        return raw, name is not None
    try:
        return read_body({"content-encoding": "gzip"}, [raw], most), name is None
    except FetchError as failure:
        if failure.code == "content-coding" and raw.lstrip().startswith(b"<"):
            return raw, True
        raise


def read_start(headers: Mapping[str, str], received: Iterable[bytes], most: int) -> bytes:
    """Return about `most` bytes of the beginning of a body, unpacked as far as possible."""
    name = content_coding(headers)
    data = bytearray()
    if name is None or can_unpack(name):
        try:
            for piece in unpack(received) if name else received:
                data += piece
                if len(data) >= most:
                    break
        except FetchError as failure:
            if failure.code != "content-coding":
                raise
    return bytes(data)


def unpack(received: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the unpacked bytes, from all members of gzip.

    Raises FetchError if the bytes are not packed, or break off.
    """
    engine, begun = zlib.decompressobj(_ANY), False
    for data in received:
        while data:
            if engine.eof:  # another member, or padding
                if not (data := data.lstrip(b"\0")):
                    break
                engine = zlib.decompressobj(_ANY)
            try:
                piece = engine.decompress(data, _PIECE)
            except zlib.error as error:
                if begun:
                    raise FetchError("content-coding", str(error)) from error
                engine = zlib.decompressobj(-zlib.MAX_WBITS)  # bare deflate (RFC 1951)
                piece = b""
            else:
                data = engine.unconsumed_tail or engine.unused_data
            begun = True
            if piece:
                yield piece
    try:
        rest = engine.flush()
    except zlib.error as error:
        raise FetchError("content-coding", str(error)) from error
    if rest:
        yield rest
    if begun and not engine.eof:
        raise FetchError("content-coding", "the compressed bytes end too early")
