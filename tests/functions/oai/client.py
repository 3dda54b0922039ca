"""A harvester's side: asks an Application by events, and checks every answer's validity.

Events become requests as on Lambda (functions.http.aws).
"""

import base64
import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from apig_wsgi import get_environ_v1, get_environ_v2
from lxml import etree

from functions.config import configuration
from functions.config.configuration import Configuration
from functions.http import aws, wsgi
from functions.http.http_message import Call
from functions.oai.application import Application, OaiParts, PageService
from functions.reading.repository import Repository
from functions.site.site import make_site
from tests.functions.oai.validity import OAI, codes, valid

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
CLIENT = {"protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"}
BASE = "https://oai.example.org/oai"


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime = START):
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


def configured(**values: Any) -> Configuration:
    """Return the defaults with `pages_records=5` for pages.records and so on."""
    defaults = dict(configuration.parse("", {}).values)
    return Configuration(
        {**defaults, **{name.replace("_", ".", 1): value for name, value in values.items()}}
    )


def event(
    query: str = "",
    method: str = "GET",
    path: str = "/oai",
    headers: Mapping[str, str] | None = None,
    body: str | None = None,
    encoded: bool = False,
    stage: str = "$default",
) -> dict[str, Any]:
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {"host": "oai.example.org", "x-forwarded-proto": "https", **(headers or {})},
        "requestContext": {"http": {"method": method, "path": path, **CLIENT}, "stage": stage},
        "body": body,
        "isBase64Encoded": encoded,
    }


def call_of(event: dict[str, Any], mount: str = "") -> Call:
    """Return the request of an event."""
    if "httpMethod" in event:
        environ = get_environ_v1(event, None, True)
    else:
        context = event.get("requestContext") or {}
        http = {"method": "GET", **CLIENT, **context.get("http", {})}
        whole = {"rawQueryString": "", "headers": {}, **event}
        environ = get_environ_v2({**whole, "requestContext": {**context, "http": http}}, None)
    return wsgi.mount_call(aws.read_call(environ), mount)


def answer(
    application: Any, event: dict[str, Any], seconds: float | None = None, request: str = ""
) -> dict[str, Any]:
    """Return the answer to an event, with its body as the application has it."""
    response = application.answer(call_of(event, application.mount), seconds, request)
    return {"statusCode": response.status, "headers": response.headers, "body": response.body}


def respond(application: Any, event: dict[str, Any], *args: Any) -> dict[str, Any]:
    """Return the answer to an event in the gateway's form: coded bodies are in base64."""
    reply = answer(application, event, *args)
    body, headers = reply["body"], reply["headers"]
    is_coded = "Content-Encoding" in headers or headers.get("Content-Type", "")[:6] == "image/"
    encoded = bool(body) and is_coded
    text = base64.b64encode(body).decode() if encoded else body.decode()
    return {**reply, "body": text, "isBase64Encoded": encoded}


def content(reply: Mapping[str, Any]) -> bytes:
    """Return the body of a reply as the protocol's other side sees it."""
    body = reply["body"].encode()
    if reply["isBase64Encoded"]:
        body = base64.b64decode(body)
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


@dataclass(frozen=True)
class Page:
    """A page of a list, or the error in its place."""

    root: etree._Element

    @property
    def codes(self) -> list[str]:
        return codes(self.root)

    @property
    def response_date(self) -> str:
        return str(self.root.findtext(f"{OAI}responseDate"))

    @property
    def request(self) -> dict[str, str]:
        element = self.root.find(f"{OAI}request")
        assert element is not None
        return {str(k): str(v) for k, v in element.attrib.items()}

    @property
    def token(self) -> etree._Element | None:
        return next(self.root.iter(f"{OAI}resumptionToken"), None)

    @property
    def headers(self) -> list[tuple[str, bool]]:
        return [
            (str(h.findtext(f"{OAI}identifier")), h.get("status") == "deleted")
            for h in self.root.iter(f"{OAI}header")
        ]

    @property
    def identifiers(self) -> list[str]:
        return [name for name, _ in self.headers]

    @property
    def next(self) -> str:
        return "" if self.token is None else self.token.text or ""

    def text(self, name: str) -> list[str]:
        return [e.text or "" for e in self.root.iter(OAI + name)]


class Client:
    """Asks one application."""

    def __init__(
        self,
        repository: Repository,
        clock: Clock | None = None,
        pages: Callable[[OaiParts], PageService] = make_site,
        **settings: Any,
    ) -> None:
        self.clock = clock or Clock()
        self.application = Application(repository, configured(**settings), self.clock, pages=pages)

    def raw(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return respond(self.application, event(*args, **kwargs))

    def get(self, verb: str | None = None, /, **arguments: str) -> Page:
        """Ask by GET; `from_` stands for from."""
        pairs = [("verb", verb)] if verb is not None else []
        return self.ask([*pairs, *((k.rstrip("_"), v) for k, v in arguments.items())])

    def ask(self, pairs: Iterable[tuple[str, str]]) -> Page:
        reply = self.raw(urlencode(list(pairs)))
        assert reply["statusCode"] == 200, reply
        return Page(valid(content(reply)))

    def pages(self, verb: str = "ListRecords", /, **arguments: str) -> Iterator[Page]:
        """Yield the pages of a list, an error in place of the first one included."""
        page = self.get(verb, **arguments)
        yield page
        while page.next:
            page = self.get(verb, resumptionToken=page.next)
            yield page

    def listed(self, verb: str = "ListRecords", /, **arguments: str) -> list[tuple[str, bool]]:
        arguments.setdefault("metadataPrefix", "oai_dc")
        return [header for page in self.pages(verb, **arguments) for header in page.headers]
