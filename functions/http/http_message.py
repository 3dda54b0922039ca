"""HTTP calls, replies and responses, independent of any server; headers for caches and CORS.

Caching: RFC 9110, sections 8.8.3 (ETag) and 13.1.2 (If-None-Match); RFC 9111, section 5.2.2, and
RFC 8246. CORS: the WHATWG's Fetch standard, section 3.2. Harvesters in web pages of other sites
may send requests and read every answer; nothing here depends on the client.
"""

import gzip
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

from functions.snapshot.errors import SheafError

REVALIDATED = "no-cache"
"""May be stored, but must be revalidated before each use."""

UNKEPT = "no-store"

PAGES: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "strict-origin-when-cross-origin",
}
"""Headers of every page for people (CSP Level 3)."""

_DATE = b"<responseDate>"
_DATE_LENGTH = len("YYYY-MM-DDThh:mm:ssZ")
_TAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')
CORS = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "ETag, Retry-After"}
"""Headers of every answer."""

_DAY = "86400"
IN_PATH = "-._~!$'()*+,;=:@"
"""Characters that need no escape in a segment of a path (RFC 3986, 3.3)."""
OAI_PATH = "/oai"
FORM = "application/x-www-form-urlencoded"
_LONGEST = 65_536
_SHOWN = 80
_GZIP_LEVEL = 3
"""A page of records takes 2.9 ms and 97 KB; at level 1 2.8 and 103, at level 4 4.6 and 90."""
_SMALLEST = 512
"""Bytes from which compression is worthwhile: a smaller answer fits in one packet anyway."""
_LEAST = 0.001
"""The least weight that makes a coding acceptable."""
_QUALITY = re.compile(r"q\s*=\s*(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")


def document_digest(document: bytes) -> str:
    """Return a digest that ignores the responseDate of a document."""
    # The first match is the element itself: client input is echoed behind it.
    start = document.find(_DATE)
    end = start + len(_DATE) + _DATE_LENGTH
    digest = hashlib.sha256(memoryview(document)[: max(start, 0)])
    digest.update(memoryview(document)[end if start >= 0 else 0 :])
    return digest.hexdigest()[:32]


def cache_control(seconds: int, *, pinned: bool) -> str:
    """Return the Cache-Control of a document; a pinned one may be stored for `seconds`.

    Then caches must revalidate: no cache may serve it stale, not even while disconnected.
    """
    if not (pinned and seconds):
        return REVALIDATED
    return f"public, max-age={seconds}, must-revalidate, immutable"


def withdrawable_control(seconds: int) -> str:
    """Return the Cache-Control of content that never changes but may be taken down.

    Unlike immutable content it must be revalidated after `seconds`.
    """
    return f"public, max-age={seconds}, must-revalidate" if seconds else REVALIDATED


def is_held(headers: Mapping[str, str], tag: str) -> bool:
    """Return whether the client holds this document already (If-None-Match, weak comparison)."""
    tags = headers.get("if-none-match", "")
    return tags.strip() == "*" or tag.removeprefix("W/") in _TAG.findall(tags)


def preflight(allowed: Sequence[str]) -> dict[str, str]:
    """Return the headers of an answer to OPTIONS; `allowed` are the permitted methods."""
    methods = ", ".join(allowed)
    return {
        "Allow": methods,
        "Access-Control-Allow-Methods": methods,
        # The names are for clients that do not know the asterisk.
        "Access-Control-Allow-Headers": "Content-Type, If-None-Match, *",
        "Access-Control-Max-Age": _DAY,
    }


def show(text: str) -> str:
    """Return client input in quotes, cut to a length that suits a message."""
    return f'"{text}"' if len(text) <= _SHOWN else f'"{text[:_SHOWN]}..."'


class FormError(SheafError):
    """A request that is not a valid form; the text is a sentence for the client."""


@dataclass(frozen=True)
class Call:
    """An HTTP request: `base` is scheme, host and any prefix, `path` lies below it.

    `path` and `query` are as the client wrote them. Names in `headers` are in lower case.
    """

    method: str
    base: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def url(self) -> str:
        """The address without its query."""
        return self.base + self.path

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Decoded keys and values (OAI-PMH 2.0, section 3.1.1).

        Raises FormError if the request is not a valid form.
        """
        texts = [self.query]
        if self.method == "POST" and self.body:
            if self.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
                raise FormError(f"The body of a POST must be {FORM}.")
            texts.append(self.body.decode("utf-8", "replace"))
        if sum(map(len, texts)) > _LONGEST:
            raise FormError(f"The request is longer than {_LONGEST} characters.")
        # Bytes that are not UTF-8 become U+FFFD, which is invalid in every argument.
        return [
            pair
            for text in texts
            for pair in parse_qsl(text, keep_blank_values=True, errors="replace")
        ]

    def wants_gzip(self, size: int) -> bool:
        """Return whether to compress `size` bytes for the client (RFC 9110, section 12.5.3)."""
        wanted: dict[str, float] = {}
        for part in self.headers.get("accept-encoding", "").split(","):
            name, _, parameters = part.partition(";")
            quality = _QUALITY.fullmatch(parameters.strip().lower())
            # A malformed weight counts as 0.
            weight = float(quality.group(1)) if quality else 0.0 if parameters.strip() else 1.0
            wanted[name.strip().lower()] = weight
        gzipped = wanted.get("gzip", wanted.get("x-gzip", wanted.get("*", 0.0)))
        # Without an explicit weight, uncompressed content is acceptable, but as the last choice.
        plain = wanted.get("identity", wanted.get("*", _LEAST))
        return 0 < gzipped >= plain and (size >= _SMALLEST or plain == 0)


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer. `body` is UTF-8, unless `type` is that of an image.

    `digest` identifies the state of the document ("": it has no ETag). `log_fields` are for the
    access log.
    """

    status: int
    type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""
    log_fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What a server sends: `body` is bytes, a file from its position on, or pieces with `close`.

    Pieces raise SheafError if they cannot be completed. `log_fields` are for the access log.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | Iterable[bytes] = b""
    log_fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of bytes that the body has, or that the headers announce."""
        if isinstance(self.body, bytes):
            return len(self.body)
        return int(self.headers.get("Content-Length", 0))


def compress(body: bytes) -> bytes:
    """Compress a body with gzip; without a time stamp, equal bodies give equal bytes."""
    return gzip.compress(body, _GZIP_LEVEL, mtime=0)


def write(reply: Reply, call: Call, compress: Callable[[bytes], bytes] = compress) -> HttpResponse:
    """Return the response with the reply, compressed by `compress` if the client accepts it.

    If the client already holds the document, the response is 304 without a body.
    """
    body, status = reply.body, reply.status
    compressed = call.wants_gzip(len(body))
    headers = {"Cache-Control": REVALIDATED, "Vary": "Accept-Encoding", **CORS, **reply.headers}
    if reply.digest:
        # Weak, because the responseDate may differ; each coding has its own tag for caches.
        headers["ETag"] = f'W/"{reply.digest}{"-gzip" if compressed else ""}"'
        if call.method in ("GET", "HEAD") and is_held(call.headers, headers["ETag"]):
            status = 304
    if status in (204, 304):
        return HttpResponse(status, headers, b"", reply.log_fields)
    is_image = reply.type.startswith("image/")
    headers["Content-Type"] = reply.type if is_image else f"{reply.type}; charset=utf-8"
    if compressed:
        body = compress(body)
        headers["Content-Encoding"] = "gzip"
    headers["Content-Length"] = str(len(body))
    return HttpResponse(status, headers, b"" if call.method == "HEAD" else body, reply.log_fields)


def unavailable(message: str, seconds: int) -> Reply:
    """Return a 503 answer with a Retry-After header."""
    headers = {"Retry-After": str(seconds), "Cache-Control": UNKEPT}
    return Reply(503, "text/plain", f"{message}\n".encode(), headers)
