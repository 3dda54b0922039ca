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
from urllib.parse import parse_qsl, urlencode, urlsplit

HOST = "oai.archive.example.org"
FORM = "application/x-www-form-urlencoded"
_TIME = 1_795_000_000_000


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


def _body(request: Request, encoded: bool) -> tuple[str | None, bool]:
    if not request.body:
        return None, False
    if encoded:
        return base64.b64encode(request.body).decode("ascii"), True
    return request.body.decode("utf-8"), False


def http_api(request: Request, encoded: bool = True, stage: str = "$default") -> dict[str, Any]:
    """Return the event of an HTTP API: https://docs.aws.amazon.com/apigateway (format 2.0)."""
    body, is_base64 = _body(request, encoded)
    path = request.path if stage == "$default" else f"/{stage}{request.path}"
    event = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": request.query,
        "headers": request.sent,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "a1b2c3d4e5",
            "domainName": HOST,
            "domainPrefix": HOST.partition(".")[0],
            "http": {
                "method": request.method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "harvester/1",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "$default",
            "stage": stage,
            "time": "18/Nov/2026:10:26:40 +0000",
            "timeEpoch": _TIME,
        },
        "isBase64Encoded": is_base64,
    }
    if request.query:
        # Repeated ones are joined by a comma, which is why nobody should read this.
        joined: dict[str, str] = {}
        for name, value in parse_qsl(request.query, keep_blank_values=True):
            joined[name] = f"{joined[name]},{value}" if name in joined else value
        event["queryStringParameters"] = joined
    if body is not None:
        event["body"] = body
    return event


def function_url(request: Request, encoded: bool = True) -> dict[str, Any]:
    """Return the event of a function's own URL: format 2.0 as well, with a host of its own."""
    event = http_api(request, encoded)
    event["requestContext"] |= {"accountId": "anonymous", "apiId": "abcdef", "authorizer": None}
    return event


def rest_api(request: Request, encoded: bool = True, stage: str = "prod") -> dict[str, Any]:
    """Return the event of a REST API (format 1.0), under a domain of one's own."""
    body, is_base64 = _body(request, encoded)
    pairs = parse_qsl(request.query, keep_blank_values=True)
    several: dict[str, list[str]] = {}
    for name, value in pairs:
        several.setdefault(name, []).append(value)
    return {
        "resource": "/{proxy+}",
        "path": request.path,
        "httpMethod": request.method,
        "headers": {name.title(): value for name, value in request.sent.items()},
        "multiValueHeaders": {name.title(): [value] for name, value in request.sent.items()},
        "queryStringParameters": dict(pairs) or None,
        "multiValueQueryStringParameters": several or None,
        "pathParameters": {"proxy": request.path.lstrip("/")},
        "stageVariables": None,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "a1b2c3d4e5",
            "domainName": HOST,
            "domainPrefix": HOST.partition(".")[0],
            "httpMethod": request.method,
            "identity": {"sourceIp": "192.0.2.1", "userAgent": "harvester/1"},
            "path": request.path,
            "protocol": "HTTP/1.1",
            "requestId": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
            "requestTimeEpoch": _TIME,
            "resourceId": "123456",
            "resourcePath": "/{proxy+}",
            "stage": stage,
        },
        "body": body,
        "isBase64Encoded": is_base64,
    }


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
