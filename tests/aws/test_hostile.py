"""What strangers send to the function: protocol errors or 4xx, and nothing of the inside.

tests/functions/oai/test_gateway.py has paths, headers, bodies and tokens, for each kind of event.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.aws.archive import Archive
from tests.aws.request import Answer, Request, answer_of, asked, http_api, rest_api
from tests.aws.runtime import FunctionError, Runtime, running
from tests.aws.test_answers import DC
from tests.aws.test_limits import LEAKS, MOST
from tests.functions.oai.validity import valid

BLOCKED = "\r\nX-Evil: 1\r\n\r\n<script>"


def harmless(answer: Answer) -> Answer:
    """Hold that an answer is a document of the protocol or a plain refusal, and tells nothing."""
    assert answer.status in (200, 204, 304, 400, 404, 405, 413), answer
    kind = answer.headers.get("content-type", "")
    if kind.startswith("text/xml"):
        valid(answer.plain)
    assert not LEAKS.search(answer.plain), answer.plain[:500]
    assert "x-evil" not in answer.headers
    return answer


def crafted(event: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Return an event with another value at a dotted path."""
    found: dict[str, Any] = json.loads(json.dumps(event))
    at = found
    *above, last = path.split(".")
    for name in above:
        at = at[name]
    at[last] = value
    return found


PLACES = {
    http_api: [
        "rawPath",
        "rawQueryString",
        "headers",
        "headers.host",
        "headers.accept-encoding",
        "headers.x-forwarded-proto",
        "headers.if-none-match",
        "headers.content-type",
        "requestContext",
        "requestContext.http",
        "requestContext.http.method",
        "requestContext.stage",
        "requestContext.domainName",
        "body",
        "isBase64Encoded",
        "queryStringParameters",
        "version",
        "cookies",
        "pathParameters",
        "routeKey",
    ],
    rest_api: [
        "path",
        "httpMethod",
        "headers",
        "multiValueHeaders",
        "queryStringParameters",
        "multiValueQueryStringParameters",
        "requestContext",
        "requestContext.stage",
        "requestContext.path",
        "resource",
        "pathParameters",
        "body",
        "isBase64Encoded",
    ],
}
VALUES: list[Any] = [
    None,
    "",
    0,
    -1,
    1e308,
    True,
    [],
    {},
    [None],
    {"": None},
    {"a": {"b": ["c"]}},
    "\0",
    BLOCKED,
    "/../../etc/passwd",
    "%00%ff%fe",
    "\ud800",
    "\u202e\u2603",
    "A" * 100_000,
    "{{7*7}}{%x%}${7}",
    "'; DROP TABLE records; --",
    "<!DOCTYPE x [<!ENTITY a 'b'>]>",
    [["verb", "Identify"]],
    {"verb": ["Identify", None, {}]},
    {"host": "evil\r\nX-Evil: 1"},
    {"host": ["a", "b"]},
]


@pytest.mark.parametrize("kind", PLACES)
def test_an_event_may_hold_anything_anywhere(kind: Any, runtime: Runtime) -> None:
    base = kind(asked("GetRecord", "POST", metadataPrefix=DC, identifier="x"))
    count = 0
    for path, value in itertools.product(PLACES[kind], VALUES):
        event = crafted(base, path, value)
        harmless(answer_of(runtime.invoke(json.dumps(event).encode())))
        count += 1
    print(f"\n{count} events")
    assert "Traceback" not in runtime.said()


@pytest.mark.parametrize(
    "payload", [b"null", b"[]", b"{}", b"1", b'"x"', b"true", b'{"a":' * 90 + b"1" + b"}" * 90]
)
def test_what_is_no_event_is_answered(payload: bytes, runtime: Runtime) -> None:
    harmless(answer_of(runtime.invoke(payload)))
    assert "Traceback" not in runtime.said()


def test_what_is_no_json_does_not_end_the_function(
    archive: Archive, artefact: Path, tmp_path: Path
) -> None:
    """Nor what is larger than six megabytes, which the emulator cuts off.

    Lambda's own front refuses both. Here they reach the loop of awslambdaric, which says so in the
    log: the function sees nothing of them.
    """
    large = http_api(Request("", "POST", body=b"verb=" + b"x" * 5_000_000))
    assert len(json.dumps(large)) > MOST
    environment = {**archive.environment, "SHEAF_STORE_URI": archive.store}
    with running(artefact, environment, tmp_path) as runtime:
        for payload in (b"{", b"\xff\xfe\x00", b'{"a":' * 5000, json.dumps(large).encode()):
            with pytest.raises(FunctionError):
                runtime.invoke(payload)
            assert runtime.ask(asked("Identify")).status == 200
