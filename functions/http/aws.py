"""AWS gateways: where the paths of their events begin, and what Lambda accepts as an answer.

apig-wsgi turns an event into a WSGI environment, and a WSGI answer into the gateway's form. An
event comes from an HTTP API or a function's own URL (payload format 2.0), or from a REST API (1.0).
Names of stages and mappings of custom domains precede our own paths, in ways that differ.
"""

import re
from collections.abc import Mapping
from typing import Any

from functions.http import wsgi
from functions.http.http_message import Call, HttpResponse

LARGEST = 6_291_556
"""Bytes of an answer that Lambda accepts: its JSON, with the body in base64."""

_FRAME = 200
"""Bytes of that JSON besides headers and body."""
_VARIABLE = re.compile(r"\{([^{}+]*)\+?\}")
_LEAD = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9$_.+!*'()\-]+)*")
"""What may precede our own paths: valid names of stages and domain mappings."""
_ROOT_STAGE = "$default"


def weigh(response: HttpResponse) -> int:
    """Return the number of bytes that Lambda must pass on for a response."""
    headers = sum(len(name) + len(text) + 8 for name, text in response.headers.items())
    return (response.size + 2) // 3 * 4 + headers + _FRAME


def read_call(environ: Mapping[str, Any]) -> Call:
    """Return the request of an environment that apig-wsgi made of an event.

    Its base includes the stage's name or the mapping of a custom domain. Raises TypeError for an
    event that no gateway writes.
    """
    # apig-wsgi passes on what the event has, and WSGI's variables are texts (PEP 3333).
    for name, text in environ.items():
        if name.isupper() and not isinstance(text, str):
            raise TypeError(f"{name} is no text")
    event = environ["apig_wsgi.full_event"]
    context = event.get("requestContext") or {}
    if "httpMethod" in event:
        path, public, route = event["path"], context.get("path") or "", event.get("resource") or ""
    else:
        path = public = event["rawPath"]
        route = (event.get("routeKey") or "").partition(" ")[2]
    path = path or "/"
    before = _cut(path, _fill_route(route, event.get("pathParameters") or {}))
    if before is None:
        lead = f"/{context.get('stage') or _ROOT_STAGE}"
        before = lead if f"{path}/".startswith(f"{lead}/") else ""
    path = path[len(before) :] or "/"
    scheme = environ.get("HTTP_X_FORWARDED_PROTO", "").partition(",")[0].strip().lower()
    return wsgi.make_call(
        environ,
        scheme if scheme in wsgi.PORTS else "https",
        environ.get("HTTP_HOST") or context.get("domainName") or "",
        _cut(public, path) or before,
        path,
    )


def _cut(whole: str, path: str) -> str | None:
    """Return what precedes `path`; None unless it can be a stage's name or a mapping."""
    if path == "/":
        lead = whole.removesuffix("/")
    elif path and whole.endswith(path):
        lead = whole.removesuffix(path)
    else:
        return None
    return lead if _LEAD.fullmatch(lead) else None


def _fill_route(route: str, values: Mapping[str, str]) -> str:
    """Return a route with the values of its variables; "" if a value is missing."""
    if not all(values.get(name) for name in _VARIABLE.findall(route)):
        return ""
    path = _VARIABLE.sub(lambda match: values[match[1]], route)
    return path if path.startswith("/") else ""
