"""AWS gateways: events to calls, and replies to the form that gateways accept.

An event comes from an HTTP API or a function's own URL (payload format 2.0), or from a REST API
(1.0). Other events become empty requests: a field that is missing or of another type counts as
empty.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from functions.http.http_message import Call
from functions.url import authority

LARGEST = 6_291_556
"""Bytes of an answer that Lambda accepts: its JSON, with the body in base64 or escaped."""

_AS_TEXT = 1_000_000
"""Bytes up to which a body is sent as text, which JSON may treble; base64 adds a third."""
_BEGINNING = re.compile(r"[a-z0-9_\[]")
"""Valid start of a host; machine names may have underscores, though site names do not."""
_ROOT_DOT = re.compile(r"\.(?=(?::[0-9]*)?\Z)")
"""The dot behind a host's name, which marks the name as absolute."""
_LONGEST_HOST = 260
"""Maximum characters of a host and a port; names have 253 at most (RFC 1035, section 2.3.4)."""
_PORTS = {"http": ":80", "https": ":443"}
_VARIABLE = re.compile(r"\{([^{}+]*)\+?\}")
_LEAD = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9$_.+!*'()\-]+)*")
"""What may precede our own paths: valid names of stages and domain mappings."""
_ROOT_STAGE = "$default"

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """Where the events of one payload format hold the parts of a request.

    `path` is decoded or not, depending on the gateway. `public` is the path as the client sent it,
    which may have a prefix. `route` is the gateway's name for the matched path.
    """

    method: Callable[[Event], str]
    path: Callable[[Event], str]
    public: Callable[[Event], str]
    route: Callable[[Event], str]
    query: Callable[[Event], str]
    headers: Callable[[Event], Mapping[str, str]]


def read(event: object, mount: str = "") -> Call:
    """Return the call of an event. Never raises.

    The base includes any prefix of our own paths: a stage's name or the mapping of a custom domain.
    It also includes `mount`, if the path begins with it.
    """
    event = _table(event)
    kind = REST if "httpMethod" in event else HTTP
    context = _table(event.get("requestContext"))
    headers = kind.headers(event)
    path = kind.path(event) or "/"
    before = _before(path, kind.route(event), _text(context.get("stage")), mount)
    path = path[len(before) :] or "/"
    scheme = headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    scheme = scheme if scheme in _PORTS else "https"
    host = _host(headers.get("host") or _text(context.get("domainName")), scheme)
    return Call(
        method=kind.method(event).upper() or "GET",
        base=f"{scheme}://{host}{_without(kind.public(event), path) or before}",
        path=path,
        query=kind.query(event),
        headers=headers,
        body=_text(event.get("body")),
        encoded=event.get("isBase64Encoded") is True,
    )


def pack(answer: Mapping[str, Any], *, binary: bool = False) -> dict[str, Any]:
    """Return an answer of message.write in the form of all gateways, which accept only text.

    With `binary` its body need not be UTF-8.
    """
    body: bytes = answer["body"]
    encoded = _is_encoded(answer, binary)
    text = base64.b64encode(body).decode("ascii") if encoded else body.decode("utf-8")
    return {**answer, "body": text, "isBase64Encoded": encoded}


def weight(answer: Mapping[str, Any], *, binary: bool = False) -> int:
    """Return the number of bytes that Lambda must pass on for an answer, as `pack` returns it."""
    if not _is_encoded(answer, binary):
        return len(json.dumps(pack(answer)))
    bare = {**answer, "body": "", "isBase64Encoded": True}
    return len(json.dumps(bare)) + (len(answer["body"]) + 2) // 3 * 4


def _host(given: str, scheme: str) -> str:
    """Return a host in the form of a base URL, "localhost" if invalid (RFC 9110, section 7.2).

    All spellings of a host give one base URL: lower case, without a trailing dot and without the
    scheme's default port.
    """
    host = _ROOT_DOT.sub("", given.lower()).removesuffix(":")
    known = given.isascii() and len(given) <= _LONGEST_HOST and "/" not in host
    if not (known and _BEGINNING.match(host) and authority.is_endpoint(f"http://{host}")):
        return "localhost"
    return host.removesuffix(_PORTS[scheme])


def _is_encoded(answer: Mapping[str, Any], binary: bool) -> bool:
    body, headers = answer["body"], answer["headers"]
    is_image = headers.get("Content-Type", "").startswith("image/")
    coded = binary or is_image or "Content-Encoding" in headers
    return len(body) > _AS_TEXT or bool(body and coded)


def _before(path: str, route: str, stage: str, mount: str) -> str:
    """Return the prefix of a path before our own."""
    routed = _without(path, route) if route else None
    if routed is not None:
        return routed
    leads = [mount] if stage in ("", _ROOT_STAGE) else [f"/{stage}", mount]
    return next((lead for lead in leads if lead and f"{path}/".startswith(f"{lead}/")), "")


def _without(whole: str, path: str) -> str | None:
    """Return the prefix before `path`; None unless it can be a stage's name or a mapping."""
    if path == "/":
        lead = whole.removesuffix("/")
    elif whole.endswith(path):
        lead = whole.removesuffix(path)
    else:
        return None
    return lead if _LEAD.fullmatch(lead) else None


def _fill_route(route: str, event: Event) -> str:
    """Return a route with the values of its variables; "" if a value is missing."""
    values = _table(event.get("pathParameters"))
    if not all(_text(values.get(name)) for name in _VARIABLE.findall(route)):
        return ""
    filled = _VARIABLE.sub(lambda match: _text(values[match[1]]), route)
    return filled if filled.startswith("/") else ""


def _pairs(event: Event) -> list[tuple[str, str]]:
    """Return the decoded arguments of a REST API's event; those of one name are in order."""
    several = _table(event.get("multiValueQueryStringParameters"))
    once = _table(event.get("queryStringParameters"))
    return [
        (name, _text(value))
        for name, values in (several or once).items()
        for value in (values if isinstance(values, list) else [values])
    ]


def _join_headers(*tables: object) -> Mapping[str, str]:
    """Return the headers of the first non-empty table; repeated headers are joined by commas."""
    given = next(filter(None, map(_table, tables)), {})
    return {
        name.lower(): ", ".join(map(_text, value)) if isinstance(value, list) else _text(value)
        for name, value in given.items()
    }


def _http(event: Event) -> Event:
    return _table(_table(event.get("requestContext")).get("http"))


def _table(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    return {name: one for name, one in value.items() if isinstance(name, str)}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


HTTP = Kind(
    method=lambda event: _text(_http(event).get("method")),
    path=lambda event: _text(event.get("rawPath")),
    public=lambda event: _text(event.get("rawPath")),
    route=lambda event: _fill_route(_text(event.get("routeKey")).partition(" ")[2], event),
    query=lambda event: _text(event.get("rawQueryString")),
    headers=lambda event: _join_headers(event.get("headers")),
)
"""An HTTP API, or a function's own URL (payload format 2.0)."""

REST = Kind(
    method=lambda event: _text(event.get("httpMethod")),
    path=lambda event: _text(event.get("path")),
    public=lambda event: _text(_table(event.get("requestContext")).get("path")),
    route=lambda event: _fill_route(_text(event.get("resource")), event),
    # JSON texts may hold half a surrogate pair, which no encoding allows.
    query=lambda event: urlencode(_pairs(event), errors="surrogatepass"),
    headers=lambda event: _join_headers(event.get("multiValueHeaders"), event.get("headers")),
)
"""A REST API, or an HTTP API with payload format 1.0."""
