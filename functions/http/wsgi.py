"""The seam to every server: WSGI (PEP 3333) on one side, a Call and an HttpResponse on the other.

`sheaf serve` runs it on gunicorn, Lambda by apig-wsgi. Forwarded headers are not trusted: clients
can write them, and `repository.base_url` says what a proxy's clients see.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from io import IOBase
from typing import Any
from urllib.parse import quote, urlsplit

from functions.http.http_message import IN_PATH, UNKEPT, Call, HttpResponse
from functions.snapshot import authority

LONGEST_BODY = 1 << 20
"""Maximum bytes of a request's body."""
PORTS = {"http": ":80", "https": ":443"}
_BEGINNING = re.compile(r"[a-z0-9_\[]")
"""Valid start of a host; machine names may have underscores, though site names do not."""
_ROOT_DOT = re.compile(r"\.(?=(?::[0-9]*)?\Z)")
"""The dot behind a host's name, which marks the name as absolute."""
_LONGEST_HOST = 260
"""Maximum characters of a host and a port; names have 253 at most (RFC 1035, section 2.3.4)."""
_PIECE = 1 << 16
"""Bytes of a body that a server sends at once: a slow client has its time for each piece."""

Environ = Mapping[str, Any]
StartResponse = Callable[..., object]
WsgiApplication = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class RequestError(Exception):
    """A request that is refused with `status`; the text is a sentence for the client."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def make_application(answer: Callable[[Call], HttpResponse], mount: str = "") -> WsgiApplication:
    """Return the WSGI application that answers by `answer`, also below the path `mount`."""

    def application(environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        try:
            response = answer(mount_call(read_call(environ), mount))
        except RequestError as error:
            text = f"{error}\n".encode()
            headers = {"Content-Type": "text/plain", "Cache-Control": UNKEPT}
            headers["Content-Length"] = str(len(text))
            body = b"" if environ["REQUEST_METHOD"] == "HEAD" else text
            response = HttpResponse(error.status, headers, body)
        return send(response, environ, start)

    return application


def send(response: HttpResponse, environ: Environ, start: StartResponse) -> Iterable[bytes]:
    """Begin a response, and return its body as WSGI has it."""
    start(f"{response.status} {HTTPStatus(response.status).phrase}", [*response.headers.items()])
    body = response.body
    if isinstance(body, bytes):
        view = memoryview(body)
        starts = range(0, len(body), _PIECE)
        return [body] if len(body) <= _PIECE else (bytes(view[i : i + _PIECE]) for i in starts)
    if isinstance(body, IOBase) and "wsgi.file_wrapper" in environ:
        pieces: Iterable[bytes] = environ["wsgi.file_wrapper"](body)
        return pieces
    return body


def read_call(environ: Environ) -> Call:
    """Return the request of a WSGI environment. Raises RequestError.

    Its path is as the client wrote it if the server tells that (RAW_URI, REQUEST_URI). A target in
    absolute form has its own authority, which counts instead of Host (RFC 9112, section 3.2.2).
    """
    host = environ.get("HTTP_HOST")
    if environ.get("SERVER_PROTOCOL") == "HTTP/1.1" and (host is None or "," in host):
        raise RequestError(400, "A request names one host (RFC 9112, section 3.2).")
    target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    if target is None:
        target = quote(environ.get("PATH_INFO", "").encode("latin-1"), safe=f"{IN_PATH}/%")
    if not target.startswith("/") and target != "*":
        try:
            parts = urlsplit(target)
        except ValueError as error:
            raise RequestError(400, "The address cannot be read.") from error
        if parts.netloc:
            host = parts.netloc.rpartition("@")[2]
        target = parts.path
    path = target.partition("#")[0].partition("?")[0]
    if path != "*":
        path = "/" + path.lstrip("/")
    prefix = environ.get("SCRIPT_NAME", "")
    path = path.removeprefix(prefix) if f"{path}/".startswith(f"{prefix}/") else path
    return make_call(environ, environ["wsgi.url_scheme"], host or "", prefix, path or "/")


def make_call(environ: Environ, scheme: str, host: str, prefix: str, path: str) -> Call:
    """Return the call with method, query, headers and body of the environment.

    `prefix` belongs to its base. The body is read, so this can be done once. Raises RequestError.
    """
    headers = {
        name[5:].replace("_", "-").lower(): text
        for name, text in environ.items()
        if name.startswith("HTTP_")
    }
    if "CONTENT_TYPE" in environ:
        headers["content-type"] = environ["CONTENT_TYPE"]
    return Call(
        method=environ["REQUEST_METHOD"].upper() or "GET",
        base=f"{scheme}://{_normalise_host(host, scheme)}{prefix}",
        path=path,
        query=environ.get("QUERY_STRING", ""),
        headers=headers,
        body=_read_body(environ),
    )


def mount_call(call: Call, mount: str) -> Call:
    """Return the call with the path `mount` as a part of its base, if its path begins with it."""
    if not mount or not f"{call.path}/".startswith(f"{mount}/"):
        return call
    return replace(call, base=call.base + mount, path=call.path[len(mount) :] or "/")


def _read_body(environ: Environ) -> bytes:
    """Return the request's body. Raises RequestError if it is too large."""
    declared = environ.get("CONTENT_LENGTH") or "0"
    if not declared.isdecimal() or int(declared) > LONGEST_BODY:
        raise RequestError(413, "The body is too large.")
    if declared == "0" and "HTTP_TRANSFER_ENCODING" not in environ:
        return b""
    # A body in chunks has no declared length; servers that do not end the stream declare one.
    most = int(declared) or LONGEST_BODY + 1
    body: bytes = environ["wsgi.input"].read(most)
    if len(body) > LONGEST_BODY:
        raise RequestError(413, "The body is too large.")
    return body


def _normalise_host(text: str, scheme: str) -> str:
    """Return a host in the form of a base URL, "localhost" if invalid (RFC 9110, section 7.2).

    All spellings of a host give one base URL: lower case, without a trailing dot and without the
    scheme's default port.
    """
    host = _ROOT_DOT.sub("", text.lower()).removesuffix(":")
    is_plain = text.isascii() and len(text) <= _LONGEST_HOST and "/" not in host
    if not (is_plain and _BEGINNING.match(host) and authority.is_endpoint(f"http://{host}")):
        return "localhost"
    return host.removesuffix(PORTS[scheme])
