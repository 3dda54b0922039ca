"""Requests: which capture answers which, and what the index has of it, as pywb has it."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.sources.webarchives.backlog import NEAR
from builder.sources.webarchives.side_records import REQUEST_BYTES, CaptureRequest, read_request
from functions.archive.record import BufferedBlock
from functions.snapshot import surt
from tests.builder.sources.webarchives.containers import (
    captures,
    codes,
    events,
    frames,
    http,
    members,
    skips,
    warc,
)
from tests.builder.sources.webarchives.test_ranges import Ranges, anonymous
from tests.extent import examples

URL = b"http://a.cz/api?x=1"
KINDS = (b"response", b"request", b"metadata")
FORM = b"application/x-www-form-urlencoded"


def post(body: bytes = b"a=1&b=2", media_type: bytes = FORM, *fields: bytes, method=b"POST"):
    length = b"Content-Length: %d" % len(body)
    head = (method + b" /api HTTP/1.1", b"Content-Type: " + media_type, length, *fields)
    return b"\r\n".join((*head, b"", body))


def exchange(request: bytes, number: int = 1, *, before: bool = False, url: bytes = URL):
    """Return the records of a request and its answer, as wget (`before`) or browsers have them."""
    names = (b"<urn:a:%d>" % number, b"<urn:b:%d>" % number)
    own, other = (b"WARC-Record-ID: " + name for name in names)
    link = b"WARC-Concurrent-To: " + names[0]
    asked = (b"Content-Type: application/http; msgtype=request",)
    if before:
        return [
            warc(request, *asked, own, kind=b"request", url=url),
            warc(http(b"%d" % number), other, link, url=url),
        ]
    return [
        warc(http(b"%d" % number), own, url=url),
        warc(request, *asked, other, link, kind=b"request", url=url),
    ]


def read(block: bytes) -> CaptureRequest | None:
    return read_request(BufferedBlock(block, 0, len(block)), 7)


@pytest.mark.parametrize("pack", [members, b"".join])
@pytest.mark.parametrize("before", [False, True])
def test_a_capture_has_the_method_and_the_query_of_its_request(pack, before) -> None:
    page = exchange(b"GET /api HTTP/1.1\r\n\r\n", 2, before=before)
    data = pack([*page, *exchange(post(), before=before), *page])
    first, answer, last = captures(data)
    for one in (first, last):
        assert (one.fetch_method, one.fetch_body, one.url_surtkey) == (None, None, "cz,a)/api?x=1")
    assert (answer.fetch_method, answer.fetch_body) == ("POST", "a=1&b=2")
    assert answer.url_surtkey == "cz,a)/api?__wb_method=post&a=1&b=2&x=1"
    place = answer.warc_request_offset
    assert place is not None
    assert (place < (answer.warc_record_offset or 0)) is before
    assert skips(data) == ["request"] * 3
    assert not codes(data)


@pytest.mark.parametrize("before", [False, True])
def test_records_of_one_gzip_member_are_joined_to_their_requests(before) -> None:
    """They wait for the member's checksum, and keep what was noted of each all the same."""
    page = exchange(b"GET /api HTTP/1.1\r\n\r\n", 2, before=before)
    data = gzip.compress(b"".join([*page, *exchange(post(), before=before), *page]), mtime=0)
    assert [one.fetch_method for one in captures(data)] == [None, "POST", None]
    damaged = bytearray(data)
    damaged[-8] ^= 1
    found = [(one.fetch_method, one.content_damaged) for one in captures(bytes(damaged))]
    assert found == [(None, "checksum")] * 3  # the damage may lie in the request


@pytest.mark.parametrize("pack", [members, frames])
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("among", [(), (warc(b"x: y", kind=b"metadata"),)])
def test_a_damaged_request_says_nothing(pack, before, among) -> None:
    """Neither that of a record of its own nor that of a member with several records."""
    records = exchange(b"FET /api HTTP/1.1\r\n\r\n", before=before)
    at = 0 if before else 1
    request = bytearray(pack([b"".join([records[at], *among])]))
    page = pack([records[1 - at]])
    for damaged, method in ((False, "FET"), (True, None)):
        if damaged:
            request[-8 if pack is members else -1] ^= 1  # of the checksum
        parts = (bytes(request), page) if before else (page, bytes(request))
        (one,) = captures(b"".join(parts))
        assert (one.fetch_method, one.content_damaged) == (method, None)


@pytest.mark.parametrize("method", [b"HEAD", b"OPTIONS", b"delete"])
def test_other_methods_have_no_query(method: bytes) -> None:
    (answer,) = captures(members(exchange(post(method=method))))
    name = method.decode().upper()
    assert (answer.fetch_method, answer.fetch_body) == (name, None)
    assert answer.url_surtkey == f"cz,a)/api?__wb_method={name.lower()}&x=1"


def test_a_revisit_has_the_method_of_its_own_request() -> None:
    response, request = exchange(post())
    revisit = response.replace(b"WARC-Type: response", b"WARC-Type: revisit")
    (found,) = captures(members([revisit, request]))
    assert (found.warc_record_type, found.fetch_method) == ("revisit", "POST")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [(b"<urn:a:1>", b"<urn:a:9>"), (URL, b"http://a.cz/other"), (b"POST /", b"220 ready /")],
)
def test_a_request_of_another_document_says_nothing(wrong: bytes, right: bytes) -> None:
    response, request = exchange(post())
    (found,) = captures(members([response, request.replace(wrong, right)]))
    assert found.fetch_method is None


@pytest.mark.parametrize(("between", "method"), [(NEAR - 1, "POST"), (NEAR, None)])
@pytest.mark.parametrize("before", [False, True])
def test_a_request_is_looked_for_near_its_document(between, method, before) -> None:
    one, other = exchange(post(), before=before)
    others = [warc(b"x: y", kind=b"metadata") for _ in range(between)]
    (found,) = captures(members([one, *others, other]))
    assert found.fetch_method == method


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), *[st.integers(0, 4)] * 2), max_size=60),
    st.lists(st.integers(1, 999), max_size=5),
)
@settings(max_examples=examples(200), deadline=None)
def test_ranges_of_any_exchanges_give_the_whole_or_cannot_be_joined(kinds, cuts) -> None:
    """Even if documents and requests name several of each other."""
    records = []
    for kind, own, other in kinds:
        names = (b"WARC-Record-ID: <urn:%d>" % own, b"WARC-Concurrent-To: <urn:%d>" % other)
        block = {b"response": http(b"1"), b"request": post(b"a=%d" % own)}.get(kind, b"x: y")
        records.append(warc(block, *names, kind=kind, url=URL))
    data = members(records)
    ranges = Ranges(data, [len(data) * cut // 1000 + 1 for cut in cuts])
    assert not ranges.met or anonymous(ranges.events) == anonymous(events(data))


MULTIPART = (
    b'--B\r\nContent-Disposition: form-data; name="a b"\r\n\r\n1\r\n'
    b'--B\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\n\xff\r\n\r\n--B--\r\n'
)
JSON = {"a": "b", "n": [1, 2.0, 3.5, True], "d": {"a": None, "e": "á &"}, "x": []}


@pytest.mark.parametrize(
    ("body", "media_type", "expected"),
    [
        (b"foo=bar&dir=%2Fbaz+x", FORM, "foo=bar&dir=/baz x"),
        (b"foo=bar&dir=%2Fbaz", FORM + b"; charset=utf-8", "foo=bar&dir=/baz"),
        (b"\x81\x9f", FORM, "__wb_post_data=gZ8="),
        (b"foo", b"application/octet-stream", "__wb_post_data=Zm9v"),
        (b"foo", b"", "__wb_post_data=Zm9v"),
        (b"foo", b"text/plain", "__wb_post_data=Zm9v"),
        (b'{"a": 1}', b"text/plain", "a=1"),
        (
            json.dumps(JSON).encode(),
            b"application/json",
            "a=b&n=1&n.2_=2&n.3_=3.5&n.4_=true&a.2_=null&e=%C3%A1+%26",
        ),
        (b"{", b"application/json", ""),
        (b'{"a": "\\ud800"}', b"application/json", ""),
        (b'{"a": 1e999}', b"text/plain", "__wb_post_data=eyJhIjogMWU5OTl9"),
        (b"[" * 100_000, b"application/json", ""),
        (b"7", b"application/json", ""),
        (MULTIPART, b"multipart/form-data; boundary=B", "a+b=1&f=%FF%0D%0A"),
        (b"x", b"multipart/form-data", "__wb_post_data=eA=="),
        (b"x", b"application/x-amf", ""),
        (b"a=\x00%01", FORM, "a=%00%01"),
        (b"", FORM, ""),
        (b"a=" + b"b" * 5000, FORM, "a=" + "b" * 4094),
        (b"a=" + b"b" * REQUEST_BYTES, FORM, "a=" + "b" * 4094),
        (b"b" * REQUEST_BYTES, b"x/y", "__wb_post_data=" + "YmJi" * 1020 + "Y"),
        (b'"' + b"b" * REQUEST_BYTES + b'"', b"application/json", ""),
    ],
)
def test_what_a_request_sent_as_a_query(body: bytes, media_type: bytes, expected: str) -> None:
    assert read(post(body, media_type)) == CaptureRequest("POST", expected, 7)


def test_the_length_that_a_request_declares_bounds_its_body() -> None:
    block = b"POST / HTTP/1.1\r\nContent-Type: x/y\r\nContent-Length: %b\r\n\r\nfoobar"
    for length, expected in ((b"3", "__wb_post_data=Zm9v"), (b"x", ""), (b"0", "")):
        assert read(block % length) == CaptureRequest("POST", expected, 7)
    data = block.replace(b"Content-Length: %b\r\n", b"")
    assert read(data) == CaptureRequest("POST", "__wb_post_data=Zm9vYmFy", 7)
    data = data.replace(
        b"\r\n\r\nfoobar", b"\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nfoo\r\n0\r\n\r\n"
    )
    assert read(data) == CaptureRequest("POST", "__wb_post_data=Zm9v", 7)


@pytest.mark.parametrize(
    ("raw", "text", "key"),
    [
        (b"http://a.cz/p", "a=1", "cz,a)/p?__wb_method=post&a=1"),
        (b"http://a.cz/p?b=2#f", "a=1", "cz,a)/p?__wb_method=post&a=1&b=2"),
        (b"http://a.cz/p", "a=x\ny z", "cz,a)/p?__wb_method=post&a=xy%20z"),
        (b"http://a.cz/p", None, "cz,a)/p?__wb_method=post"),
        (b"http://192.0.2.1/", "\xe1", "1,2,0,192)/?%c3%a1&__wb_method=post"),
    ],
)
def test_the_key_of_a_request(raw: bytes, text: str | None, key: str) -> None:
    assert surt.of_request(raw, "POST", text) == key
    assert surt.of_request(raw, None, None) == surt.of(raw)
