"""Events as each gateway writes them for the same request, after AWS's documentation."""

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

CLIENT = {"protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"}
HOST = "oai.example.org"
HEADERS = {"host": HOST, "x-forwarded-proto": "https"}


def http(
    query: str = "",
    method: str = "GET",
    path: str = "/oai",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    stage: str = "$default",
    before: str = "",
    route: str = "$default",
) -> dict[str, Any]:
    """Return an HTTP API's event; `before` is what comes before the path as the API knows it."""
    given = {**HEADERS, **(headers or {})}
    return {
        "version": "2.0",
        "routeKey": route,
        "rawPath": before + path,
        "rawQueryString": query,
        "cookies": ["a=b", "c=d"],
        "headers": given,
        "queryStringParameters": dict(parse_qsl(query)),
        **({"pathParameters": {"proxy": path[1:]}} if "{proxy+}" in route else {}),
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api-id",
            "domainName": given["host"],
            "http": {"method": method, "path": before + path, **CLIENT},
            "requestId": "id",
            "routeKey": route,
            "stage": stage,
        },
        **_body(body),
    }


def url(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return the event of a function's own URL."""
    event = http(*args, **kwargs)
    event["requestContext"] |= {"apiId": "url-id", "authentication": None, "authorizer": None}
    event["requestContext"]["domainName"] = "url-id.lambda-url.eu-central-1.on.aws"
    return event


def rest(
    query: str = "",
    method: str = "GET",
    path: str = "/oai",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    stage: str = "prod",
    before: str = "",
    public: str | None = None,
    route: str = "/{proxy+}",
) -> dict[str, Any]:
    """Return a REST API's event; `public` is what the client wrote before the path."""
    given = {k.title(): v for k, v in {**HEADERS, **(headers or {})}.items()}
    several: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True, errors="replace"):
        several.setdefault(name, []).append(value)
    public = f"/{stage}" if public is None else public
    return {
        "resource": route if path != "/" else "/",
        "path": before + path,
        "httpMethod": method,
        "headers": given,
        "multiValueHeaders": {k: [v] for k, v in given.items()},
        "queryStringParameters": {k: v[-1] for k, v in several.items()} or None,
        "multiValueQueryStringParameters": several or None,
        "pathParameters": {"proxy": unquote(path[1:])} if path != "/" else None,
        "stageVariables": None,
        "requestContext": {
            "resourcePath": route,
            "httpMethod": method,
            "path": public + path,
            "stage": stage,
            "domainName": HOST,
            "requestId": "id",
        },
        **({"body": None, "isBase64Encoded": False} if body is None else _body(body)),
    }


def _body(body: bytes | None) -> dict[str, Any]:
    if body is None:
        return {"isBase64Encoded": False}
    return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}


KINDS = {"http": http, "url": url, "rest": rest}


def received(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return Lambda's answer with names of headers as they were sent."""
    several = answer.get("multiValueHeaders", {})
    sent = answer.get("headers") or {name: texts[-1] for name, texts in several.items()}
    headers = {name.title().replace("Etag", "ETag"): text for name, text in sent.items()}
    return {**answer, "headers": headers}
