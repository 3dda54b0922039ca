"""What strangers send to the function: protocol errors or 4xx, and nothing of the inside."""

import base64
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functions.http.wsgi import LONGEST_BODY
from tests.aws.archive import Archive
from tests.aws.request import FORM, KINDS, Answer, Request, answer_of, asked, http_api, rest_api
from tests.aws.runtime import FunctionError, Runtime, running
from tests.aws.test_answers import DC, TOKEN
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


@pytest.mark.parametrize("kind", KINDS)
def test_requests_that_are_large_or_binary(kind: str, runtime: Runtime) -> None:
    make = KINDS[kind]
    binary = bytes(range(256)) * 40
    for request in (
        Request("verb=" + "x" * 60_000),
        Request("verb=" + "x" * 400_000),
        Request("&".join(f"a{n}={n}" for n in range(20_000))),
        Request("verb=Identify" + "&verb=Identify" * 10_000),
        Request("", "POST", body=b"verb=" + b"y" * 3_000_000),
        Request("", "POST", body=binary),
        Request(
            "", "POST", headers={"content-type": "multipart/form-data; boundary=x"}, body=binary
        ),
        Request("", "POST", headers={"content-encoding": "gzip"}, body=b"\x1f\x8b\x08" + binary),
        Request("verb=Identify", "GET", body=binary),
        Request("verb=%00&%00=%00"),
        Request("verb=%ED%A0%80&x=%C0%AF"),
    ):
        answer = harmless(runtime.ask(request, make))
        is_large = len(request.body) > LONGEST_BODY
        assert answer.status == (413 if is_large else 200)
        assert is_large or request.method == "GET" or b"<error code=" in answer.plain
    for text in ("%%%", "=", "dmVyYg", "\u2603", "A" * 1_000_000):
        event = make(Request("", "POST", headers={"content-type": FORM}, body=b"x"))
        event |= {"body": text, "isBase64Encoded": True}
        answer = harmless(answer_of(runtime.invoke(json.dumps(event).encode())))
        # A gateway writes base64 only: what it cannot have written is refused as a whole.
        assert answer.status == 400 or b'<error code="bad' in answer.plain
    assert "Traceback" not in runtime.said()


def tokens(token: str) -> Iterator[str]:
    """Yield a token tampered with: each character, each length, and what it is made of."""
    for place, other in itertools.product(range(len(token)), "A_9~"):
        if token[place] != other:
            yield token[:place] + other + token[place + 1 :]
    yield from (token[:length] for length in range(1, len(token)))
    yield from (token * 2, token + "A", f" {token}", f"{token}\n", token.swapcase(), token[::-1])
    yield from ("\0", "=" * 50, "../" * 20, "0" * 10_000, base64.b64encode(b'{"a":1}').decode())


def test_a_token_that_was_tampered_with_is_refused_or_a_token(runtime: Runtime) -> None:
    """None is signed: one that is changed into another of the same list is as good as that one."""
    first = runtime.ask(asked("ListRecords", metadataPrefix=DC)).plain
    found = TOKEN.search(first)
    assert found is not None
    token = found[1].decode()
    codes: Counter[str] = Counter()
    for one in tokens(token):
        body = harmless(runtime.ask(asked("ListRecords", resumptionToken=one))).plain
        (code,) = re.findall(rb'<error code="(\w+)"', body) or [b"a page"]
        # no argument may hold a control character
        expected = b"badArgument" if {"\0", "\n"} & set(one) else b"badResumptionToken"
        assert code in (expected, b"a page"), one
        codes[code.decode()] += 1
    print(f"\n{codes}")
    assert codes["badResumptionToken"] > 0.8 * codes.total()
    assert "Traceback" not in runtime.said()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/oai/../../etc/passwd",
        "/oai/%2e%2e/sheaf.toml",
        "//oai",
        "/oai//",
        "/OAI",
        "/oai\0",
        "/oai;x",
        "/./oai",
        "/functions/oai/function.py",
        "/var/task",
        "\\oai",
        "oai",
        "*",
        "/oai/schemas/../../../functions",
        "/oai/%00",
        "/\u202e",
        "/oai%0d%0aX-Evil:%201",
        BLOCKED,
        "http://evil.example/oai",
        "/schemas/%2e%2e%2fformats.toml",
        "/" + "a/" * 5000,
    ],
)
def test_paths_lead_nowhere(kind: str, path: str, runtime: Runtime) -> None:
    answer = harmless(runtime.ask(Request("verb=Identify", path=path), KINDS[kind]))
    assert answer.status in (200, 404)
    if answer.status == 200:
        assert b"<Identify>" in answer.plain or b"<title>" in answer.plain
    assert b"root:" not in answer.plain


@pytest.mark.parametrize("kind", KINDS)
def test_headers_make_no_headers_and_no_markup(kind: str, runtime: Runtime) -> None:
    for value in (
        BLOCKED,
        "\u010d\u2603",
        "a" * 60_000,
        "gzip" * 9000,
        ", , ;q=x;;,",
        "\0",
        "*;q=9",
    ):
        for name in (
            "host",
            "accept-encoding",
            "x-forwarded-proto",
            "if-none-match",
            "origin",
            "x-forwarded-host",
            "x-forwarded-for",
            "forwarded",
            "content-type",
            "range",
            "access-control-request-headers",
            "user-agent",
            "cookie",
        ):
            for method in ("GET", "OPTIONS"):
                request = Request("verb=Identify", method, headers={name: value})
                answer = harmless(runtime.ask(request, KINDS[kind]))
                assert b"<script>" not in answer.plain
    assert "Traceback" not in runtime.said()


def test_a_host_that_is_none_is_not_repeated(runtime: Runtime) -> None:
    for host in ('evil"><x>', "evil.example/x?", "a b", "user@evil.example", "evil.example:99999"):
        body = runtime.ask(Request("verb=Identify", headers={"host": host})).plain
        assert b"evil" not in body
        assert b"a b" not in body
    arguments = {"metadataPrefix": "<x>", "identifier": '"><script>alert(1)</script>'}
    body = harmless(runtime.ask(asked("GetRecord", **arguments))).plain
    assert b"<script>" not in body


def test_the_log_has_a_line_a_request_whatever_is_sent(runtime: Runtime) -> None:
    before = len(_entries(runtime))
    sent = [BLOCKED, '"}\n{"status":1}', "\u2028\u2029", "\ud800", "x" * 5000]
    for value in sent:
        event = crafted(http_api(asked("GetRecord", metadataPrefix=DC)), "rawPath", f"/{value}")
        runtime.invoke(json.dumps(event).encode())
    entries = _entries(runtime)[before:]
    assert len(entries) == len(sent)
    assert all(json.loads(line)["status"] == 404 and len(line) < 5000 for line in entries)


def _entries(runtime: Runtime) -> list[str]:
    return [line for line in runtime.said().split("\n") if line.startswith('{"time"')]
