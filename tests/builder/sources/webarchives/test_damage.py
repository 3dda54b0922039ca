"""Broken files: each defect is a fault at its place, and nothing behind it is lost."""

import gzip
import time
import zlib

import pytest

from builder.sources.webarchives.events import Skipped
from tests.builder.sources.webarchives.containers import (
    URL,
    arc,
    captures,
    codes,
    events,
    faults,
    filedesc,
    frames,
    http,
    members,
    skips,
    urls,
    warc,
)
from tests.memory import at_most

GOOD = warc(http())


def record(n):
    return warc(http(), url=b"http://a.cz/%d" % n)


def test_corrupt_member_is_left_and_the_next_one_read():
    parts = [members([record(n)]) for n in range(3)]
    middle = bytearray(parts[1])
    middle[40:60] = bytes(20)
    data = parts[0] + bytes(middle) + parts[2]
    assert urls(data)[0] == "http://a.cz/0"
    assert urls(data)[-1] == "http://a.cz/2"
    (fault,) = [f for f in faults(data) if f.code == "gzip-corrupt"]
    assert fault.place == len(parts[0])
    assert captures(data)[-1].warc_record_offset == len(parts[0]) + len(middle)


@pytest.mark.parametrize(("at", "left"), [(-8, ["http://a.cz/0"]), (10, [])])
def test_a_wrong_checksum_keeps_the_record_and_corrupt_bytes_do_not(at, left):
    first = bytearray(members([record(0)]))
    first[at : at + 4] = b"\xff\xff\xff\xff"
    data = bytes(first) + members([record(1)])
    assert urls(data) == [*left, "http://a.cz/1"]
    assert codes(data) == ["gzip-corrupt"]


def test_garbage_between_members():
    one, two = members([record(0)]), members([record(1)])
    data = one + b"garbage" + two + bytes(100)
    assert urls(data) == ["http://a.cz/0", "http://a.cz/1"]
    assert [(f.code, f.place) for f in faults(data)] == [
        ("gzip-garbage", len(one)),
        ("gzip-garbage", len(one) + 7 + len(two)),
    ]


def test_length_over_a_members_end_swallows_nothing():
    data = members([warc(http(), length=b"5000"), record(1)])
    assert urls(data) == [URL.decode(), "http://a.cz/1"]
    assert codes(data) == ["payload-short"]
    data = members([filedesc(), arc(http(), length=b"5000"), arc(http(), url=b"http://a.cz/2")])
    assert urls(data) == [URL.decode(), "http://a.cz/2"]


def test_record_over_several_members_is_whole():
    data = members([GOOD[:150], GOOD[150:], record(1)])
    one, two = captures(data)
    assert one.title == "Zprávy"
    assert one.warc_record_length == two.warc_record_offset
    assert codes(data) == []


def test_several_records_in_one_member_are_read_with_one_fault():
    data = gzip.compress(record(0) + record(1) + record(2)) + members([record(3)])
    found = captures(data)
    assert [c.url[-1] for c in found] == ["0", "1", "2", "3"]
    assert [c.warc_record_offset is None for c in found] == [False, True, True, False]
    assert [c.warc_record_length is None for c in found] == [True, True, True, False]
    assert codes(data) == ["gzip-not-per-record"]


@pytest.mark.parametrize("length", [b"none", b"", b"abc", b"-1", b"1e3"])
@pytest.mark.parametrize("packed", [True, False])
def test_unusable_length_loses_one_record_only(length, packed):
    parts = [warc(http(), length=length), record(1)]
    data = members(parts) if packed else b"".join(parts)
    bounded = packed and length in (b"none", b"")  # an HTTP message ends with its member
    assert urls(data) == ([URL.decode()] if bounded else []) + ["http://a.cz/1"]
    assert codes(data)[0] == "length-invalid"
    assert skips(data) == ([] if bounded else ["damaged"])


def test_an_archive_that_was_compressed_twice_is_called_so():
    (fault,) = faults(gzip.compress(members([record(1), record(2)])))
    assert (fault.code, fault.detail) == ("unsupported-compression", "compressed twice")


def test_a_length_too_small_and_no_newline_lose_no_record():
    for first in (warc(http(), length=b"100"), warc(http(), end=b"")):
        assert urls(first + record(1)) == [URL.decode(), "http://a.cz/1"]
    assert "garbage" in codes(warc(http(), length=b"100") + record(1))


def test_header_without_end():
    data = b"WARC/1.0\r\nWARC-Type: response\r\n"
    assert [type(e).__name__ for e in events(data)] == ["Skipped", "Fault"]
    assert codes(data) == ["header-invalid"]


def test_giant_headers_are_bounded():
    data = b"WARC/1.0\r\nX: " + b"a" * (3 << 20) + b"\r\n\r\n" + record(1)
    with at_most(16 << 20):
        assert urls(data) == ["http://a.cz/1"]
    assert "header-invalid" in codes(data)
    http_head = warc(b"HTTP/1.1 200 OK\r\nX: " + b"a" * (1 << 20))
    assert codes(http_head) == ["http-head-invalid"]


def test_memory_does_not_grow_with_the_record():
    data = members([warc(http(bytes(32 << 20))), record(1)])
    with at_most(8 << 20):
        assert captures(data)[0].content_length == 32 << 20


def test_bad_dates_are_never_invented():
    def date(text):
        data = filedesc() + arc(http(), date=text)
        (capture,) = captures(data)
        return capture.fetch_date, codes(data)

    assert date(b"2016020900") == ("2016-02-09", ["date-partial"])
    assert date(b"201602091536") == ("2016-02-09T15:36Z", ["date-partial"])
    assert date(b"20160211000000jpg") == ("2016-02-11T00:00:00Z", ["date-junk"])
    assert date(b"201404010000000000") == ("2014-04-01T00:00:00Z", ["date-junk"])
    assert date(b"20160231000000") == (None, ["date-invalid"])
    assert date(b"99999999999999") == (None, ["date-invalid"])
    assert date(b"201") == (None, ["date-invalid"])
    assert date(b"4fa2c1d0") == (None, ["date-invalid"])


def test_bad_digests():
    assert codes(warc(http(), b"WARC-Payload-Digest: sha1:" + b"A" * 32)) == ["digest-mismatch"]
    assert codes(warc(http(), b"WARC-Payload-Digest: sha1:" + b"A" * 32, length=b"900")) == [
        "payload-short"
    ]


def test_segmented_record():
    data = warc(http(), b"WARC-Segment-Number: 1", b"WARC-Payload-Digest: sha1:" + b"A" * 32)
    assert codes(data) == ["segmented-record"]
    assert captures(data)[0].content_truncated == "unspecified"


def test_arc_with_a_wrong_length_and_garbage():
    data = filedesc() + arc(http(), length=b"-5") + arc(http(), url=b"http://a.cz/1") + b"garbage\n"
    assert urls(data) == ["http://a.cz/1"]
    assert codes(data) == ["length-invalid", "garbage", "garbage"]


def test_a_length_over_other_records_swallows_none_of_them():
    # As when a crawl was broken off within a record, and went on behind it.
    cut = warc(http(b"x" * 5000), b"WARC-Payload-Digest: sha1:" + b"A" * 32)[:-2000]
    data = record(0) + cut + b"".join(record(n) for n in range(1, 30))
    assert urls(data) == [
        "http://a.cz/0",
        URL.decode(),
        *(f"http://a.cz/{n}" for n in range(1, 30)),
    ]
    (fault,) = faults(data)
    assert (fault.code, fault.place) == ("payload-short", len(record(0)))
    assert fault.detail.endswith(", then another record")
    short = captures(data)[1]
    assert (short.content_truncated, short.content_digest) == ("unspecified", None)
    assert short.content_length == 5000 - 2000 + 4
    end = short.warc_record_offset + short.warc_record_length
    assert data[end:].startswith(b"WARC/1.0")
    for length in (b"300", b"500", b"1000", b"999999999"):
        data = warc(http(), length=length) + record(1) + record(2) + record(3)
        assert urls(data) == [URL.decode(), *(f"http://a.cz/{n}" for n in range(1, 4))]
        assert set(codes(data)) == {"payload-short"}
        arcs = [
            filedesc(),
            arc(http(), length=length),
            *(arc(http(), url=b"http://a.cz/%d" % n) for n in range(3)),
        ]
        assert len(captures(b"".join(arcs))) == 4


def test_a_length_over_more_than_is_kept_loses_what_was_passed():
    record_of_a_megabyte = [warc(http(bytes(1 << 20)), url=b"http://a.cz/%d" % n) for n in range(9)]
    data = warc(http(), length=b"99999999") + b"".join(record_of_a_megabyte)
    with at_most(24 << 20):
        found = urls(data)
    assert found[0] == URL.decode()
    assert found[-3:] == [f"http://a.cz/{n}" for n in range(6, 9)]
    for capture in captures(data):
        assert data[capture.warc_record_offset :].startswith(b"WARC/1.0")
    assert codes(data) == ["payload-short"]


def test_lengths_that_were_made_to_lie_take_no_more_than_linear_time():
    liar = b"WARC/1.0\r\nWARC-Type: request\r\nContent-Length: 4000000\r\n\r\n"
    data = liar * 40_000
    started = time.process_time()
    found = events(data)
    assert time.process_time() - started < 20
    assert sum(isinstance(event, Skipped) for event in found) > 8


def test_a_payload_that_holds_records_is_left_as_it_is():
    inner = warc(http(record(7) + record(8)))
    data = record(0) + inner + record(1)
    assert urls(data) == ["http://a.cz/0", URL.decode(), "http://a.cz/1"]
    assert urls(data[:-30])[:2] == ["http://a.cz/0", URL.decode()]
    assert codes(data) == []


def test_a_header_without_its_end_costs_no_other_record():
    broken = warc(b"", kind=b"metadata").replace(b"\r\n\r\n", b"\r\nXX")
    data = record(0) + broken + record(1) + record(2)
    assert urls(data) == [f"http://a.cz/{n}" for n in range(3)]
    assert [(f.code, f.detail) for f in faults(data)] == [
        ("header-invalid", "another record begins in it")
    ]


@pytest.mark.parametrize(
    "junk", [b"\x00", b"junk", b"\x1f", b"\x28\xb5", b"\r\n\x00\r\n", bytes(9000)]
)
def test_files_whose_first_bytes_are_damaged(junk):
    for pack in (b"".join, members, frames):
        data = pack(record(n) for n in range(3))
        assert urls(junk + data) == [f"http://a.cz/{n}" for n in range(3)], pack
        assert codes(junk + data) in (["garbage"], ["gzip-garbage"], ["zstd-garbage"])
    data = junk + b"\n" + filedesc() + arc(http())
    assert urls(data) == [URL.decode()]
    for other in (b"<p>WARC/1.0 is", b"WARC/1.0", b"say:\nWARC/1.0\nWARC-Type: response\n\n"):
        assert codes(junk + other) == ["not-an-archive"]


def test_a_header_that_lies_of_its_length_swallows_no_member():
    first = bytearray(members([record(0)]))
    first[3] = 4  # an extra field, whose length what follows is taken for
    data = bytes(first) + members([record(1), record(2)])
    assert urls(data) == ["http://a.cz/1", "http://a.cz/2"]
    assert codes(data) == ["gzip-corrupt"]
    assert codes(bytes(first)) in (["gzip-corrupt"], ["gzip-truncated"], ["not-an-archive"])


def test_an_archive_within_a_cut_member_gives_no_records():
    inner = members([record(n) for n in range(40)])
    outer = zlib.compress(warc(http(inner)), 0, 31)
    data = members([record(0)]) + outer[:-500]
    assert urls(data) == ["http://a.cz/0", URL.decode()]
    assert codes(data) == ["payload-short", "gzip-truncated"]


@pytest.mark.parametrize("pack", [members, frames])
def test_a_record_ends_with_its_own_member_whatever_follows(pack):
    parts = [pack([record(n)]) for n in range(3)]
    broken = pack([record(1).replace(b"WARC/1.0", b"WBRC/1.0")])  # begins no record
    for neighbour in (broken, broken[:-1] + bytes([broken[-1] ^ 1]), broken + broken):
        data = parts[0] + neighbour + parts[2]
        one, two = captures(data)
        assert (one.warc_record_offset, one.warc_record_length) == (0, len(parts[0]))
        assert two.warc_record_offset == len(parts[0]) + len(neighbour)
        assert "garbage" in codes(data)


@pytest.mark.parametrize(
    "line",
    [
        b"http://a.cz/x 20080430204826 192.0.2.1 text/html %d",
        b"http://a.cz/x 192.0.2.1 text/html 20080430204826 %d",
        b"http://a.cz/x text/html 192.0.2.1 20080430204826 %d",
        b"http://a.cz/x 192.0.2.1 text/html %d 20080430204826",
        b"http://a.cz/x 20080430204826 192.0.2.1 text/html; charset=x %d",
    ],
)
def test_arc_fields_in_another_order_are_known_by_their_form(line):
    block = http(b"<title>One</title>", b"Server: x")
    data = filedesc() + line % len(block) + b"\n" + block + b"\n" + arc(http())
    one, other = captures(data)
    assert (one.url, one.fetch_date) == ("http://a.cz/x", "2008-04-30T20:48:26Z")
    assert (one.content_mime_type, one.title) == ("text/html", "One")
    assert other.url == URL.decode()
    (fault,) = faults(data)
    assert (fault.code, fault.place) == ("header-transposed", len(filedesc()))


def test_no_date_is_made_of_two_or_of_none():
    for line in (
        b"http://a.cz/x 20080430204826 text/html 20090430204826 %d",
        b"http://a.cz/x 20081330204826 192.0.2.1 text/html %d",
        b"http://a.cz/x 2008043020482 192.0.2.1 text/html %d",
    ):
        data = filedesc() + line % len(http()) + b"\n" + http() + b"\n"
        (one,) = captures(data)
        assert (one.fetch_date, codes(data)) == (None, ["date-invalid"]), line
