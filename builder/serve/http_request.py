"""A request as h11 reads it: its checks, and the event that it becomes (RFC 9112)."""

import base64
from collections import defaultdict
from typing import Any
from urllib.parse import urlsplit

import h11

LONGEST_BODY = 1 << 20
"""Maximum bytes of a request's body."""
_FORWARDED = frozenset(
    f"x-forwarded-{name}".encode() for name in ("by", "for", "host", "port", "proto")
) | {b"forwarded"}
"""Headers that only a proxy may set. No proxy is trusted, so clients wrote them."""


class RefusalError(Exception):
    """A request that is answered with an HTTP error, after which the connection closes."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def check_request(request: h11.Request) -> None:
    """Raise RefusalError for an unacceptable request."""
    lengths = [value for name, value in request.headers if name == b"content-length"]
    if lengths and any(name == b"transfer-encoding" for name, _ in request.headers):
        # Two parties may disagree on where it ends: a smuggled request (RFC 9112, section 6.1).
        raise RefusalError(400, "Content-Length and Transfer-Encoding exclude each other.")
    if lengths and int(lengths[0]) > LONGEST_BODY:
        raise RefusalError(413, "The body is too large.")


def make_event(request: h11.Request, body: bytes) -> dict[str, Any]:
    """Return the request as API Gateway's HTTP API passes it (payload format 2.0)."""
    values: dict[str, list[str]] = defaultdict(list)
    for name, value in request.headers:
        if name not in _FORWARDED:
            values[name.decode("ascii")].append(value.decode("latin-1"))
    headers = {name: ", ".join(several) for name, several in values.items()}
    headers["x-forwarded-proto"] = "http"
    path, query = _split(request.target.decode("ascii"))
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {"stage": "$default", "http": {"method": request.method.decode("ascii")}},
        "body": base64.b64encode(body).decode("ascii"),
        "isBase64Encoded": True,
    }


def _split(target: str) -> tuple[str, str]:
    """Return path and query of a request's target, as the client wrote them."""
    if not target.startswith("/"):
        try:
            parts = urlsplit(target)  # RFC 9112, section 3.2.2: the absolute form
        except ValueError as error:
            raise RefusalError(400, "The address cannot be read.") from error
        target = f"{parts.path}?{parts.query}"
    path, _, query = target.partition("#")[0].partition("?")
    return "/" + path.lstrip("/"), query
