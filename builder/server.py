"""A local HTTP server in front of the very handler that answers on AWS."""

import base64
import errno
import logging
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from waitress.server import MultiSocketServer, create_server

from builder.errors import UsageError

Handler = Callable[[dict[str, Any]], dict[str, Any]]

_LONGEST_BODY = 1 << 20
_CONNECTIONS = 512
"""Connections that may be open at once; where there are more, the rest wait to be accepted."""

# It warns whenever a request has to wait for a thread, which is what a queue is for.
logging.getLogger("waitress.queue").setLevel(logging.ERROR)


class LocalServer:
    """A server that listens already, at `url`; `run` serves until `close`."""

    def __init__(self, handler: Handler, host: str, port: int, threads: int) -> None:
        """Listen at `host`; port 0 takes any free one. Raises UsageError if that cannot be."""
        if not 0 <= port <= 65_535:
            raise UsageError(f"port {port}: expected a number from 0 to 65535")
        self._server: Any
        self._closed = False
        try:
            self._server = create_server(
                _application(handler), host=host, port=port, threads=threads, ident="sheaf",
                max_request_body_size=_LONGEST_BODY, connection_limit=_CONNECTIONS,
                asyncore_use_poll=True,
            )  # fmt: skip
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise UsageError(
                    f"port {port} of {host} is taken: name another by --port"
                ) from error
            raise UsageError(
                f"cannot listen at {host}:{port}: {error.strerror or error}"
            ) from error
        except (ValueError, OverflowError) as error:
            raise UsageError(f"cannot listen at {host}:{port}: {error}") from error
        several = isinstance(self._server, MultiSocketServer)
        bound = self._server.effective_listen[0][1] if several else self._server.effective_port
        shown = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
        self.url = f"http://{f'[{shown}]' if ':' in shown else shown}:{bound}"

    def run(self) -> None:
        """Serve until interrupted, or closed by another thread."""
        try:
            self._server.run()
        except OSError:
            if not self._closed:  # else a socket was closed while it was waited for
                raise

    def close(self) -> None:
        """Stop listening, and end the threads that answer."""
        self._closed = True
        self._server.task_dispatcher.shutdown()
        self._server.close()


def _application(handler: Handler) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    def application(environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        answer = handler(_event(environment))
        body = answer["body"]
        data = base64.b64decode(body) if answer["isBase64Encoded"] else body.encode("utf-8")
        status = HTTPStatus(answer["statusCode"])
        start(f"{status.value} {status.phrase}", [*answer["headers"].items()])
        return [data]

    return application


def _event(environment: WSGIEnvironment) -> dict[str, Any]:
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
        "rawPath": environment.get("PATH_INFO", "/"),
        "rawQueryString": environment.get("QUERY_STRING", ""),
        "headers": headers,
        "requestContext": {"stage": "$default", "http": {"method": environment["REQUEST_METHOD"]}},
        "body": base64.b64encode(body).decode("ascii"),
        "isBase64Encoded": True,
    }
