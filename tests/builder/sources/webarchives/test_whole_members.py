"""Members that are read at once give the bytes of the stream, and take bounded memory."""

import gzip
import hashlib
import io
import zlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.intake.captures import Capture, Fault
from builder.sources.webarchives.events import Event, Skipped
from builder.sources.webarchives.webarchive import ArchiveReader
from functions.archive.record_header import (
    READ_FIELDS,
    parse_fields,
    parse_plain_head,
    skippable_type,
)
from tests.builder.sources.webarchives.containers import (
    ALL,
    PAGE,
    captures,
    codes,
    events,
    http,
    members,
    sha1,
    skips,
    warc,
)
from tests.extent import examples
from tests.memory import at_most

pytestmark = pytest.mark.shared(2)

_LINES = [
    b"WARC-Type: response",
    b"warc-type: request",
    b"WARC-Type: metadata",
    b"WARC-Type:revisit",
    b"WARC-Type : request",
    b"WARC-Type:  metadata ",
    b"Content-Length: 0",
    b"content-length: 3",
    b"Content-Length: 00",
    b"Content-Length: -1",
    b"Content-Length: 0 ",
    b"WARC-Date: 2008",
    b": x",
    b"WARC-Target-URI: <http://a.cz/>",
    b"WARC-Target-URI:",
    b"X-Own: a: b",
    b"X-Own",
    b"X Own: a",
    b" folded",
    b"\tfolded",
    b"",
    b"a\rb: c",
    b"X:y: z",
    b"WARC-Segment-Number: 1",
    b"\xe8: \xe8",
    b"WARC-Truncated: length\x0b",
    b"WARC-Truncated: \x0ctime",
    b"WARC-Type-Of: request",
]
_HEADS = st.lists(
    st.tuples(st.sampled_from(_LINES), st.sampled_from([b"\r\n"] * 9 + [b"\n"])), max_size=8
).map(lambda lines: b"WARC/1.0\r\n" + b"".join(line + end for line, end in lines) + b"\r\n")


def _without_places(found: list[Event]) -> list[Event]:
    bare: list[Event] = []
    for event in found:
        if isinstance(event, Capture):
            event = replace(event, warc_record_offset=None, warc_record_length=None)
        elif isinstance(event, Skipped):
            event = Skipped(event.reason)
        bare.append(replace(event, place=None) if isinstance(event, Fault) else event)
    return bare


@given(_HEADS)
@settings(max_examples=examples(500), deadline=None)
def test_fields_are_the_same_line_by_line(head: bytes) -> None:
    end, fields = parse_plain_head(head, len(head))
    if fields is not None:
        known = parse_fields(head[: end + 2])
        assert fields == {n: v for n, v in known.items() if n in READ_FIELDS}


@given(_HEADS, st.sampled_from([b"", b"abc", b"abc\r\n\r\n", b"\r\n\r\n", b"\r\n", b"junk\n"]))
@settings(max_examples=examples(1000), deadline=None)
def test_a_member_gives_what_the_uncompressed_record_gives(head: bytes, rest: bytes) -> None:
    data = head + rest
    assert _without_places(events(members([data]))) == _without_places(events(data))
    end, fields = parse_plain_head(data)
    kind = skippable_type(fields, data, end) if fields is not None else None
    if kind:
        assert skips(data) == [kind]
        assert codes(data) == []


@pytest.mark.parametrize("size", [1 << 14, (1 << 20) + 9, (1 << 22) + 9])
@pytest.mark.parametrize("level", [0, 1, 9])
def test_members_of_any_size(size: int, level: int) -> None:
    body = (hashlib.sha512(b"%d" % size).digest() * (size // 64 + 1))[:size]
    data = b"".join(
        gzip.compress(warc(http(body + end), url=b"http://a.cz/" + end), level, mtime=0)
        for end in (b"1", b"2", b"3")
    )
    found = captures(data)
    assert [c.content_length for c in found] == [size + 1] * 3
    digests = [sha1(body + end) for end in (b"1", b"2", b"3")]
    assert [c.content_digest for c in found] == digests
    assert sum(c.warc_record_length or 0 for c in found) == len(data)


@pytest.mark.parametrize("size", [1 << 10, 1 << 16, 3 << 20])
def test_what_lies_before_an_error_is_kept(size: int) -> None:
    body = b"".join(hashlib.sha512(b"%d" % n).digest() for n in range(size // 64))
    broken = bytearray(gzip.compress(warc(http(body)), mtime=0))
    broken[-5] ^= 1
    data = members([warc(http())]) + bytes(broken) + members([warc(http(PAGE + b" "))])
    assert [c.content_length for c in captures(data)] == [len(PAGE), size, len(PAGE) + 1]
    assert codes(data) == ["gzip-corrupt"]


@pytest.mark.parametrize(
    ("flags", "extra"), [(0x02, b""), (0x20, b""), (0x10, b"a note\0"), (0x04, b"\x02\x00ab")]
)
def test_members_with_optional_fields(flags: int, extra: bytes) -> None:
    member = bytearray(gzip.compress(warc(http()), mtime=0))
    member[3] = flags
    start = bytes(member[:10]) + extra
    checksum = zlib.crc32(start).to_bytes(4, "little")[:2] if flags == 0x02 else b""
    data = start + checksum + bytes(member[10:])
    good = flags != 0x20  # reserved (RFC 1952, 2.3.1.2)
    assert len(captures(data + members([warc(http())]))) == 1 + good
    assert codes(data) == ([] if good else ["not-an-archive"])


def test_memory_is_bounded_whatever_a_member_inflates_to() -> None:
    bomb = warc(http(b"<html><title>" + bytes(50 << 20)))
    header = b"WARC/1.0\r\nWARC-Type: response\r\nX: " + b"x" * (20 << 20)
    data = gzip.compress(bomb, 1, mtime=0) + gzip.compress(header, 1, mtime=0)
    del bomb, header
    with at_most(16 << 20):
        found = list(ArchiveReader(io.BytesIO(data), "a", ALL))
    assert [e.content_length for e in found if isinstance(e, Capture)] == [(50 << 20) + 13]


def test_a_long_revisit_is_not_truncated() -> None:
    block = http(b"x" * 200_000)
    digest = b"WARC-Payload-Digest: sha1:" + b"A" * 32
    (capture,) = captures(warc(block, digest, kind=b"revisit"))
    assert capture.content_truncated is None


def test_a_header_that_lost_its_end_takes_nothing_of_the_record_behind_it():
    whole = warc(http(), url=b"http://b.cz/")
    cut = warc(http(), url=b"http://a.cz/").partition(b"Content-Length")[0]
    (capture,) = captures(members([cut + whole]), ALL)
    assert capture.url == "http://b.cz/"
    assert "header-invalid" in codes(members([cut + whole]))
