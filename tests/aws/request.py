"""A request to the repository, put in each way in which it may reach the function, and to a server.

AWS: API Gateway's HTTP API (payload format 2.0), its REST API (format 1.0), and function URLs.
"""

import base64
import gzip
import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.functions.oai import gateways

HOST = "oai.archive.example.org"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Request:
    """What a client asks; `headers` are beside those that every client sends."""

    query: str = ""
    method: str = "GET"
    path: str = "/oai"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def sent(self) -> dict[str, str]:
        """The headers as they reach who answers."""
        found = {"host": HOST, "x-forwarded-proto": "http", "user-agent": "harvester/1"}
        if self.body:
            found |= {"content-type": FORM, "content-length": str(len(self.body))}
        return {**found, **self.headers}


def asked(verb: str, method: str = "GET", gzipped: bool = False, **arguments: str) -> Request:
    """Return a request of the protocol; `from_` stands for from."""
    pairs = [("verb", verb), *((name.rstrip("_"), value) for name, value in arguments.items())]
    headers = {"accept-encoding": "gzip"} if gzipped else {}
    text = urlencode(pairs)
    if method == "POST":
        return Request("", "POST", "/oai", headers, text.encode())
    return Request(text, method, "/oai", headers)


@dataclass(frozen=True)
class Answer:
    """What the client gets. `headers` have names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def plain(self) -> bytes:
        """The body without its content coding."""
        coded = self.body and self.headers.get("content-encoding") == "gzip"
        return gzip.decompress(self.body) if coded else self.body


def http_api(request: Request, encoded: bool = True, stage: str = "$default") -> dict[str, Any]:
    """Return the event of an HTTP API."""
    before = "" if stage == "$default" else f"/{stage}"
    return _coded(gateways.http(*_parts(request), stage=stage, before=before), encoded)


def function_url(request: Request, encoded: bool = True) -> dict[str, Any]:
    """Return the event of a function's own URL."""
    return _coded(gateways.url(*_parts(request)), encoded)


def rest_api(request: Request, encoded: bool = True, stage: str = "prod") -> dict[str, Any]:
    """Return the event of a REST API, under a domain of one's own."""
    return _coded(gateways.rest(*_parts(request), stage=stage, public=""), encoded)


def _parts(request: Request) -> tuple[str, str, str, dict[str, str], bytes | None]:
    return request.query, request.method, request.path, request.sent, request.body or None


def _coded(event: dict[str, Any], encoded: bool) -> dict[str, Any]:
    """Return an event with its body in base64, or else as text."""
    if event.get("body") is not None and not encoded:
        event |= {"body": base64.b64decode(event["body"]).decode(), "isBase64Encoded": False}
    return event


Kind = Callable[..., dict[str, Any]]
KINDS: dict[str, Kind] = {"http": http_api, "rest": rest_api, "url": function_url}


def answer_of(reply: Mapping[str, Any]) -> Answer:
    """Return what API Gateway makes of a function's reply. AssertionError for what it refuses.

    It answers 500 and 502 to a reply that is not of this form.
    """
    assert isinstance(reply, dict), reply
    assert set(reply) <= {
        "statusCode",
        "headers",
        "multiValueHeaders",
        "cookies",
        "body",
        "isBase64Encoded",
    }, sorted(reply)
    assert isinstance(reply["statusCode"], int)
    several = reply.get("multiValueHeaders", {})  # what a REST API takes
    headers = reply.get("headers") or {name: texts[-1] for name, texts in several.items()}
    assert all(isinstance(k, str) and isinstance(v, str) for k, v in headers.items()), headers
    assert not any(c in v for v in headers.values() for c in "\r\n\0"), headers
    assert isinstance(reply["body"], str)
    text = reply["body"]
    body = base64.b64decode(text, validate=True) if reply["isBase64Encoded"] else text.encode()
    return Answer(reply["statusCode"], {k.lower(): v for k, v in headers.items()}, body)


def over_http(url: str, request: Request) -> Answer:
    """Return what a server at `url` answers."""
    target = request.path + (f"?{request.query}" if request.query else "")
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in request.sent.items():
            connection.putheader(name, value)
        connection.endheaders(request.body or None)
        reply = connection.getresponse()
        headers = {name.lower(): value for name, value in reply.getheaders()}
        return Answer(reply.status, headers, reply.read())
    finally:
        connection.close()


def dumped(event: Mapping[str, Any]) -> bytes:
    """Return an event as the runtime gets it."""
    return json.dumps(event).encode()
