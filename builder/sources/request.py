"""The request of a capture, read for its method and for the query that stands for what it sent.

pywb, cdxj-indexer and wabac.js find the answer to a POST by such a query behind the URL. It is made
here by pywb's rules (MethodQueryCanonicalizer, pywb 2.10). A GET needs none, and is passed over.
"""

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote_plus, unquote_plus, urlencode

from functions.archive.chunked import ChunkedDecoder
from functions.archive.record import RecordBlock
from functions.archive.warc import parse_fields

MAX_BYTES = 1 << 20
"""Bytes of a request that are read. Of a longer one only text and binary data give a query."""
MAX_QUERY = 4096
"""Characters of a query, the rest of which pywb cuts off."""

_SENDING = frozenset({"POST", "PUT"})
"""Methods of which pywb takes the body."""
METHOD = rb"[A-Za-z][!#$%&'*+\-.^_`|~0-9A-Za-z]{0,31}"
"""A method's name, as an expression: a token (RFC 9110, section 9.1) that begins with a letter."""
_LINE = re.compile(rb"(%b)[ \t]+[^\r\n]*HTTP/\d[^\r\n]*\r?\n" % METHOD, re.IGNORECASE)
_HEAD_END = re.compile(rb"\n\r?\n")
_LENGTH = re.compile(rb"\d{1,18}")
_BOUNDARY = re.compile(r'boundary=(?:"([^"]+)"|([^;\s]+))', re.IGNORECASE)
_NAME = re.compile(rb'(?:^|[;\s])name="([^"]*)"', re.IGNORECASE)
_FILE = re.compile(rb"[;\s]filename\*?=", re.IGNORECASE)
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class CaptureRequest(NamedTuple):
    """A request that is no GET: its method, its query ("" if it has none), where it lies."""

    method: str
    query: str
    offset: int | None


def read_request(block: RecordBlock, offset: int | None) -> CaptureRequest | None:
    """Read the request that a record's block is; None for a GET and for what is no request."""
    start = _read_bytes(block, 4)
    if start == b"GET ":
        return None
    data = start + _read_bytes(block, MAX_BYTES + 1 - len(start))
    match = _LINE.match(data)
    method = match[1].decode("ascii").upper() if match else "GET"
    if match is None or method == "GET":
        return None
    end = _HEAD_END.search(data, match.end() - 1)
    fields = parse_fields(data[: end.end()]) if end else {}
    body = data[end.end() :] if end else b""
    is_whole = len(data) <= MAX_BYTES
    text = _build_query(fields, body, is_whole) if method in _SENDING else ""
    return CaptureRequest(method, escape_illegal(text[:MAX_QUERY]), offset)


def _read_bytes(block: RecordBlock, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := block.take(size - len(data))):
        data += piece
    return data


def escape_illegal(text: str) -> str:
    """Return a text with each character that XML 1.0 forbids as %XX of its UTF-8 form."""
    return _ILLEGAL.sub(lambda match: quote_plus(match[0], errors="surrogatepass"), text)


def _build_query(fields: Mapping[bytes, bytes], body: bytes, is_whole: bool) -> str:
    """Return the query that stands for a body, before it is cut."""
    length = fields.get(b"content-length")
    if length is not None:
        body = body[: int(length)] if _LENGTH.fullmatch(length) else b""
    if b"chunked" in fields.get(b"transfer-encoding", b"").lower():
        decoder = ChunkedDecoder()
        body = decoder.feed(body) + decoder.flush()
    if not body:
        return ""
    media_type = fields.get(b"content-type", b"").decode("latin-1")
    if media_type.startswith("application/x-www-form-urlencoded"):
        return _form_query(body, is_whole)
    if media_type.startswith("multipart/"):
        return _multipart_query(body, media_type) if is_whole else ""
    if media_type.startswith("application/json"):
        return _json_query(body) or "" if is_whole else ""
    if media_type.startswith("application/x-amf"):
        return ""
    found = _json_query(body) if is_whole and media_type.startswith("text/plain") else None
    return _binary_query(body) if found is None else found


def _binary_query(body: bytes) -> str:
    return "__wb_post_data=" + base64.b64encode(body[:MAX_QUERY]).decode("ascii")


def _form_query(body: bytes, is_whole: bool) -> str:
    try:
        return unquote_plus(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        if not is_whole and error.end == len(body):  # a character that was cut
            return unquote_plus(body[: error.start].decode("utf-8"))
        return _binary_query(body)


def _multipart_query(body: bytes, media_type: str) -> str:
    """Return the fields of a multipart form (RFC 7578) as a query."""
    match = _BOUNDARY.search(media_type)
    if match is None:
        return _binary_query(body)
    mark = b"--" + (match[1] or match[2]).encode("latin-1")
    _, *parts = (b"\n" + body).split(b"\n" + mark)
    arguments: list[str] = []
    for part in parts:
        head = _HEAD_END.search(part)
        if part.startswith(b"--") or head is None:
            continue
        disposition = parse_fields(part[: head.end()]).get(b"content-disposition", b"")
        name = _NAME.search(disposition)
        value = part[head.end() :].removesuffix(b"\r")
        text = value if _FILE.search(disposition) else value.decode("utf-8", "replace")
        arguments.append(f"{quote_plus(name[1] if name else b'None')}={quote_plus(text)}")
    return "&".join(arguments)


def _json_query(body: bytes) -> str | None:
    """Return the values of a JSON text by their names as a query; None for what has no such."""
    named: dict[str, str] = {}
    repeated: dict[str, int] = {}
    try:
        for name, value in _values(json.loads(body)):
            key = name
            if name in named:
                repeated[name] = repeated.get(name, 1) + 1
                key = f"{name}.{repeated[name]}_"
            named[key] = value
        return urlencode(named)
    except (ValueError, RecursionError, OverflowError):  # half a surrogate pair is a ValueError
        return None


def _values(found: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of a JSON document, each under the nearest name above it."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield from _values(value, key)
    elif isinstance(found, list):
        for value in found:
            yield from _values(value, name)
    elif name:
        yield name, _write_number(found)


def _write_number(value: Any) -> str:
    """Return a value as JavaScript writes it: a number without a fraction that is none."""
    if isinstance(value, float) and math.modf(value)[0] == 0:
        return str(int(value))  # OverflowError for what is too large to be a number
    return value if isinstance(value, str) else json.dumps(value)
