"""Gateways: the same request by each gives the same answer, and nothing that comes breaks one."""

import base64
import json
from typing import Any
from urllib.robotparser import RobotFileParser

import pytest
from apig_wsgi import make_lambda_handler

from functions.http import aws, wsgi
from functions.http.http_message import HttpResponse
from tests.functions.oai import gateways
from tests.functions.oai.client import Client, Page, content, respond
from tests.functions.oai.conftest import ten_captures
from tests.functions.oai.gateways import KINDS, http, rest, url
from tests.functions.oai.validity import valid

pytestmark = pytest.mark.shared(2)

FORM = {"content-type": "application/x-www-form-urlencoded"}
LIST = "verb=ListRecords&metadataPrefix=oai_dc&set=mime:text"


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(ten_captures())


def page(reply: dict[str, Any]) -> Page:
    assert reply["statusCode"] == 200
    return Page(valid(content(reply)))


def in_path(reply: dict[str, Any], path: str) -> dict[str, Any]:
    """Return a reply as if it had come at another path."""
    body = content(reply).replace(f"{gateways.HOST}{path}".encode(), gateways.HOST.encode())
    body = body.replace(f'="{path}/'.encode(), b'="/')  # links of pages
    return {**reply, "body": body, "headers": dict.fromkeys(reply["headers"])}


@pytest.mark.parametrize(
    ("query", "method", "body"),
    [
        ("verb=Identify", "GET", None),
        (LIST, "GET", None),
        (LIST, "HEAD", None),
        ("verb=Identify", "OPTIONS", None),
        ("verb=Identify", "PUT", None),
        ("verb=Identify&verb=Identify", "GET", None),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=x:%C5%99%2B" + "y" * 500, "GET", None),
        ("", "POST", LIST.encode()),
        ("", "POST", b"verb=Identify&x=%ff\xff"),
        ("verb=Identify", "POST", b""),
    ],
)
@pytest.mark.parametrize("accepted", ["", "gzip"])
@pytest.mark.parametrize("path", ["/oai", "/", "/schema/capture.xsd", "/nowhere"])
def test_every_kind_gives_the_same_answer(client, query, method, body, accepted, path):
    headers = {**FORM, "accept-encoding": accepted}
    of_url, of_http, of_rest = (
        respond(client.application, kind(query, method, path, headers, body))
        for kind in (url, http, rest)
    )
    assert of_url == of_http
    assert in_path(of_rest, "/prod") == in_path(of_http, "")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    ("query", "codes"),
    [
        ("verb=ListRecords&metadataPrefix=oai_dc&metadataPrefix=oai_dc", ["badArgument"]),
        ("verb=Identify&verb=Identify", ["badVerb"]),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=", ["badArgument"]),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:example.org:01", []),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=a%20%25b%5B", ["badArgument"]),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=x:a%2Bb%26c%3Dd", ["idDoesNotExist"]),
        ("verb", ["badVerb"]),
    ],
)
def test_repeated_empty_and_escaped_arguments(client, kind, query, codes):
    answer = page(respond(client.application, kind(query)))
    assert answer.codes == codes
    if codes not in (["badArgument"], ["badVerb"]):
        assert answer.request["identifier"] in ("oai:example.org:01", "x:a+b&c=d")


def test_a_rest_api_that_tells_of_each_argument_once(client):
    event = rest(LIST)
    del event["multiValueQueryStringParameters"], event["multiValueHeaders"]
    assert (
        page(respond(client.application, event)).headers
        == page(respond(client.application, http(LIST))).headers
    )


def test_a_header_that_a_rest_api_has_twice(client):
    event = rest("verb=Identify")
    event["multiValueHeaders"]["Accept-Encoding"] = ["br;q=1.0", "gzip"]
    assert "Content-Encoding" in respond(client.application, event)["headers"]
    event["multiValueHeaders"]["Host"] = ["a.cz", "b.cz"]
    assert page(respond(client.application, event)).text("baseURL") == [
        "https://localhost/prod/oai"
    ]


@pytest.mark.parametrize(
    ("event", "base"),
    [
        (http("verb=Identify"), "https://oai.example.org/oai"),
        (http("verb=Identify", stage="prod", before="/prod"), "https://oai.example.org/prod/oai"),
        # A domain of one's own: its mapping stays in the path, the stage's name does not come.
        (http("verb=Identify", stage="prod"), "https://oai.example.org/oai"),
        (
            http("verb=Identify", stage="prod", before="/meta/v1", route="ANY /{proxy+}"),
            "https://oai.example.org/meta/v1/oai",
        ),
        (
            http("verb=Identify", stage="prod", before="/meta", route="GET /oai"),
            "https://oai.example.org/meta/oai",
        ),
        (url("verb=Identify"), "https://oai.example.org/oai"),
        (
            url("verb=Identify", headers={"host": ""}),
            "https://url-id.lambda-url.eu-central-1.on.aws/oai",
        ),
        (rest("verb=Identify"), "https://oai.example.org/prod/oai"),
        (rest("verb=Identify", public=""), "https://oai.example.org/oai"),
        (rest("verb=Identify", route="/oai"), "https://oai.example.org/prod/oai"),
        (rest("verb=Identify", before="/meta", public="/meta"), "https://oai.example.org/meta/oai"),
        (
            rest("verb=Identify", before="/meta/prod", public="/meta/prod", route="/oai"),
            "https://oai.example.org/meta/prod/oai",
        ),
        # What an HTTP API sends that was told to write format 1.0.
        (
            rest("verb=Identify", before="/prod", public="/prod", route="$default")
            | {"version": "1.0"},
            "https://oai.example.org/prod/oai",
        ),
    ],
)
def test_the_base_url_is_what_the_client_wrote(client, event, base):
    answer = page(respond(client.application, event))
    assert answer.text("baseURL") == [base]
    assert answer.text("request") == [base]


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (http, {"stage": "prod", "before": "/prod"}),
        (http, {"stage": "prod", "before": "/prod", "route": "ANY /"}),
        (rest, {}),
        (rest, {"before": "/meta", "public": "/meta"}),
    ],
)
def test_the_page_for_people_lies_at_the_root(client, kind, how):
    reply = respond(client.application, kind(path="/", **how))
    assert reply["headers"]["Content-Type"].startswith("text/html")
    root = how.get("before", "/prod")
    assert f'href="{root}/harvest"'.encode() in content(reply)


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("repository_1", "https://repository_1"),
        ("_oai.my_host.example.org:8080", "https://_oai.my_host.example.org:8080"),
        ("OAI.Example.ORG", "https://oai.example.org"),
        ("oai.example.org.", "https://oai.example.org"),
        ("oai.example.org.:8443", "https://oai.example.org:8443"),
        ("oai.example.org:443", "https://oai.example.org"),
        ("oai.example.org:", "https://oai.example.org"),
        ("oai.example.org:80", "https://oai.example.org:80"),
        ("xn--kva-8la.example", "https://xn--kva-8la.example"),
        ("192.0.2.7:8080", "https://192.0.2.7:8080"),
        ("[2001:DB8::1]", "https://[2001:db8::1]"),
        ("[::1]:8080", "https://[::1]:8080"),
        ("[::ffff:1.2.3.4]", "https://[::ffff:1.2.3.4]"),
        ("a.cz:65535", "https://a.cz:65535"),
        ("oai.example.org..", "https://localhost"),
        ("kočka.example", "https://localhost"),
        ("\u212aelvin.example", "https://localhost"),
        ("a" * 300, "https://localhost"),
        ("a/b", "https://localhost"),
        ("a/", "https://localhost"),
        ("me@a.cz", "https://localhost"),
        ("a.cz:0", "https://localhost"),
        ("a.cz:70000", "https://localhost"),
        ("192.0.2.700", "https://localhost"),
        *((host, "https://localhost") for host in ("[::1", "[::::]", "[1.2.3.4]", "[.]", "[:]:80")),
        *((host, "https://localhost") for host in ("[]", "[::1%1]", "[::1]a", "[v1.a]", "a:65536")),
        *((host, "https://localhost") for host in ("a:b", "a@b", "a, b", "-", "č", " ")),
    ],
)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_base_url_has_the_host_that_was_asked(client, kind, host, base):
    reply = respond(client.application, kind("verb=Identify", headers={"host": host}))
    (found,) = page(reply).text("baseURL")
    assert found.removesuffix("/oai").removesuffix("/prod") == base


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    ("path", "type_", "begin"),
    [
        ("/robots.txt", "text/plain; charset=utf-8", b"# Harvesters are welcome at https://"),
        ("/favicon.ico", "image/vnd.microsoft.icon", b"\0\0\1\0\1\0\x10\x10"),
    ],
)
def test_what_browsers_and_crawlers_look_for(client, kind, path, type_, begin):
    reply = respond(client.application, kind(path=path))
    body = content(reply) if path == "/robots.txt" else base64.b64decode(reply["body"])
    assert reply["statusCode"] == 200
    assert body.startswith(begin)
    assert len(body) < 1000
    headers = reply["headers"]
    assert headers["Content-Type"] == type_
    assert headers["Content-Length"] == str(len(body))
    assert headers["Cache-Control"] == "public, max-age=86400, must-revalidate"
    head = respond(client.application, kind(path=path, method="HEAD"))
    assert (head["headers"], head["body"]) == (headers, "")
    held = respond(client.application, kind(path=path, headers={"if-none-match": headers["ETag"]}))
    assert (held["statusCode"], held["body"]) == (304, "")
    assert respond(client.application, kind(path=path, method="POST"))["statusCode"] == 405
    assert respond(client.application, kind(path=f"/oai{path}"))["statusCode"] == 404


def test_crawlers_may_ask_for_metadata_and_not_for_archived_content(client):
    rules = RobotFileParser()
    rules.parse(
        content(respond(client.application, http(path="/robots.txt"))).decode().splitlines()
    )
    for path, may in {
        "/": True,
        "/oai?verb=ListRecords": True,
        "/content/oai:a.cz:1": False,
        "/cdx?url=a": False,
        "/timemap/link/http://a.cz/": False,
        "/timegate/http://a.cz/": False,
    }.items():
        assert rules.can_fetch("crawler", f"https://a.cz{path}") is may, path


def test_a_mapping_that_no_route_tells_of_is_that_of_the_configured_base_url(repository, clock):
    base = "https://archive.example.org/meta/oai"
    client = Client(repository, clock, repository_base_url=base)
    for before in ("/meta", ""):
        event = http("verb=Identify", before=before, stage="prod")
        assert page(respond(client.application, event)).text("baseURL") == [base]
    assert respond(client.application, http(before="/metadata"))["statusCode"] == 404
    assert respond(client.application, http(path="", before="/meta"))["statusCode"] == 200
    other = Client(repository, clock, repository_base_url="https://archive.example.org/harvest")
    assert respond(other.application, http(before="/meta"))["statusCode"] == 404


@pytest.mark.parametrize(
    "path",
    [
        "//oai",
        "/oai/../oai",
        "/./oai",
        "/oai/.",
        "/%6fai",
        "/%2Foai",
        "/oai%2F",
        "/oai\0",
        "/../../etc/passwd",
        "/schema/../oai",
        "/schema/..%2f..%2fformats.toml",
        "/schema/",
        "/schema/capture.xsd\0",
        "\\oai",
        "oai",
        "/oai?verb=Identify",
        "/oai\r\nX: y",
        "/\ud800",
        "/oai;x",
        "/" + "a" * 100_000,
    ],
)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_tricks_with_paths_find_nothing(client, kind, path):
    for event in (kind("verb=Identify"), kind("verb=Identify", route="/oai")):
        event["path" if kind is rest else "rawPath"] = path
        event["requestContext"]["path"] = path
        event["pathParameters"] = None
        reply = respond(client.application, event)
        assert reply["statusCode"] == 404, reply
        assert content(reply) == b"Not found; try / or /oai.\n"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    "value", ["a\r\nX-Injected: 1", "a\nb", "\0", "ř", "\ud800", "\x80\xff", "x" * 1_000_000, ""]
)
def test_what_a_client_sends_is_in_no_header(client, kind, value):
    names = ("host", "x-forwarded-proto", "accept-encoding", "if-none-match", "content-type", value)
    for name in names:
        for method in ("GET", "POST", "OPTIONS", value):
            headers = {name: value}
            reply = respond(client.application, kind(f"verb={'Identify'}", method, headers=headers))
            told = json.dumps(reply["headers"])
            assert "njected" not in told
            assert told.isascii()
            assert "\\" not in told.replace('\\"', "")
            assert reply["statusCode"] in (200, 204, 405)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    ("body", "encoded", "code"),
    [
        (None, False, "badVerb"),
        ("verb=" + "x" * 100_000, False, "badArgument"),
        (base64.b64encode(b"\xff\xfe\x00=&;%%%").decode(), True, "badVerb"),
        ("dmVyYj1JZGVudGlmeQ==", False, "badVerb"),  # base64 that is not said to be
        ("verb=Identify&\0=\x1b", False, "badArgument"),
        ("a" * 1_000_000, True, "badArgument"),
        ("a" * 1_000_000, False, "badArgument"),
    ],
)
def test_bodies_that_are_none(client, kind, body, encoded, code):
    event = kind("", "POST", headers=FORM) | {"body": body, "isBase64Encoded": encoded}
    assert page(respond(client.application, event)).codes == [code]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 999, 1_000_001, 1_000_002, 1_000_003])
@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "gzip"}, {"ETag": 'W/"a"'}])
@pytest.mark.parametrize("kind", [http, rest])
def test_an_answer_s_weight_is_that_of_its_json(kind, size, headers):
    response = HttpResponse(200, headers, b'"' * size)
    handler = make_lambda_handler(
        lambda environ, start: wsgi.send(response, environ, start),
        binary_support=True,
        non_binary_content_type_prefixes=(),
    )
    length = len(json.dumps(handler(kind(), None)))
    assert length <= aws.weigh(response) <= length + 200
