"""HTTP: paths, methods, forms, compression, other sites, and what cannot be answered."""

import base64
import gzip
import json
import threading
from urllib.parse import urlencode

import pytest

from functions.http import health, service
from functions.snapshot.errors import DamagedStore, MissingObject, StoreError, StoreUnavailable
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import Pointer
from tests.functions.oai.client import Client, Page, content
from tests.functions.oai.validity import valid
from tests.functions.reading.memory import MemoryRepository

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
    for scheme, told in (("http", "http"), ("javascript", "https")):
        answer = page(client.raw("verb=Identify", headers={"x-forwarded-proto": scheme}))
        assert answer.text("baseURL") == [f"{told}://oai.example.org/oai"]


@pytest.mark.parametrize("path", ["/x", "/oai/x", "//", "/OAI", "/oai.xml", "/favicon.png"])
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


@pytest.mark.parametrize("path", ["/oai", "/", "/x"])
@pytest.mark.parametrize("query", ["verb=Identify", "verb=ListRecords&metadataPrefix=oai_dc", ""])
@pytest.mark.parametrize("accepted", ["", "gzip"])
def test_head_has_the_headers_of_get_and_no_body(client, path, query, accepted):
    headers = {"accept-encoding": accepted}
    head, get = (client.raw(query, m, path, headers=headers) for m in ("HEAD", "GET"))
    assert (head["body"], head["isBase64Encoded"]) == ("", False)
    assert (head["statusCode"], head["headers"]) == (get["statusCode"], get["headers"])


OPEN = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "ETag, Retry-After"}


@pytest.mark.parametrize(
    ("path", "methods"), [("/oai", "GET, HEAD, POST, OPTIONS"), ("/", "GET, HEAD, OPTIONS")]
)
def test_other_sites_may_ask_whether_they_may_ask(client, path, methods):
    wishes = {
        "Origin": "https://elsewhere.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    reply = client.raw("verb=Identify", "OPTIONS", path, headers=wishes)
    assert (reply["statusCode"], reply["body"]) == (204, "")
    headers = reply["headers"]
    assert headers["Allow"] == headers["Access-Control-Allow-Methods"] == methods
    assert "Content-Type" in headers["Access-Control-Allow-Headers"]
    assert int(headers["Access-Control-Max-Age"]) > 0
    assert OPEN.items() <= headers.items()
    assert not {"Content-Type", "Content-Length", "Content-Encoding"} & headers.keys()


@pytest.mark.parametrize(
    ("query", "method", "path", "status"),
    [
        ("verb=Identify", "GET", "/oai", 200),
        ("verb=Identify", "HEAD", "/oai", 200),
        ("verb=Nope", "POST", "/oai", 200),
        ("", "GET", "/", 200),
        ("", "OPTIONS", "/x", 404),
        ("", "PUT", "/oai", 405),
    ],
)
def test_other_sites_may_read_every_answer(client, query, method, path, status):
    reply = client.raw(query, method, path)
    assert reply["statusCode"] == status
    assert OPEN.items() <= reply["headers"].items()


def test_a_body_that_does_not_say_that_it_is_a_form(client):
    for headers in ({}, {"content-type": "application/json"}):
        answer = posted(client, "verb=Identify", headers)
        assert (answer.codes, answer.request) == (["badArgument"], {})
    assert posted(client, "", {}).codes == ["badVerb"]


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


def test_query_and_form_add_up(client):
    assert posted(client, None, query="verb=Identify").codes == []
    assert posted(client, "verb=Identify", query="verb=Identify").codes == ["badVerb"]


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


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [("gzip", False), ("gzip, identity;q=0", True), ("gzip, *;q=0", True), ("identity;q=0", False)],
)
def test_what_is_small_is_compressed_only_where_it_must_be(client, accepted, compressed):
    reply = client.raw(path="/x", headers={"accept-encoding": accepted})
    assert (reply["headers"].get("Content-Encoding") == "gzip") == compressed
    assert content(reply).startswith(b"Not found; try")
    assert reply["headers"]["Vary"] == "Accept-Encoding"


def test_gzip_gives_the_same_bytes_each_time(client):
    replies = [client.raw("verb=Identify", headers={"accept-encoding": "gzip"}) for _ in "ab"]
    assert replies[0] == replies[1]
    assert gzip.decompress(base64.b64decode(replies[0]["body"]))[:5] == b"<?xml"


@pytest.mark.parametrize("path", ["/", "/oai"])
@pytest.mark.parametrize("query", ["verb=Identify", "verb=Nope"])
def test_a_store_with_nothing_in_it(path, query):
    reply = Client(MemoryRepository()).raw(query, path=path)
    assert reply["statusCode"] == 503
    assert int(reply["headers"]["Retry-After"]) > 0
    assert "Nothing is published" in reply["body"]
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
    if method == "pointer":
        shown = Client(repository, clock).raw(path="/")
        assert (shown["statusCode"], "secret" in str(shown)) == (503, False)
    assert "<" not in reply["body"]
    assert OPEN.items() <= reply["headers"].items()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DamagedStore("secret"), "A file that this needs is damaged or missing here"),
        (MissingObject("secret"), "A file that this needs is damaged or missing here"),
        (StoreUnavailable("secret"), "cannot be reached at the moment; try again later"),
    ],
)
def test_what_is_damaged_is_not_called_unreachable(repository, clock, error, said):
    def fail(*args, **kwargs):
        raise error

    repository.pointer = fail
    reply = Client(repository, clock).raw("verb=Identify")
    assert (reply["statusCode"], "secret" in reply["body"]) == (503, False)
    assert said in reply["body"]


@pytest.mark.parametrize("method", ["pointer", "manifest", "page", "size"])
@pytest.mark.parametrize("error", [ZeroDivisionError("secret"), MemoryError("secret")])
def test_what_nobody_foresaw(repository, clock, method, error, caplog):
    """A harvester is to ask again; the operator sees where it was."""

    def fail(*args, **kwargs):
        raise error

    setattr(repository, method, fail)
    client = Client(repository, clock, serve_retry_seconds=77)
    reply = client.raw("verb=ListRecords&metadataPrefix=oai_dc")
    assert (reply["statusCode"], reply["headers"]["Retry-After"]) == (503, "77")
    assert "secret" not in reply["body"]
    assert "<" not in reply["body"]
    assert "Traceback" in caplog.text
    assert type(error).__name__ in caplog.text
    assert "'GET' '/oai'" in caplog.text


def test_a_place_is_free_again_after_a_failure(repository, clock):
    pointer = repository.pointer
    repository.pointer = lambda: 1 / 0
    client = Client(repository, clock, serve_concurrent=1)
    assert {client.raw("verb=Identify")["statusCode"] for _ in range(3)} == {503}
    repository.pointer = pointer
    assert client.get("Identify").codes == []


def test_health_needs_no_place_and_does_not_wait_for_a_store_that_hangs(
    repository, clock, monkeypatch
):
    monkeypatch.setattr(health, "_SECONDS", 0.05)
    client = Client(repository, clock, serve_concurrent=1)
    answers, manifest, hangs = [], repository.manifest, threading.Event()

    def ask_health(number: int) -> Manifest:
        repository.manifest = manifest
        answers.append(client.raw(path="/health"))
        return manifest(number)

    repository.manifest = ask_health
    pointer = repository.pointer
    assert client.get("Identify").codes == []
    assert json.loads(answers[0]["body"])["status"] == "ok"
    repository.pointer = lambda: hangs.wait() and pointer()
    before = threading.active_count()
    for _ in range(3):
        reply = client.raw(path="/health")
        assert (reply["statusCode"], "cannot be read" in reply["body"]) == (503, True)
    assert threading.active_count() == before + 1
    repository.pointer = pointer
    hangs.set()


def test_a_request_that_waits_too_long_is_told_so(repository, clock, monkeypatch):
    """It comes while another one is answered, which does not end."""
    monkeypatch.setattr(service, "PATIENCE", 0.01)
    client = Client(repository, clock, serve_concurrent=1)
    inner, pointer = [], repository.pointer

    def ask_another() -> Pointer:
        repository.pointer = pointer
        inner.append(client.raw("verb=Identify"))
        return pointer()

    repository.pointer = ask_another
    assert client.get("Identify").codes == []
    assert inner[0]["statusCode"] == 503
    assert inner[0]["headers"]["Retry-After"] == "30"
    assert "Too many" in inner[0]["body"]
    assert client.get("Identify").codes == []


def test_a_store_that_is_back_is_asked_again(repository, clock):
    client = Client(repository, clock)
    pointer = repository.pointer
    repository.pointer = lambda: (_ for _ in ()).throw(StoreError("gone"))
    assert client.raw("verb=Identify")["statusCode"] == 503
    repository.pointer = pointer
    assert client.get("Identify").codes == []
