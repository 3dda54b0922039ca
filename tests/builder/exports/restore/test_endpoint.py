"""Endpoints that are slow, busy, cut off or strange: what may pass is waited for, the rest told."""

import base64
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from builder.exports.restore import captures, endpoint
from builder.exports.restore.captures import CaptureFilter, MissingError, RebuildError
from builder.exports.restore.endpoint import EndpointClient, EndpointError, EndpointSource
from builder.exports.restore.sources import http_client
from builder.http.limits import Limits, RetryPolicy
from tests.builder.http import site as web
from tests.builder.http.site import Answer

BODY = bytes(range(256)) * 400
DIGEST = "sha1:" + base64.b32encode(hashlib.sha1(BODY).digest()).decode()
LIMITS = Limits(connect=10, first_byte=10, total=60, rate=1, bytes=1 << 30)
HELD = {"X-Archive-Payload-Digest": DIGEST, "ETag": '"t"', "X-Archive-Orig-Age": "1"}
ASTRAY = "bad-redirect|unsupported-scheme|userinfo"


@contextmanager
def served(*answers: Answer) -> Iterator[tuple[EndpointSource, list[web.Request]]]:
    """Give a source over a server that answers so, one request after the other."""
    policy = RetryPolicy(retries=2, first=0.001, longest=0.01)
    with web.serving() as site:
        site.lasting, site.other = True, web.then(*answers)
        client = EndpointClient(http_client("test", threading.Event()), LIMITS, policy)
        with closing(EndpointSource(site.url(""), client)) as source:
            yield source, site.requests


def say(
    status: int,
    body: bytes = b"",
    size: int | None = None,
    *,
    endless: bool = False,
    **headers: str,
) -> Answer:
    """Answer so; a `size` that is not the body's ends the connection too early."""

    def answer(to: BaseHTTPRequestHandler) -> None:
        to.send_response(status)
        for header, value in headers.items():
            to.send_header(header.replace("_", "-"), value)
        to.send_header("Content-Length", str(len(body) if size is None else size))
        to.end_headers()
        to.wfile.write(body)
        with contextlib.suppress(OSError):
            while endless:
                to.wfile.write(bytes(1 << 16))
        if size is not None:
            to.close_connection = True

    return answer


def hang_up(to: BaseHTTPRequestHandler) -> None:
    to.close_connection = True


def told(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("-", "_"): value for name, value in headers.items()}


def read(source: EndpointSource) -> bytes:
    with source.open("oai:b.cz:1") as found:
        assert found.headers["age"] == "1"
        return found.stream.read()


def part(first: int, last: int, size: int = len(BODY)) -> Answer:
    headers = {**HELD, "Content-Range": f"bytes {first}-{last}/{size}"}
    return say(206, BODY[first : last + 1], **told(headers))


def test_what_may_pass_is_waited_for_and_what_does_not_ends_it() -> None:
    busy = say(503, b"busy", Retry_After="1")
    with served(busy, hang_up, WHOLE) as (source, asked):
        assert read(source) == BODY
        assert len(asked) == 3
    with served(say(503, b"busy")) as (source, _):
        with pytest.raises(EndpointError, match="does not answer: HTTP status 503"):
            read(source)
        source.address = "http://127.0.0.1:1"
        with pytest.raises(EndpointError, match="does not answer: connect"):
            read(source)


@pytest.mark.parametrize(
    ("status", "code", "known"),
    [
        (410, "withdrawn", "withdrawn"),
        (503, "not-at-hand", "not-at-hand"),
        (404, "invented", "refused"),
        (500, "", "refused"),
    ],
)
def test_why_there_are_no_bytes_is_told_of_one_file(status: int, code: str, known: str) -> None:
    headers = {"X_Archive_Error": code} if code else {}
    with served(say(status, b"No\nbytes.", **headers)) as (source, _):
        with pytest.raises(MissingError, match=r"No bytes\.") as error:
            read(source)
        assert error.value.code == known


def test_what_is_cut_off_or_too_much_for_one_answer_comes_in_parts() -> None:
    with served(CUT, part(1000, 4999), part(5000, len(BODY) - 1)) as (source, asked):
        assert read(source) == BODY
        assert [one.headers.get("range") for one in asked] == [None, "bytes=1000-", "bytes=5000-"]
        assert asked[1].headers["if-range"] == '"t"'
    with served(say(413, b"too much"), part(0, 9999), part(10_000, len(BODY) - 1)) as (source, _):
        assert read(source) == BODY


WHOLE = say(200, BODY, **told(HELD))
CUT = say(200, BODY[:1000], len(BODY), **told(HELD))


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ((say(200, BODY[:1000], len(BODY), X_Archive_Orig_Age="1"),), "cut-short"),
        ((CUT, WHOLE), "cut-short"),
        ((CUT, part(5000, len(BODY) - 1)), "cut-short"),
        *(
            ((say(200, body, **told(HELD)),), "damaged")
            for body in (BODY[:-1] + b"x", BODY + b"x", b"")
        ),
    ],
)
def test_other_bytes_are_neither_gone_on_with_nor_taken(
    answers: tuple[Answer, ...], code: str
) -> None:
    with served(*answers) as (source, _):
        with pytest.raises(MissingError) as error:
            read(source)
        assert error.value.code == code


@pytest.mark.parametrize("label", ["", "sha1:"])
def test_where_the_digest_was_taken_off_on_the_way_that_of_the_list_counts(label: str) -> None:
    digest = label + DIGEST.removeprefix("sha1:")
    right, wrong = say(200, BODY, age="1"), say(200, BODY[:-1] + b"x", age="1")
    with served(right, wrong) as (source, _):
        with source.open("oai:b.cz:1", digest) as found:
            assert found.stream.read() == BODY
        with pytest.raises(MissingError) as error, source.open("oai:b.cz:1", digest) as found:
            found.stream.read()
        assert error.value.code == "damaged"


def test_what_a_redirect_or_a_refusal_says_is_not_read_to_its_end() -> None:
    for endless, rest in (
        (say(302, size=1 << 50, endless=True, Location="/x"), WHOLE),
        (say(413, size=1 << 50, endless=True), part(0, len(BODY) - 1)),
    ):
        with served(endless, rest) as (source, _):
            assert read(source) == BODY


def test_a_signed_address_is_followed_and_told_nothing() -> None:
    with served(say(200, BODY)) as (elsewhere, other):
        moved = say(302, b"there", Location=f"{elsewhere.address}/signed?x=1", **told(HELD))
        with served(moved) as (source, _), source.open("oai:b.cz:1") as found:
            assert found.stream.read() == BODY
            assert other[0].path == "/signed?x=1"


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://u:p@a.cz/", "//[x"])
def test_strange_redirects_are_not_followed(location: str) -> None:
    strange = [say(302, b"", Location=location)] * 3
    with served(*strange) as (source, _), pytest.raises(EndpointError, match=ASTRAY):
        read(source)


def line(number: int, **more: object) -> dict[str, object]:
    return {"identifier": f"oai:b.cz:{number}", "url": f"http://a.cz/{number}", **more}


def page(*documents: object, **headers: str) -> Answer:
    return say(200, b"".join(json.dumps(one).encode() + b"\n" for one in documents), **headers)


def listed(source: EndpointSource, set_: str | None = None) -> list[str]:
    urls = () if set_ else ("a.cz",)
    return [
        one.identifier for one in source.captures(CaptureFilter(set_, urls, captures.LAST_SECOND))
    ]


def test_lists_go_on_by_their_keys() -> None:
    """One that is cut off is asked for again."""
    first, second = page(line(1), {"resumeKey": "k1"}), page(line(2))
    with served(first, say(503), say(200, b'{"ident', 500), second) as (source, asked):
        assert listed(source) == ["oai:b.cz:1", "oai:b.cz:2"]
        query = parse_qs(urlsplit(asked[2].path).query)
        assert (query["resumeKey"], query["matchType"], query["url"]) == (
            ["k1"],
            ["host"],
            ["http://a.cz"],
        )


@pytest.mark.parametrize("keys", [1, 3])
def test_a_list_that_goes_round_is_noticed(keys: int) -> None:
    turns = [page(line(n), {"resumeKey": f"k{n % keys}"}) for n in range(20)]
    with served(*turns) as (source, asked):
        with pytest.raises(RebuildError, match="same resume key"):
            listed(source)
        assert len(asked) < 12


def test_lines_that_are_no_captures_are_left_out() -> None:
    strange = [
        1,
        [],
        {},
        {"url": 1, "identifier": "x"},
        line(1, status="x", timestamp="y", size=-1),
    ]
    deep = say(200, b"[" * 200_000 + b"\n" + json.dumps(line(3)).encode())
    with served(deep) as (source, _):
        assert listed(source) == ["oai:b.cz:3"]
    with served(page(*strange, line(2, url="http://a.cz/č\ud800"))) as (source, _):
        found = list(source.captures(CaptureFilter(None, ("a.cz",), captures.LAST_SECOND)))
    assert [(one.identifier, one.status, one.stamp, one.length) for one in found] == [
        ("oai:b.cz:1", None, "", None),
        ("oai:b.cz:2", None, "", None),
    ]
    assert found[1].url == "http://a.cz/%C4%8D%ED%A0%80"


RECORDS = """<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>
<record><header status="deleted"><identifier>oai:b.cz:0</identifier></header></record>
<record><header><identifier>oai:b.cz:1</identifier></header><metadata>
<capture xmlns="urn:x-sheaf:capture:1"><url>http://a.cz/</url><fetch_date>2009-01</fetch_date>
<fetch_status>200</fetch_status></capture></metadata></record>
<resumptionToken>{}</resumptionToken></ListRecords></OAI-PMH>"""


def records(token: str = "") -> Answer:
    return say(200, RECORDS.format(token).encode())


def fault(code: str, text: str = "") -> Answer:
    error = f'<error code="{code}">{text}</error>'
    return say(200, re.sub("<ListRecords.*ListRecords>", error, RECORDS, flags=re.DOTALL).encode())


def test_sets_are_listed_by_oai_pmh() -> None:
    """An empty one is no fault, and a token that comes again ends a list."""
    with served(records("t1"), records()) as (source, asked):
        found = list(source.captures(CaptureFilter("a:b", (), captures.LAST_SECOND)))
        assert [one.identifier for one in found] == ["oai:b.cz:1"] * 2
        assert (found[0].stamp, found[0].status) == ("20090101000000", 200)
        assert "set=a%3Ab" in asked[0].path
        assert asked[1].path.endswith("verb=ListRecords&resumptionToken=t1")
    with served(fault("noRecordsMatch"), records("t1")) as (source, _):
        assert listed(source, "a") == []
        with pytest.raises(RebuildError, match="same resumption token"):
            listed(source, "a")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (say(200, b"<html>"), "is not XML"),
        (say(200, b"<html/>"), "is not OAI-PMH"),
        (say(404, b"Not here."), "HTTP status 404: Not here"),
        (fault("badArgument", "no such set"), "badArgument: no such set"),
    ],
)
def test_what_is_no_list_is_told_in_one_line(answer: Answer, said: str) -> None:
    with served(answer) as (source, _), pytest.raises(RebuildError, match=said) as error:
        listed(source, "a")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://a.cz/oai", "http://a.cz"),
        ("http://a.cz/oai/", "http://a.cz"),
        ("https://a.cz:8080/stage/oai", "https://a.cz:8080/stage"),
        ("https://a.cz/", "https://a.cz"),
        *(
            (url, None)
            for url in ("http://", "http://a.cz/oai?x", "http://u:p@a.cz/", "http://[::1")
        ),
        *((url, None) for url in ("http://a.cz/#", "http://a:99999/", "http://ž.cz/oai")),
        ("http://a b/", None),
    ],
)
def test_the_address_of_an_endpoint(url: str, base: str | None) -> None:
    if base is not None:
        assert endpoint.base(url) == base
        return
    with pytest.raises(RebuildError, match="expected the URL of an endpoint"):
        endpoint.base(url)


def test_the_answer_to_a_post_is_known_as_such() -> None:
    posted = line(2, url="http://a.cz/q?x=1", method="POST", requestBody="a=1 2")
    with served(page(line(1), posted, line(3, method=["x"], requestBody="y"))) as (source, _):
        found = list(source.captures(CaptureFilter(None, ("a.cz",), captures.LAST_SECOND)))
    assert [one.method for one in found] == [None, "POST", None]
    assert found[1].url == "http://a.cz/q?x=1&__wb_method=POST&a=1%202"
    assert found[1].surt == "cz,a)/q?__wb_method=post&a=1%202&x=1"
    assert [captures.accept_statuses("200")(one) for one in found] == [True, False, True]
    assert all(captures.accept_statuses("200", requests=True)(one) for one in found)
    listed = RECORDS.format("").replace("</capture>", "<fetch_method>PUT</fetch_method></capture>")
    with served(say(200, listed.encode())) as (source, _):
        (one,) = source.captures(CaptureFilter("a:b", (), captures.LAST_SECOND))
    assert one.method == "PUT"
