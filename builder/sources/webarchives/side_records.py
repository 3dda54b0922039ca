"""Records beside the captures: their requests, and what a file says about its crawl.

A request gives its method and its body as a query. pywb, cdxj-indexer and wabac.js append this
query to the URL to find the answer to a POST. The query follows pywb's rules
(MethodQueryCanonicalizer, pywb 2.10). GET requests are skipped.

A warcinfo record (ISO 28500, section 6.2) has named fields. Heritrix writes the same terms into
the version block of an ARC file as XML (`arcmetadata`). Both give the same few fields.
"""

import base64
import html
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote_plus, unquote_plus, urlencode

from functions.archive.message import ChunkedDecoder
from functions.archive.record import RecordBlock
from functions.archive.record_header import parse_fields

REQUEST_BYTES = 1 << 20
"""The most bytes of a request. A longer one gives a query only of text or binary data."""
MAX_QUERY = 4096
"""Characters of a query; pywb cuts off the rest."""

_SENDING = frozenset({"POST", "PUT"})
"""Methods whose body pywb uses."""
METHOD = rb"[A-Za-z][!#$%&'*+\-.^_`|~0-9A-Za-z]{0,31}"
"""A method's name, as an expression: a token (RFC 9110, section 9.1) that begins with a letter."""
_LINE = re.compile(rb"(%b)[ \t]+[^\r\n]*HTTP/\d[^\r\n]*\r?\n" % METHOD, re.IGNORECASE)
_HEAD_END = re.compile(rb"\n\r?\n")
_LENGTH = re.compile(rb"\d{1,18}")
_BOUNDARY = re.compile(r'boundary=(?:"([^"]+)"|([^;\s]+))', re.IGNORECASE)
_NAME = re.compile(rb'(?:^|[;\s])name="([^"]*)"', re.IGNORECASE)
_FILE = re.compile(rb"[;\s]filename\*?=", re.IGNORECASE)
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CRAWL_BYTES = 1 << 16
"""The most bytes of a block that are read."""
_LONGEST_VALUE = 1000  # characters of a value

CRAWL_FIELDS = {
    # field of Crawl: its name in lower case
    "software": "software",
    "operator": "operator",
    "part_of": "ispartof",
    "description": "description",
}
_FIELD_LINE = re.compile(rb"^([A-Za-z][A-Za-z0-9\-_.]*)[ \t]*:[ \t]*([^\r\n]*)", re.MULTILINE)
_ELEMENT = re.compile(rb"<(?:[A-Za-z0-9_.\-]+:)?([A-Za-z][A-Za-z0-9_.\-]*)(?:\s[^<>]*)?>([^<]*)</")
_SPACE = re.compile(r"\s+")
_ILLEGAL_IN_CRAWL = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class CaptureRequest(NamedTuple):
    """A request other than GET: its method, its query ("" without one) and its offset."""

    method: str
    query: str
    offset: int | None


def read_request(block: RecordBlock, offset: int | None) -> CaptureRequest | None:
    """Read the request in a record's block; None for a GET and for other data."""
    start = read_bytes(block, 4)
    if start == b"GET ":
        return None
    data = start + read_bytes(block, REQUEST_BYTES + 1 - len(start))
    match = _LINE.match(data)
    method = match[1].decode("ascii").upper() if match else "GET"
    if match is None or method == "GET":
        return None
    end = _HEAD_END.search(data, match.end() - 1)
    fields = parse_fields(data[: end.end()]) if end else {}
    body = data[end.end() :] if end else b""
    is_whole = len(data) <= REQUEST_BYTES
    text = _build_query(fields, body, is_whole) if method in _SENDING else ""
    return CaptureRequest(method, escape_illegal(text[:MAX_QUERY]), offset)


def read_bytes(block: RecordBlock, size: int) -> bytes:
    """Return the next `size` bytes of a block, or all that are left."""
    data = b""
    while len(data) < size and (piece := block.take(size - len(data))):
        data += piece
    return data


def escape_illegal(text: str) -> str:
    """Escape each character that XML 1.0 forbids as %XX of its UTF-8 form."""
    return _ILLEGAL.sub(lambda match: quote_plus(match[0], errors="surrogatepass"), text)


def _build_query(fields: Mapping[bytes, bytes], body: bytes, is_whole: bool) -> str:
    """Return the query of a body, at its full length."""
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
        try:
            return unquote_plus(body.decode("utf-8"))
        except UnicodeDecodeError as error:
            if not is_whole and error.end == len(body):  # a truncated character
                return unquote_plus(body[: error.start].decode("utf-8"))
            return _binary_query(body)
    if media_type.startswith("multipart/"):
        return _multipart_query(body, media_type) if is_whole else ""
    if media_type.startswith("application/json"):
        return _json_query(body) or "" if is_whole else ""
    if media_type.startswith("application/x-amf"):
        return ""
    query = _json_query(body) if is_whole and media_type.startswith("text/plain") else None
    return _binary_query(body) if query is None else query


def _binary_query(body: bytes) -> str:
    return "__wb_post_data=" + base64.b64encode(body[:MAX_QUERY]).decode("ascii")


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
    """Return the named values of a JSON text as a query; None if it cannot be read."""
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


def _values(document: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of a JSON document, each with the nearest name above it."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from _values(value, key)
    elif isinstance(document, list):
        for value in document:
            yield from _values(value, name)
    elif name:
        # As JavaScript writes it: a whole number has no fraction.
        if isinstance(document, float) and math.modf(document)[0] == 0:
            document = int(document)  # OverflowError for infinity
        yield name, document if isinstance(document, str) else json.dumps(document)


@dataclass(frozen=True, slots=True)
class Crawl:
    """What an archive file says about its crawl; None for what it does not say.

    Texts hold no character that XML 1.0 forbids.
    """

    software: str | None = None
    operator: str | None = None
    part_of: str | None = None
    description: str | None = None

    def fill_from(self, more: "Crawl") -> "Crawl":
        """Fill missing fields from another: the first record of a file has priority."""
        return Crawl(*(getattr(self, name) or getattr(more, name) for name in CRAWL_FIELDS))


def parse_crawl(block: bytes) -> Crawl | None:
    """Parse a warcinfo record or an ARC version block; None if it has no known field."""
    is_xml = b"<arcmetadata" in block
    texts: dict[str, str] = {}
    for name, value in (_ELEMENT if is_xml else _FIELD_LINE).findall(block):
        text = value.decode("utf-8", "replace")
        text = _ILLEGAL_IN_CRAWL.sub("", html.unescape(text) if is_xml else text)
        text = _SPACE.sub(" ", text).strip()[:_LONGEST_VALUE].rstrip()
        if text:
            texts.setdefault(name.decode("ascii").lower(), text)
    values = {field: texts.get(name) for field, name in CRAWL_FIELDS.items()}
    return Crawl(**values) if any(values.values()) else None
