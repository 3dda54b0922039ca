"""HTTP: paths, methods, forms, compression, and a store that is out of reach."""

import base64
import gzip
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from functions.snapshot.errors import StoreError

from .client import START, Client, Page, content
from .memory import MemoryRepository, capture
from .validity import valid

FORM = {"content-type": "application/x-www-form-urlencoded"}


def page(reply) -> Page:
    assert reply["statusCode"] == 200
    assert reply["headers"]["Content-Type"] == "text/xml; charset=utf-8"
    assert reply["headers"]["Vary"] == "Accept-Encoding"
    return Page(valid(content(reply)))


def posted(client: Client, body: str | None, headers=FORM, encoded=False, query="") -> Page:
    return page(client.raw(query, "POST", headers=headers, body=body, encoded=encoded))


@pytest.mark.parametrize("path", ["/oai", "/oai/"])
def test_the_base_url_is_that_of_the_request(client, path):
    answer = page(client.raw("verb=Identify", path=path))
    assert answer.text("baseURL") == [f"https://oai.example.org{path}"]


@pytest.mark.parametrize(
    ("headers", "base"),
    [
        ({"host": "127.0.0.1:8000", "x-forwarded-proto": "http"}, "http://127.0.0.1:8000/oai"),
        ({"host": "[::1]:8000", "x-forwarded-proto": "http"}, "http://[::1]:8000/oai"),
        ({"host": 'a"><b', "x-forwarded-proto": "javascript"}, "https://localhost/oai"),
        ({"Host": "Upper.example.org"}, "https://Upper.example.org/oai"),
    ],
)
def test_the_host_is_believed_only_where_it_is_one(client, headers, base):
    headers = headers if "host" in headers else {"host": "", **headers}
    assert page(client.raw("verb=Identify", headers=headers)).text("baseURL") == [base]


def test_a_stage_leads_the_path(client):
    answer = page(client.raw("verb=Identify", path="/prod/oai", stage="prod"))
    assert answer.text("baseURL") == ["https://oai.example.org/prod/oai"]
    assert client.raw(path="/prod", stage="prod")["statusCode"] == 200
    assert client.raw(path="/production/oai", stage="prod")["statusCode"] == 404


def test_an_event_may_be_nearly_empty(client):
    assert client.application({}, None)["statusCode"] == 200
    reply = client.application({"rawPath": "/oai", "headers": None, "body": None})
    assert page(reply).codes == ["badVerb"]


@pytest.mark.parametrize("path", ["/x", "/oai/x", "//", "/OAI", "/oai.xml", "/favicon.ico"])
def test_there_is_nothing_elsewhere(client, path):
    reply = client.raw(path=path)
    assert reply["statusCode"] == 404
    assert reply["headers"]["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "CONNECT", "TRACE"])
def test_other_methods_are_refused(client, method):
    assert client.raw(method=method)["headers"]["Allow"] == "GET, HEAD, POST, OPTIONS"
    assert client.raw(method=method)["statusCode"] == 405
    assert client.raw(method=method, path="/")["headers"]["Allow"] == "GET, HEAD, OPTIONS"


def test_a_post_to_the_page_for_people_is_refused(client):
    assert client.raw(method="POST", path="/")["statusCode"] == 405


def test_head_has_the_headers_of_get_and_no_body(client):
    for headers in ({}, {"accept-encoding": "gzip"}):
        head = client.raw("verb=Identify", "HEAD", headers=headers)
        assert (head["body"], head["isBase64Encoded"]) == ("", False)
        assert head["headers"] == client.raw("verb=Identify", headers=headers)["headers"]


@pytest.mark.parametrize("encoded", [False, True])
def test_a_form_is_asked_as_a_query_is(client, encoded):
    arguments = {"verb": "ListRecords", "metadataPrefix": "oai_dc", "set": "mime:text"}
    body = urlencode(arguments)
    if encoded:
        body = base64.b64encode(body.encode()).decode()
    headers = {"Content-Type": "Application/X-WWW-form-urlencoded; charset=UTF-8"}
    answer = posted(client, body, headers, encoded)
    same = page(client.raw(urlencode(arguments)))
    assert answer.headers == same.headers
    assert answer.request == arguments


@pytest.mark.parametrize(
    ("body", "headers", "encoded", "code"),
    [
        (None, FORM, False, "badVerb"),
        ("", {}, False, "badVerb"),
        ("verb=Identify", {}, False, "badArgument"),
        ("verb=Identify", {"content-type": "application/json"}, False, "badArgument"),
        ("no base64", FORM, True, "badArgument"),
        ("é", FORM, True, "badArgument"),
        ("verb=" + "x" * 100_000, FORM, False, "badArgument"),
        ("x" * 10_000_000, FORM, True, "badArgument"),
        (base64.b64encode(b"\xff\xfe\x00=&;%%%").decode(), FORM, True, "badVerb"),
    ],
)
def test_a_body_that_is_no_form(client, body, headers, encoded, code):
    answer = posted(client, body, headers, encoded)
    assert answer.codes == [code]
    assert answer.request == {}


def test_query_and_form_add_up(client):
    assert posted(client, None, query="verb=Identify").codes == []
    assert posted(client, "verb=Identify", query="verb=Identify").codes == ["badVerb"]


def test_a_query_of_any_length_or_bytes_is_safe(client):
    assert page(client.raw("verb=Identify&" + "a=b&" * 50_000)).codes == ["badArgument"]
    assert page(client.raw("verb=Identify&&%ff%fe=%00")).codes == ["badArgument"]
    assert page(client.raw("verb=%ff")).codes == ["badVerb"]
    assert page(client.raw("verb")).codes == ["badVerb"]


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("x-gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("gzip; q=1.0", True),
        ("*", True),
        ("gzip;q=0.001, identity", False),
        ("gzip;q=0.5, identity;q=0.5", True),
        ("gzip;q=0.5, *;q=0.8", False),
        ("identity;q=0, gzip;q=0.1", True),
        ("gzip;q=1.5", False),
        ("", False),
        ("identity", False),
        ("br, deflate", False),
        ("gzip;q=0", False),
        ("gzip;q=0.000", False),
        ("*, gzip;q=0", False),
        ("*;q=0", False),
        ("gzip;q=x", False),
        ("gzipped", False),
    ],
)
def test_gzip_where_it_is_wished(client, accepted, compressed):
    reply = client.raw("verb=Identify", headers={"Accept-Encoding": accepted})
    assert (reply["headers"].get("Content-Encoding") == "gzip") == compressed
    assert reply["isBase64Encoded"] == compressed
    assert page(reply).codes == []


def test_gzip_gives_the_same_bytes_each_time(client):
    replies = [client.raw("verb=Identify", headers={"accept-encoding": "gzip"}) for _ in "ab"]
    assert replies[0] == replies[1]
    assert gzip.decompress(base64.b64decode(replies[0]["body"]))[:5] == b"<?xml"


def test_a_large_body_is_no_json_text(clock):
    repository = MemoryRepository()
    items = {f"oai:example.org:{n:04}": capture("http://ě/" + "ě" * 2000) for n in range(400)}
    repository.publish(items, START - timedelta(hours=1))
    reply = Client(repository, clock).raw("verb=ListRecords&metadataPrefix=oai_dc")
    assert reply["isBase64Encoded"]
    assert len(page(reply).headers) == 400


@pytest.mark.parametrize("path", ["/", "/oai"])
@pytest.mark.parametrize("query", ["verb=Identify", "verb=Nope"])
def test_a_store_with_nothing_in_it(path, query):
    reply = Client(MemoryRepository()).raw(query, path=path)
    assert reply["statusCode"] == 503
    assert int(reply["headers"]["Retry-After"]) > 0
    assert "nothing is published" in reply["body"]
    assert reply["headers"]["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("method", ["pointer", "manifest", "page", "size"])
def test_a_store_out_of_reach(repository, clock, method, caplog):
    def fail(*args, **kwargs):
        raise StoreError("s3://secret-bucket: connection refused")

    setattr(repository, method, fail)
    reply = Client(repository, clock).raw("verb=ListRecords&metadataPrefix=oai_dc")
    assert reply["statusCode"] == 503
    assert reply["headers"]["Retry-After"].isdigit()
    assert "secret" not in reply["body"]
    assert "StoreError: s3://secret-bucket: connection refused" in caplog.text
    assert "<" not in reply["body"]


def test_a_store_that_is_back_is_asked_again(repository, clock):
    client = Client(repository, clock)
    pointer = repository.pointer
    repository.pointer = lambda: (_ for _ in ()).throw(StoreError("gone"))
    assert client.raw("verb=Identify")["statusCode"] == 503
    repository.pointer = pointer
    assert client.get("Identify").codes == []
