"""Files kept as answers in a WARC: what other tools read there is what the platform served."""

import base64
import gzip
import hashlib
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from builder.sources.datasets.item import ArchiveStrategyResult, FilesetPlatformItem, HttpExchange
from builder.sources.datasets.manifest_file import compute_digests
from builder.sources.datasets.protocols import Received
from builder.sources.datasets.strategies.keys import RECORD, place, warc_key
from builder.sources.datasets.strategies.warc import WarcRecords
from builder.sources.datasets.strategies.web import BUNDLED, FILE, FILESET
from functions.snapshot.store import Writer
from tests.builder.sources.datasets.body import Body, Generated, whole, zipped
from tests.builder.sources.datasets.server import Server, redirect, served
from tests.builder.sources.datasets.world import AGENT, World, manifest_file, world

pytestmark = pytest.mark.shared(2)

START = 1_800_000_000.0
AT = "20270115080000"
TARGET = "WARC-Target-URI"
BASE = "https://data.example.org/files/"
BODIES: dict[str, Body] = {
    "a.csv": b"a,b\n1,2\n",
    "deep/b.bin": Generated(300_000, seed=2),
    "empty": b"",
}


@pytest.fixture
def there(server: Server, tmp_path: Path) -> World:
    for path, body in BODIES.items():
        server.add(BASE + path, served(body, "text/csv" if path == "a.csv" else "image/png"))
    return world(server, tmp_path, wall=lambda: START)


def item(*paths: str, **more: Any) -> FilesetPlatformItem:
    return FilesetPlatformItem(
        platform_name="zenodo",
        platform_domain="data.example.org",
        platform_id="17",
        manifest=tuple(manifest_file(BASE + path, BODIES[path], path) for path in paths),
        **more,
    )


def records(store: Writer, key: str) -> list[tuple[Any, bytes]]:
    with store.open(key) as stream:
        return [
            (record, record.content_stream().read())
            for record in ArchiveIterator(stream, check_digests="raise")
        ]


def test_files_are_answers_in_one_warc(there: World, store: Writer) -> None:
    found = there.strategy(FILESET, store).process(item(*BODIES))
    key = warc_key(item(*BODIES), AT)
    assert found.status == "success"
    assert found.location == key
    assert list(store.keys("")) == [place(item(*BODIES)) + RECORD, key]
    first, *others = records(store, key)
    answers, requests = others[::2], others[1::2]
    for (request, sent), (answer, _) in zip(requests, answers, strict=True):
        named = {name: request.rec_headers[name] for name in ("WARC-Concurrent-To", TARGET)}
        told = answer.rec_headers
        assert named == {"WARC-Concurrent-To": told["WARC-Record-ID"], TARGET: told[TARGET]}
        assert request.rec_type == "request"
        assert request.http_headers["Host"] == "data.example.org"
        assert request.http_headers["User-Agent"] == AGENT
        assert told["WARC-IP-Address"] == request.rec_headers["WARC-IP-Address"] == "127.0.0.1"
        assert told["WARC-Block-Digest"]  # and warcio has compared it
        assert sent == b""
    assert first[0].rec_type == "warcinfo"
    assert b"software: Sheaf" in first[1]
    assert first[0].rec_headers["WARC-Filename"] == key.removeprefix("warcs/")
    assert len(answers) == len(BODIES)
    for (record, body), file in zip(answers, found.manifest, strict=True):
        data = whole(BODIES[file.path])
        assert body == data
        assert record.rec_type == "response"
        assert record.rec_headers["WARC-Target-URI"] == BASE + file.path == file.terminal_url
        assert record.rec_headers["WARC-Date"] == "2027-01-15T08:00:00Z"
        sha1 = base64.b32encode(hashlib.sha1(data).digest()).decode()
        assert record.rec_headers["WARC-Payload-Digest"] == f"sha1:{sha1}"
        assert record.http_headers.get_statuscode() == "200"
        assert record.http_headers["ETag"]
        assert (file.status, file.key, file.compression) == ("verified", key, "warc")
        assert file.sha256 == hashlib.sha256(data).hexdigest()
        assert file.offset is not None  # and each record is a member that is read alone
        member = store.read(key)[file.offset :][: file.extra["warc_length"]]
        assert len([*ArchiveIterator(io.BytesIO(member))]) == 1
        alone = next(iter(ArchiveIterator(io.BytesIO(member))))
        assert alone.rec_headers["WARC-Target-URI"] == file.terminal_url
        assert alone.content_stream().read() == data


def test_what_shrinks_is_packed_and_what_does_not_is_not(there: World, store: Writer) -> None:
    text = b"a,b,c\n" * 50_000
    there.server.add(BASE + "text", served(text))
    manifest = (manifest_file(BASE + "text", text, "text"), *item("deep/b.bin").files)
    wanted = FilesetPlatformItem(platform_name="p", manifest=manifest)
    found = there.strategy(FILESET, store).process(wanted)
    packed, plain = (file.extra["warc_length"] for file in found.manifest)
    assert packed < len(text) / 10
    assert plain < 300_000 + 2000
    assert [body for _, body in records(store, found.location or "")][1] == text


def test_one_file_has_a_line_of_an_index(there: World, store: Writer) -> None:
    found = there.strategy(FILE, store).process(item("a.csv"))
    assert found.status == "success-file"
    line, meta, terminal = found.file_cdx, found.file_file_meta, found.file_terminal
    assert line.surt == "org,example,data)/files/a.csv"
    assert (line.datetime, line.url, line.status_code) == (AT, BASE + "a.csv", 200)
    assert line.mimetype == "text/csv"
    assert (line.warc_path, line.warc_offset) == (found.location, found.manifest[0].offset)
    assert line.warc_csize == found.manifest[0].extra["warc_length"]
    assert base64.b32decode(line.sha1b32).hex() == meta.sha1hex == terminal.terminal_sha1hex
    assert meta.size_bytes == 8


def test_two_versions_of_one_second_have_a_warc_each(there: World, store: Writer) -> None:
    strategy = there.strategy(FILESET, store)
    first, second = (strategy.process(replace(item(*BODIES), version=v)) for v in ("1", "2"))
    assert (second.status, second.location == first.location) == ("success", False)
    assert strategy.process(replace(item(*BODIES), version="2")).status == "success-existing"


@pytest.mark.sampled(2)
def test_another_run_that_was_first_is_believed(there: World, store: Writer) -> None:
    """Its WARC is what is recorded, and the later one's is gone."""
    first = there.strategy(FILESET, store)

    def overtaken() -> None:
        if not list(store.keys(place(wanted))):
            done.append(first.process(wanted))

    wanted = item(*BODIES)
    done: list[ArchiveStrategyResult] = []
    late = replace(first, wall=lambda: START + 60, go_on=overtaken)
    assert late.process(wanted) == done[0]
    assert AT in (done[0].location or "")
    assert list(store.keys("warcs/")) == [done[0].location]


def test_a_coding_that_was_taken_off_is_told_by_another_name(there: World, store: Writer) -> None:
    body = b"a,b\n" * 1000
    there.server.add(BASE + "a.csv", served(body, "text/csv", coding="gzip"))
    there.server.add(BASE + "empty", served(b"xyz", chunked=True))
    wanted = FilesetPlatformItem(
        platform_name="p",
        manifest=(
            manifest_file(BASE + "a.csv", body, "a.csv"),
            manifest_file(BASE + "a.csv", gzip.compress(body, mtime=0), "a.csv.gz"),
            manifest_file(BASE + "empty", b"xyz", "c"),
        ),
    )
    found = there.strategy(FILESET, store).process(wanted)
    _, plain, _, packed, _, chunked, _ = records(store, found.location or "")
    assert plain[1] == body
    assert plain[0].http_headers["Content-Length"] == str(len(body))
    assert plain[0].http_headers["X-Archive-Orig-Content-Encoding"] == "gzip"
    assert plain[0].http_headers["Content-Encoding"] is None
    assert packed[1] == body  # the reader of the WARC takes it off
    assert packed[0].http_headers["Content-Encoding"] == "gzip"
    assert chunked[1] == b"xyz"
    assert chunked[0].http_headers["X-Archive-Orig-Transfer-Encoding"] == "chunked"


BUNDLE = "https://data.example.org/all.zip"


def test_the_bundle_of_a_platform_is_one_answer(there: World, store: Writer) -> None:
    data = zipped({"a.csv": b"a,b\n1,2\n", "empty": b"", "MANIFEST.TXT": b"x"})
    there.server.add(BUNDLE, redirect("https://store.example.net/z?signature=1"))
    there.server.add("https://store.example.net/z?signature=1", served(data, "application/zip"))
    found = there.strategy(BUNDLED, store).process(item("a.csv", "empty", web_bundle_url=BUNDLE))
    assert found.status == "success"
    assert found.bundle_file_meta.sha256hex == hashlib.sha256(data).hexdigest()
    assert found.bundle_terminal.terminal_url.startswith("https://store.example.net/z")
    _, hop, asked, answer, _ = records(store, found.location or "")
    assert answer[1] == data
    assert [one[0].rec_headers[TARGET] for one in (hop, asked)] == [BUNDLE, BUNDLE]
    assert hop[0].http_headers["Location"] == answer[0].rec_headers[TARGET]
    assert [(f.path, f.status, f.extra.get("member")) for f in found.manifest] == [
        ("a.csv", "verified", "a.csv"),
        ("empty", "verified", "empty"),
        ("MANIFEST.TXT", "bundle-extra-member", "MANIFEST.TXT"),
    ]
    assert {f.offset for f in found.manifest} == {found.bundle_cdx.warc_offset}


_LINE = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@settings(deadline=None)
@given(
    body=st.binary(max_size=500),
    headers=st.lists(st.tuples(st.from_regex(r"[A-Za-z-]{1,20}", fullmatch=True), _LINE)),
    reason=_LINE,
)
def test_any_answer_makes_a_record_that_others_read(
    body: bytes, headers: list[tuple[str, str]], reason: str
) -> None:
    received = Received(
        size=len(body),
        verified=None,
        media_type=None,
        last=HttpExchange(
            url="https://a.example.org/x", at=AT, status=200, reason=reason, headers=tuple(headers)
        ),
        **compute_digests([body]).every(),
    )
    out = io.BytesIO()
    placed = WarcRecords(out, "warcs/x.warc.gz", AT, "about\r\nEvil: header").response(
        received, lambda: [body]
    )
    assert placed.offset + placed.bytes < len(out.getvalue())
    out.seek(0)
    raw = [(r.rec_type, r.raw_stream.read()) for r in ArchiveIterator(out, no_record_parse=True)]
    assert [kind for kind, _ in raw] == ["warcinfo", "response", "request"]
    assert b"\r\nEvil:" not in raw[0][1]
    head, _, payload = raw[1][1].partition(b"\r\n\r\n")
    assert payload == body
    assert head.count(b"\r\n") >= len(headers)
