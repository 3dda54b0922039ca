"""Content over HTTP: statuses, conditions, parts, Memento headers, the access log."""

import base64
import io
import json
import logging
from contextlib import closing
from datetime import UTC, datetime
from typing import BinaryIO

import pytest

from functions.content import handler
from functions.content.handler import AHEAD, PART
from functions.content.protocols import STATUSES, ByteRange, Content, ContentError
from functions.http import aws
from functions.snapshot.errors import DamagedStore, StoreUnavailable
from tests.functions.content.fakes import ID, URL, Asker, FakeContents, FakeSearch, Made, sha1

TEXT = b"0123456789"
SOME = Made(TEXT, headers=(("Content-Type", "text/plain"), ("Set-Cookie", "a=1")))
TAG = f'"{sha1(TEXT)}"'
NO_RANGES = (
    *("bytes=0-1,3-4", "bytes=", "bytes=-", "bytes=5-4", "lines=0-1", "bytes=x-", "bytes=--1"),
    "0-1",
)
BEHIND = ("10-", "99-100", "-0")


def test_a_capture_comes_with_what_was_archived_of_it() -> None:
    got = Asker(SOME).get()
    assert (got.status, got.body) == (200, TEXT)
    told = {
        "Content-Type": "text/plain",
        "Content-Length": "10",
        "Accept-Ranges": "bytes",
        "Cache-Control": "public, max-age=86400, must-revalidate",
        "ETag": TAG,
        "Memento-Datetime": "Mon, 05 Nov 2007 10:20:30 GMT",
        "X-Archive-Orig-Content-Type": "text/plain",
        "X-Archive-Orig-Set-Cookie": "a=1",
        "X-Archive-Status": "200",
        "X-Archive-Payload-Digest": sha1(TEXT),
        "Repr-Digest": "sha=:h6zsF82dzSCnFsws9nQXtxyKcBY=:",
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "*",
    }
    assert {name: got.headers.get(name) for name in told} == told
    base = "https://oai.example.org"
    assert got.headers["Link"] == (
        f'<{URL}>; rel="original", '
        f'<{base}/timemap/link/{URL}>; rel="timemap"; type="application/link-format", '
        f'<{base}/timegate/{URL}>; rel="timegate", '
        f'<{base}/web/20071105102030/{URL}>; rel="first last memento"; '
        'datetime="Mon, 05 Nov 2007 10:20:30 GMT"'
    )
    assert "Set-Cookie" not in got.headers


@pytest.mark.parametrize("size", [10, 3 * AHEAD])
def test_a_failing_search_keeps_no_bytes_back(caplog: pytest.LogCaptureFixture, size: int) -> None:
    asker = Asker(Made(b"a" * size), search=FakeSearch(DamagedStore("urls is damaged")))
    got = asker.get()
    assert (got.status, len(got.body)) == (200, size)
    assert 'rel="timegate"' in got.headers["Link"]
    assert "memento" not in got.headers["Link"]
    assert [one.message.count("urls is damaged") for one in caplog.records] == [1]


def test_a_fault_of_the_search_leaves_nothing_open(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # three hundred tracebacks take seconds to format
    asker = Asker(Made(b"a" * 3 * AHEAD), search=FakeSearch(KeyError("a fault")))
    for _ in range(300):  # more than may be under way at once
        assert asker.get().status == 503
    asker.search.broken = None
    assert (asker.get().status, asker.contents.open) == (200, 0)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"range": "bytes=0-1"}, 206),
        ({"range": "bytes=99-"}, 416),
        ({"if_none_match": TAG}, 304),
        ({"if_none_match": '"another"'}, 200),
        ({"if_match": '"another"'}, 412),
    ],
)
def test_parts_and_conditions_look_for_no_neighbours(headers: dict[str, str], status: int) -> None:
    asker = Asker(SOME)
    assert (asker.get(**headers).status, asker.search.count) == (status, 0)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (
            # A redirect is not followed.
            Made(b"", status=302, headers=(("Location", "http://evil.example/"),)),
            {
                "X-Archive-Status": "302",
                "X-Archive-Orig-Location": "http://evil.example/",
                "Location": None,
            },
        ),
        # What is not known to stay is asked about each time.
        (Made(TEXT, is_capture=False), {"Cache-Control": "no-cache"}),
        (Made(TEXT, facts={"truncated": "length"}), {"X-Archive-Truncated": "length"}),
    ],
)
def test_what_else_is_known_is_told(made: Made, told: dict[str, str | None]) -> None:
    got = Asker(made).get()
    assert got.status == 200
    assert {name: got.headers.get(name) for name in told} == told


@pytest.mark.parametrize("path", [f"/content/{ID}", f"/content/{ID.replace(':', '%3A')}"])
def test_an_identifier_may_be_coded_or_not(path: str) -> None:
    assert Asker(SOME).get(path).body == TEXT


def test_an_identifier_may_be_an_argument() -> None:
    assert Asker(SOME).get("/content", f"id={ID}").body == TEXT
    asker = Asker(contents=FakeContents({"oai:example.org:x%2520y": SOME}))
    assert asker.get("/content", "id=oai:example.org:x%252520y").body == TEXT


def test_a_file_is_asked_for_by_its_own_address() -> None:
    asker = Asker(contents=FakeContents({"http://a.cz/paper.pdf": SOME}))
    got = asker.get("/content/http%3A%2F%2Fa.cz%2Fpaper.pdf", "at=2026-03")
    assert got.body == TEXT
    assert asker.contents.asked[-1] == (
        None,
        "http://a.cz/paper.pdf",
        datetime(2026, 3, 31, 23, 59, 59, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024", (2024, 12, 31, 23, 59, 59)),
        ("2024-02", (2024, 2, 29, 23, 59, 59)),
        ("20240229", (2024, 2, 29, 23, 59, 59)),
        ("2024022910", (2024, 2, 29, 10, 59, 59)),
        ("2024-02-29T10:11Z", (2024, 2, 29, 10, 11, 59)),
        ("2024-02-29T10:11:12Z", (2024, 2, 29, 10, 11, 12)),
        ("2024-02-29T10:11:12.345Z", (2024, 2, 29, 10, 11, 12)),
        ("20240229101112", (2024, 2, 29, 10, 11, 12)),
    ],
)
def test_a_date_stands_for_its_last_second(text: str, instant: tuple[int, ...]) -> None:
    asker = Asker(SOME)
    assert asker.get(f"/content/{ID}", f"at={text}").status == 200
    assert asker.contents.asked[-1][2] == datetime(*instant, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/content", ""),
        ("/content/", ""),
        ("/content", "id="),
        ("/content/" + ID, "id=" + ID),
        ("/content/" + ID, "head=1"),
        ("/content/" + ID, "coded=1&coded=1"),
        ("/content/" + ID, "coded=yes"),
        ("/content/" + ID, "at=yesterday"),
        ("/content/" + ID, "at=20230229"),
        ("/content/" + ID, "at=0000"),
        ("/content/" + ID, "at=2024-01-01T00:00:00"),
        ("/content/" + ID, "file=" + "x" * 9000),
        ("/content/" + "x" * 9000, ""),
        ("/content/" + ID, "x" * 70_000),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(path: str, query: str) -> None:
    got = Asker(SOME).get(path, query)
    assert (got.status, got.headers["X-Archive-Error"]) == (400, "argument")
    assert got.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert got.body.count(b"\n") == 1
    assert got.body.endswith(b".\n")


@pytest.mark.parametrize(("code", "status"), STATUSES.items())
def test_why_there_are_no_bytes_is_told(code: str, status: int) -> None:
    asker = Asker(ContentError(code, "it is not so"))
    got = asker.get()
    assert (got.status, got.body) == (status, b"it is not so.\n")
    assert got.headers["X-Archive-Error"] == code
    assert ("Retry-After" in got.headers) == (status == 503)
    assert json.loads(asker.lines[-1])["errors"] == [code]


def test_what_is_unknown_is_looked_for_in_every_reading_of_the_path() -> None:
    asker = Asker(SOME)
    got = asker.get("/content/oai%3Anobody")
    assert (got.status, got.headers["X-Archive-Error"]) == (404, "unknown")
    assert [file for _, file, _ in asker.contents.asked] == ["oai%3Anobody", "oai:nobody"]
    assert asker.get("/content/oai:nobody", "file=a.csv").status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "BREW"])
def test_nothing_is_changed_here(method: str) -> None:
    answer = Asker(SOME).raw(method=method)
    assert (answer["statusCode"], answer["headers"]["Allow"]) == (405, "GET, HEAD, OPTIONS")


def test_other_sites_may_ask() -> None:
    answer = Asker(SOME).raw(method="OPTIONS")
    assert answer["statusCode"] == 204
    assert answer["headers"]["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"


def test_a_head_reads_nothing() -> None:
    asker = Asker(SOME)
    got = asker.get(method="HEAD")
    assert (got.status, got.body, got.headers["Content-Length"]) == (200, b"", "10")
    assert asker.contents.read == 0


@pytest.mark.parametrize("count", [0, 10, 1_000_000])
@pytest.mark.parametrize("largest", [None, aws.LARGEST])
def test_a_head_says_what_a_get_does(count: int, largest: int | None) -> None:
    """A length that is not known before is known of what is small, when it was read."""
    asker = Asker(Made(bytes(count), size=None), largest=largest)
    whole, head = asker.get(), asker.get(method="HEAD")
    assert (head.status, head.body, head.headers) == (whole.status, b"", whole.headers)
    assert ("Content-Length" in head.headers) == (count < AHEAD or largest is not None)
    assert asker.contents.open == 0


@pytest.mark.parametrize("held", [TAG, "*", f'"x", {TAG}', f"W/{TAG}"])
def test_who_holds_it_is_not_sent_it_again(held: str) -> None:
    asker = Asker(SOME)
    got = asker.get(if_none_match=held)
    assert (got.status, got.body, got.headers["ETag"]) == (304, b"", TAG)
    assert "Content-Length" not in got.headers
    assert asker.contents.read == 0


@pytest.mark.parametrize(
    ("match", "status"), [(TAG, 200), ("*", 200), (f"W/{TAG}", 412), ('"x"', 412), ("x", 412)]
)
def test_parts_of_other_bytes_are_refused_by_if_match(match: str, status: int) -> None:
    assert Asker(SOME).get(if_match=match).status == status


@pytest.mark.parametrize(
    ("wanted", "payload", "status", "headers"),
    [
        # None or several are answered whole, and of nothing there is no part.
        *((wanted, TEXT, 200, {"Content-Length": "10"}) for wanted in NO_RANGES),
        ("bytes=0-", b"", 200, {"Content-Length": "0"}),
        # What lies behind the end is told.
        *((f"bytes={w}", TEXT, 416, {"Content-Range": "bytes */10"}) for w in BEHIND),
    ],
)
def test_a_range_that_has_no_part(
    wanted: str, payload: bytes, status: int, headers: dict[str, str]
) -> None:
    got = Asker(Made(payload)).get(range=wanted)
    assert got.status == status
    assert {name: got.headers[name] for name in headers} == headers
    assert status == 416 or got.body == payload


@pytest.mark.parametrize("size", [-1, None])
@pytest.mark.parametrize(
    ("wanted", "part", "body"),
    [
        ("bytes=0-", "0-9", TEXT),
        ("bytes=0-3", "0-3", b"0123"),
        ("bytes=3-3", "3-3", b"3"),
        ("bytes=7-1000", "7-9", b"789"),
        ("bytes=-3", "7-9", b"789"),
        ("bytes=-30", "0-9", TEXT),
        (" bytes = 2-4 ", "2-4", b"234"),
        ("Bytes=2-4", "2-4", b"234"),
        (f"bytes=7-{10**25}", "7-9", b"789"),
    ],
)
def test_a_part_is_given(wanted: str, part: str, body: bytes, size: int | None) -> None:
    got = Asker(Made(TEXT, size=size)).get(range=wanted)
    assert (got.status, got.body) == (206, body)
    assert got.headers["Content-Range"] == f"bytes {part}/10"
    assert got.headers["Content-Length"] == str(len(body))
    assert got.headers["ETag"] == TAG


@pytest.mark.parametrize(
    ("held", "status"),
    [(TAG, 206), (f"W/{TAG}", 200), ('"x"', 200), ("Mon, 05 Nov 2007 10:20:30 GMT", 200)],
)
def test_a_part_goes_on_with_the_same_bytes_alone(held: str, status: int) -> None:
    assert Asker(SOME).get(range="bytes=5-", if_range=held).status == status


def test_a_range_counts_for_get_alone() -> None:
    got = Asker(SOME).get(method="HEAD", range="bytes=0-1")
    assert (got.status, got.headers["Content-Length"]) == (200, "10")


def test_the_payload_as_stored_is_another_representation() -> None:
    asker = Asker(Made(TEXT, stored=b"coded!", facts={"coded": "gzip"}))
    plain, coded = asker.get(), asker.get(f"/content/{ID}", "coded=1")
    assert (plain.body, coded.body) == (TEXT, b"coded!")
    assert plain.headers["X-Archive-Coded"] == "gzip"
    assert plain.headers["ETag"] != coded.headers["ETag"]
    assert plain.headers["X-Archive-Payload-Digest"] == sha1(b"coded!")
    # Only the bytes as stored have the digest that is known.
    assert "Repr-Digest" in coded.headers
    assert "Repr-Digest" not in plain.headers
    assert "Content-Encoding" not in coded.headers


def test_a_part_of_what_lies_open_is_read_there() -> None:
    asked: list[tuple[int, int]] = []

    def open_part(content: Content, first: int, length: int) -> BinaryIO:
        asked.append((first, length))
        return io.BytesIO(TEXT[first : first + length])

    asker = Asker(Made(TEXT, stretch=ByteRange("a.warc", 4, 10)))
    asker.contents.open_part = open_part  # type: ignore[method-assign]
    got = asker.get(range="bytes=3-5")
    assert (got.status, got.body) == (206, b"345")
    assert asked == [(3, 3)]
    assert asker.contents.read == 0
    assert asker.get().body == TEXT  # the whole is held against its digest
    assert asker.contents.read == 10


def signed(bucket: str, key: str, method: str, disposition: str) -> str:
    assert disposition.startswith("attachment")
    return f"https://{bucket}.example/{key}?{method}"


BIG = Made(TEXT * 10, stretch=ByteRange("s3://b/k", 0, None, "b", "k"), is_capture=False)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_large_object_of_a_bucket_is_had_there(method: str) -> None:
    got = Asker(BIG, sign=signed, content_redirect_bytes=99).get(method=method)
    assert (got.status, got.headers["Location"]) == (302, f"https://b.example/k?{method}")
    assert got.headers["Cache-Control"] == "no-store"
    assert not {"ETag", "Memento-Datetime", "Repr-Digest"} & {*got.headers}
    assert got.headers["X-Archive-Payload-Digest"] == sha1(TEXT * 10)


def test_what_is_small_is_answered_here_and_parts_are_had_where_the_whole_is() -> None:
    assert Asker(BIG, sign=signed, content_redirect_bytes=100).get().body == TEXT * 10
    asker = Asker(BIG, sign=signed, content_redirect_bytes=99)
    assert asker.get(range="bytes=1-9").status == 302
    assert asker.get(if_none_match="*").status == 304
    assert asker.contents.read == 0


def test_a_head_has_no_body_whatever_it_is_answered_with() -> None:
    refused = Asker(SOME).get(method="HEAD", if_match='"x"')
    moved = Asker(BIG, sign=signed, content_redirect_bytes=99).get(method="HEAD")
    large = Asker(Made(bytes(7_000_000)), largest=aws.LARGEST).get(method="HEAD")
    for got, status in ((refused, 412), (moved, 302), (large, 413)):
        assert (got.status, got.body) == (status, b"")
        assert int(got.headers["Content-Length"]) > 0


@pytest.mark.parametrize(
    "stretch",
    [
        ByteRange("s3://b/k", 7, None, "b", "k"),
        ByteRange("s3://b/k", 0, 9, "b", "k"),
        ByteRange("/k", 0, None),
    ],
)
def test_nothing_but_a_whole_object_is_had_elsewhere(stretch: ByteRange) -> None:
    asker = Asker(Made(TEXT, stretch=stretch), sign=signed, content_redirect_bytes=0)
    assert asker.get().status == 200


@pytest.mark.parametrize("size", [-1, None])
def test_lambda_gives_what_is_too_large_in_parts(size: int | None) -> None:
    payload = bytes(range(256)) * 40_000
    asker = Asker(Made(payload, size=size), largest=aws.LARGEST)
    refused = asker.get()
    assert (refused.status, refused.headers["Accept-Ranges"]) == (413, "bytes")
    assert b"Range: bytes=0-" in refused.body
    got = bytearray()
    while len(got) < len(payload):
        answer = asker.get(range=f"bytes={len(got)}-", if_range=refused.headers["ETag"])
        assert answer.status == 206
        assert len(answer.body) <= PART
        got += answer.body
    assert got == payload
    packed = {**answer.headers, "": base64.b64encode(answer.body).decode()}
    assert len(json.dumps(packed)) <= aws.LARGEST


def test_the_size_that_took_reading_everything_is_remembered() -> None:
    asker = Asker(Made(bytes(1_000_000), size=None))
    asker.get(range="bytes=0-0")
    first = asker.contents.read
    asker.get(range="bytes=1-1")
    assert first > 1_000_000
    assert asker.contents.read - first < 1000


def test_what_inflates_to_any_number_of_bytes_is_not_counted_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handler, "COUNTED", 1_000_000)
    asker = Asker(Made(b"", size=None))
    asker.contents.zeros = 1 << 40
    for _ in range(3):
        answer = asker.raw(range="bytes=0-1")
        with closing(answer["body"]):
            assert (answer["statusCode"], "Content-Range" in answer["headers"]) == (200, False)
    assert asker.contents.read < 1_000_000 + 3 * 2 * AHEAD  # and once alone


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_bytes_that_turn_out_to_be_others_never_come_whole(size: int) -> None:
    broken = ContentError("damaged", "the digest is another one")
    asker = Asker(Made(bytes(size), broken=broken))
    if size < 1000:
        assert asker.get().status == 502
    else:
        answer = asker.raw()
        assert answer["headers"]["Content-Length"] == str(size)
        got: list[bytes] = []
        with pytest.raises(ContentError, match="another"):
            got.extend(answer["body"])
        assert sum(map(len, got)) < size
    assert asker.contents.open == 0
    assert json.loads(asker.lines[-1])["errors"] == ["damaged"]


@pytest.mark.parametrize("largest", [None, aws.LARGEST])
@pytest.mark.parametrize(
    ("told", "held"),
    [(1, 2), (1, 1_000_000), (2, 1), (1_000_000, 1_000_001), (1_000_000, 1_500_000)],
)
def test_no_more_and_no_fewer_bytes_come_than_were_told(
    told: int, held: int, largest: int | None
) -> None:
    """Even of what has the digest that it is to have: a server cuts what is too long."""
    asker = Asker(Made(bytes(held), size=told), largest=largest)
    if told < AHEAD or largest is not None:
        assert asker.get().status == 502
    else:
        answer = asker.raw()
        assert answer["headers"]["Content-Length"] == str(told)
        got: list[bytes] = []
        with pytest.raises(ContentError, match="more than the"):
            got.extend(answer["body"])
        assert sum(map(len, got)) < told
    assert asker.contents.open == 0
    assert json.loads(asker.lines[-1])["errors"] == ["damaged"]


def test_the_log_tells_what_went_out_and_not_what_was_to() -> None:
    asker = Asker(Made(bytes(1_000_000)))
    answer = asker.raw()
    assert asker.lines == []
    next(answer["body"])
    answer["body"].close()
    answer["body"].close()
    (line,) = map(json.loads, asker.lines)
    assert (line["status"], line["path"], line["identifier"]) == (200, f"/content/{ID}", ID)
    assert 0 < line["bytes"] < 1_000_000
    assert asker.contents.open == 0


def test_a_store_out_of_reach_is_503() -> None:
    asker = Asker(SOME)

    def away(*args: object) -> None:
        raise StoreUnavailable("s3://secret does not answer")

    asker.repository.record = away  # type: ignore[assignment]
    got = asker.get()
    assert (got.status, got.headers["Retry-After"]) == (503, "30")
    assert b"secret" not in got.body


def test_streams_are_not_without_number() -> None:
    asker = Asker(Made(bytes(1_000_000)))
    answers = [asker.raw() for _ in range(257)]
    assert [a["statusCode"] for a in answers] == [200] * 256 + [503]
    for answer in answers[:-1]:
        answer["body"].close()
    assert asker.get().status == 200


def test_it_takes_its_own_paths_alone() -> None:
    application = Asker(SOME).application
    taken = ["/content", "/content/x", "/cdx", "/timemap/link/http://a/", "/timegate/http://a/"]
    assert all(application.takes(path) for path in taken)
    left = ["/", "/oai", "/contents", "/cdxx", "/timemaps/x", ""]
    assert not any(application.takes(path) for path in left)
    mounted = Asker(SOME, repository_base_url="https://a.org/x/oai")
    assert mounted.get("/x/content/" + ID).headers["Link"].count("<https://a.org/x/time") == 2


@pytest.mark.parametrize(
    ("path", "query", "status", "media_type", "told"),
    [
        ("/cdx", f"url={URL}", 200, "text/x-cdxj", b"cz,a)/dir/page.txt 20071105102030 {"),
        ("/cdx", "url=", 400, "text/plain", b""),
        (f"/timemap/link/{URL}", "", 200, "application/link-format", b'rel="original"'),
        (f"/timegate/{URL}", "", 302, "text/plain", b"https://oai.example.org/web/2007"),
        ("/timegate/http://b.cz/", "", 404, "text/plain", b"no memento"),
    ],
)
def test_lists_are_answered_beside_contents(
    path: str, query: str, status: int, media_type: str, told: bytes
) -> None:
    asker = Asker(SOME)
    got = asker.get(path, query)
    assert (got.status, got.headers["Content-Type"]) == (status, f"{media_type}; charset=utf-8")
    assert told in got.body
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert json.loads(asker.lines[-1])["snapshot"] == 1
    assert asker.get(path, query, method="HEAD").body == b""


def test_a_timegate_leads_to_the_memento() -> None:
    asker = Asker(SOME)
    where = asker.get(f"/timegate/{URL}").headers["Location"]
    got = asker.get(where.removeprefix("https://oai.example.org"))
    assert (got.status, got.headers["Memento-Datetime"]) == (200, "Mon, 05 Nov 2007 10:20:30 GMT")


@pytest.mark.parametrize(("path", "query"), [(f"/content/{ID}", ""), ("/cdx", f"url={URL}")])
def test_content_and_lists_are_opt_in(path: str, query: str) -> None:
    got = Asker(SOME, content_serve=False).get(path, query)
    assert (got.status, got.headers["X-Archive-Error"]) == (404, "disabled")
