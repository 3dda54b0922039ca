"""Every record, published or left out, lies where the reader says, whatever contains it."""

import hashlib
import zlib
from itertools import accumulate, pairwise

import pytest
import zstandard

from builder.intake.captures import Capture
from builder.sources.webarchives.events import Skipped
from builder.sources.webarchives.rules import DocumentRules
from tests.builder.sources.webarchives.containers import (
    ALL,
    arc,
    codes,
    dictionary,
    dictionary_frame,
    events,
    faults,
    filedesc,
    frame,
    http,
    members,
    sha1,
    skippable,
    warc,
    zipped,
)

PAGE = http(b"<title>a</title>")
NOT_MODIFIED = http(b"", status=b"HTTP/1.1 304 Not Modified")
MOVED = http(b"", b"Location: /b", status=b"HTTP/1.1 302 Found")
WARCS = [
    ("warcinfo", warc(b"software: x\r\n", kind=b"warcinfo", url=None)),
    ("response", warc(PAGE)),
    ("request", warc(b"GET / HTTP/1.0\r\n\r\n", kind=b"request")),
    ("metadata", warc(b"via: x\r\n", kind=b"metadata")),
    ("redirect", warc(MOVED)),
    ("error", warc(http(b"gone", status=b"HTTP/1.1 404 Not Found"))),
    ("revisit", warc(NOT_MODIFIED, kind=b"revisit")),
    ("dns", warc(b"20080430204825\na.cz. 60 IN A 192.0.2.1\n", url=b"dns:a.cz")),
    ("resource", warc(b"<p>text", b"Content-Type: text/html", kind=b"resource")),
    ("conversion", warc(b"text", kind=b"conversion")),
    ("continuation", warc(b"rest", b"WARC-Segment-Number: 2", kind=b"continuation")),
    ("no-target-uri", warc(PAGE, url=None)),
    ("unknown-type", warc(b"x", kind=b"other")),
    ("damaged", warc(b"", length=b"none")),
    ("pageinfo", warc(b"{}", kind=b"resource", url=b"urn:pageinfo:http://a.cz/")),
    ("response", warc(b"")),
]
ARCS = [
    ("filedesc", filedesc()),
    ("response", arc(PAGE)),
    ("dns", arc(b"20080430204825\n", b"dns:a.cz", mime=b"text/dns")),
    ("error", arc(http(b"", status=b"HTTP/1.0 500 Oops"))),
    ("response", arc(b"no head", mime=b"no-type")),
    ("response", arc(b"")),
]
TRAINED = dictionary()


def plain(record):
    return record


def trained(record):
    return frame(record, TRAINED)


@pytest.mark.parametrize("between", [b"", b"some"], ids=["", "empty-ones-between"])
@pytest.mark.parametrize("pack", [plain, zipped, frame, trained])
@pytest.mark.parametrize("records", [WARCS, ARCS], ids=["warc", "arc"])
def test_each_record_is_told_with_its_place(records, pack, between):
    head = dictionary_frame(TRAINED) if pack is trained else b""
    if between:
        others = frame(b"") + skippable(b"x", 0) + pack(b"") + skippable(b"", 1)
        between = {plain: b"\r\n\r\n\n", zipped: zipped(b"")}.get(pack, others)
    parts = [(kind, pack(record)) for kind, record in records]
    data = head + between + between.join(part for _, part in parts) + between
    found = [e for e in events(data, DocumentRules()) if isinstance(e, Capture | Skipped)]
    at = len(head) + len(between)
    for event, (kind, part), (_, record) in zip(found, parts, records, strict=True):
        if isinstance(event, Skipped):
            told, offset, length = event.reason, event.offset, event.length
        else:
            told, offset = event.warc_record_type, event.warc_record_offset
            length = event.warc_record_length
        assert (told, offset) == (kind, at)
        stored = data[offset : offset + length]
        if pack is plain:
            # An uncompressed record ends with its block, as the Internet Archive's index has it.
            assert stored == record[: -4 if records is WARCS else -1]
        else:
            assert stored == part
        at += len(part) + len(between)


@pytest.mark.parametrize("pack", [zipped, frame, trained])
def test_what_lies_at_a_place_is_the_record_alone(pack):
    head = dictionary_frame(TRAINED) if pack is trained else b""
    bodies = [b"<title>%d</title>" % n for n in range(5)]
    records = [warc(http(body), url=b"http://a.cz/%d" % n) for n, body in enumerate(bodies)]
    parts = [pack(record) for record in records]
    data = head + b"".join(parts)
    found = [e for e in events(data, ALL) if isinstance(e, Capture)]
    borders = list(pairwise(accumulate(map(len, parts), initial=len(head))))
    for capture, (start, end), body, record in zip(found, borders, bodies, records, strict=True):
        assert capture.warc_record_offset == start
        assert capture.warc_record_length == end - start
        assert capture.content_digest == sha1(body)
        piece = data[start:end]
        if pack is zipped:
            assert zlib.decompress(piece, 31) == record
        else:
            given = TRAINED if pack is trained else None
            assert zstandard.ZstdDecompressor(dict_data=given).decompress(piece) == record


LONG = warc(http(b"x" * 5000))
SHORT_ARC = arc(http(b"x" * 5000))


REQUEST = warc(b"GET / HTTP/1.0\r\n\r\n", kind=b"request", length=b"25", end=b"")
SHORT = {
    # name: the file, and how many bytes are missing of its first record
    "file-cut.warc": (LONG[:-1004], 1000),
    "file-cut.arc": (SHORT_ARC[:-1001], 1000),
    "member-short.warc.gz": (members([LONG[:-1004]]), 1000),
    "member-short-then-more.arc.gz": (members([SHORT_ARC[:-1001], SHORT_ARC]), 1000),
    "frame-short-then-more.warc.zst": (frame(LONG[:-1004]) + frame(LONG), 1000),
    "longer": (warc(http(), length=b"%d" % (len(http()) + 10)), 6),
    "request-short.warc.gz": (members([REQUEST]), 7),
}


@pytest.mark.parametrize("name", SHORT)
def test_bytes_that_are_missing_are_counted(name):
    data, missing = SHORT[name]
    (fault,) = faults(data)
    done = "left out" if name.startswith("request") else "published as truncated"
    assert (fault.code, fault.place, fault.done) == ("payload-short", 0, done)
    declared, found = (int(word) for word in fault.detail.split() if word.isdigit())
    assert declared - found == missing
    first = events(data)[0]
    if isinstance(first, Capture):
        assert first.content_truncated == "unspecified"


@pytest.mark.parametrize("pack", [zipped, frame], ids=["gz", "zst"])
def test_a_cut_file_tells_of_both_cut_and_missing_bytes(pack):
    noise = b"".join(hashlib.sha512(b"%d" % n).digest() for n in range(4000))
    data = pack(LONG) + pack(warc(http(noise)))[:-60_000]
    kind = "gzip" if pack is zipped else "zstd"
    assert codes(data) == ["payload-short", f"{kind}-truncated"]
    short = faults(data)[0]
    declared, found = (int(word) for word in short.detail.split() if word.isdigit())
    assert 59_000 < declared - found < 61_000 + (1 << 17)
    assert short.place == len(pack(LONG))
