"""The demo's crawl: a WARC that others can read, the same every time with a fixed clock."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from builder.demo import FILE_NAME, Recording, record
from builder.demo.crawl import CrawlSummary, Politeness
from builder.demo.fetch import CrawlError

HASTY = Politeness(delay=0, pause=0, sleep=lambda seconds: None)


def ticking() -> Callable[[], datetime]:
    """A clock that goes on by a second whenever somebody looks at it."""
    now = datetime(2024, 5, 1, 8, tzinfo=UTC)

    def clock() -> datetime:
        nonlocal now
        now += timedelta(seconds=1)
        return now

    return clock


@dataclass
class Record:
    kind: str
    url: str | None
    warc: dict[str, str]
    status: str | None
    http: dict[str, str]
    body: bytes


def read(data: bytes) -> list[Record]:
    records = []
    for found in ArchiveIterator(BytesIO(data), check_digests="raise"):
        body = found.raw_stream.read()
        http = found.http_headers
        records.append(
            Record(
                kind=found.rec_type,
                url=found.rec_headers.get_header("WARC-Target-URI"),
                warc=dict(found.rec_headers.headers),
                status=http.get_statuscode() if http else None,
                http=dict(http.headers) if http else {},
                body=body,
            )
        )
    return records


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record(tmp_path_factory.mktemp("demo") / "new", ticking(), HASTY)


@pytest.fixture(scope="module")
def records(recording: Recording) -> list[Record]:
    return read(recording.path.read_bytes())


def test_summary_and_mix(recording: Recording, records: list[Record]) -> None:
    assert recording.summary == CrawlSummary(
        captures=58, revisits=25, redirects=2, errors=4, excluded=2
    )
    kinds = Counter(record.kind for record in records)
    assert kinds == {"warcinfo": 1, "response": 33, "revisit": 25, "request": 58}
    statuses = Counter(record.status for record in records if record.kind == "response")
    assert statuses == {"200": 27, "301": 2, "404": 4}
    assert records[0].kind == "warcinfo"
    assert b"isPartOf: sheaf-demo\r\n" in records[0].body
    assert records[0].warc["WARC-Filename"] == FILE_NAME


def test_only_the_file_is_left(recording: Recording) -> None:
    assert recording.path.name == FILE_NAME
    assert [path.name for path in recording.path.parent.iterdir()] == [FILE_NAME]


def test_every_record_has_its_own_id_and_belongs_to_the_warcinfo(records: list[Record]) -> None:
    ids = [record.warc["WARC-Record-ID"] for record in records]
    assert len(set(ids)) == len(ids)
    assert {record.warc["WARC-Warcinfo-ID"] for record in records[1:]} == {ids[0]}


def test_requests_follow_their_response(records: list[Record]) -> None:
    for answer, request in zip(records[1::2], records[2::2], strict=True):
        assert request.kind == "request"
        assert request.warc["WARC-Concurrent-To"] == answer.warc["WARC-Record-ID"]
        assert request.url == answer.url
        assert request.http["Host"] in str(request.url)
        assert request.http["User-Agent"] == "sheaf-demo-crawler"


def test_revisits_refer_to_a_response_with_the_same_payload(records: list[Record]) -> None:
    responses = {r.warc["WARC-Record-ID"]: r for r in records if r.kind == "response"}
    for revisit in (r for r in records if r.kind == "revisit"):
        first = responses[revisit.warc["WARC-Refers-To"]]
        assert revisit.warc["WARC-Profile"].endswith("1.1/revisit/identical-payload-digest")
        assert revisit.warc["WARC-Refers-To-Target-URI"] == first.url == revisit.url
        assert revisit.warc["WARC-Refers-To-Date"] == first.warc["WARC-Date"]
        assert revisit.warc["WARC-Payload-Digest"] == first.warc["WARC-Payload-Digest"]
        assert revisit.warc["WARC-Date"] > first.warc["WARC-Date"]
        assert revisit.http["Content-Length"] == first.http["Content-Length"]
        assert revisit.body == b""


def responses(records: list[Record], url: str) -> list[Record]:
    return [record for record in records if record.kind == "response" and record.url == url]


def test_particular_pages(records: list[Record]) -> None:
    (history,) = responses(records, "http://www.example.org/historie.html")
    assert history.http["Content-Type"] == "text/html"
    assert "žlutý dům" in history.body.decode("windows-1250")
    first, second = responses(records, "http://www.example.org/aktuality.html")
    assert first.body != second.body
    (blog,) = responses(records, "http://blog.example.org/")
    assert blog.http["Content-Encoding"] == "gzip"
    assert blog.body.startswith(b"\x1f\x8b")
    moved = responses(records, "http://www.example.org/oteviraci-doba")
    assert [record.status for record in moved] == ["301", "301"]
    for url in (
        "http://www.example.org/kontakt.html",
        "http://www.example.org/katalog?dotaz=l%C3%ADpa&strana=2",
        "http://www.example.org/akce/%C4%8Dten%C3%A1%C5%99sk%C3%A1-noc.html",
    ):
        assert responses(records, url)[0].status == "200"


def test_stays_on_the_hosts_and_obeys_robots(records: list[Record]) -> None:
    urls = [str(record.url) for record in records[1:]]
    assert not [url for url in urls if "/interni/" in url or "example.net" in url]
    assert urls.count("http://www.example.org/robots.txt") == 4  # two requests, two answers


def test_reproducible(tmp_path: Path, recording: Recording) -> None:
    again = record(tmp_path, ticking(), HASTY)
    assert again.path.read_bytes() == recording.path.read_bytes()


def test_a_clock_that_stands_still(tmp_path: Path) -> None:
    def still() -> datetime:
        return datetime(2024, 5, 1, tzinfo=UTC)

    one, two = (record(tmp_path / name, still, HASTY).path.read_bytes() for name in "ab")
    assert one == two
    ids = [record.warc["WARC-Record-ID"] for record in read(one)]
    assert len(set(ids)) == len(ids)


def test_politeness_waits(tmp_path: Path) -> None:
    waits: list[float] = []
    summary = record(tmp_path, ticking(), Politeness(sleep=waits.append)).summary
    assert Counter(waits) == {0.02: summary.captures, 1.1: 1}


def test_a_failed_crawl_leaves_an_earlier_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"earlier")

    def fail(*_: object) -> None:
        raise CrawlError("no")

    monkeypatch.setattr("builder.demo.crawl.fetch", fail)
    with pytest.raises(CrawlError):
        record(tmp_path, ticking(), HASTY)
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    assert (tmp_path / FILE_NAME).read_bytes() == b"earlier"
