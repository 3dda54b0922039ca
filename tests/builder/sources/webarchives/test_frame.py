"""zstd files: each record a frame or several, with a dictionary or without, whole or broken."""

import io
from dataclasses import replace
from random import Random

import pytest
import zstandard

from builder.intake.captures import Capture
from builder.sources.webarchives.events import Skipped
from builder.sources.webarchives.recognise import read_head, recognise
from functions.archive import zstd
from functions.archive.zstd_frames import ZstdFrames
from tests.builder.sources.webarchives.containers import (
    URL,
    arc,
    captures,
    codes,
    dictionary,
    dictionary_frame,
    events,
    faults,
    filedesc,
    frame,
    frames,
    http,
    members,
    skippable,
    skips,
    urls,
    warc,
)
from tests.memory import at_most

RECORDS = [
    warc(b"software: x", kind=b"warcinfo", url=None),
    *(warc(http(), url=b"http://a.cz/%d" % n) for n in range(3)),
]
EMPTY = frame(b"")
OTHER = skippable(b"anything", number=0)


def placeless(data):
    nowhere = {"warc_record_offset": None, "warc_record_length": None}
    return [
        replace(e, **nowhere) if isinstance(e, Capture) else getattr(e, "reason", e)
        for e in events(data)
    ]


def kind(data):
    return recognise(read_head(io.BytesIO(data)))


def test_the_same_captures_as_from_gzip_each_at_its_frame():
    data = frames(RECORDS)
    assert kind(data) == "warc.zst"
    assert placeless(data) == placeless(members(RECORDS))
    starts = [len(frames(RECORDS[:n])) for n in range(5)]
    assert [c.warc_record_offset for c in captures(data)] == starts[1:4]
    assert [c.warc_record_offset + c.warc_record_length for c in captures(data)] == starts[2:]
    assert codes(data) == []


def test_arc_in_zstd():
    records = [filedesc(), arc(http()), arc(http(), url=b"http://a.cz/1")]
    assert kind(frames(records)) == "arc.zst"
    assert placeless(frames(records)) == placeless(members(records))
    assert codes(frames(records)) == []


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_dictionary_at_the_files_beginning(packed, named):
    made = dictionary()
    head = dictionary_frame(made, packed)
    data = head + frames(RECORDS, made, named=named)
    assert kind(data) == "warc.zst"
    assert len(frames(RECORDS, made)) < len(frames(RECORDS)) * 0.8
    assert placeless(data) == placeless(members(RECORDS))
    assert captures(data)[0].warc_record_offset == len(head) + len(
        frames(RECORDS[:1], made, named=named)
    )
    assert codes(data) == []


def test_a_dictionary_longer_than_what_is_looked_at_otherwise():
    made = dictionary(padding=100_000)
    data = dictionary_frame(made, packed=False) + frames(RECORDS, made)
    assert kind(data) == "warc.zst"
    assert len(captures(data)) == 3


def test_frames_want_a_dictionary_that_is_missing():
    made = dictionary()
    alone = frames(RECORDS, made)
    (fault,) = faults(alone)
    assert (fault.code, fault.place) == ("zstd-dictionary-missing", 0)
    assert fault.detail == f"4 frames need dictionary {made.dict_id()} or another"
    mixed = frame(RECORDS[0]) + alone + frames(RECORDS[1:])
    assert len(captures(mixed)) == 3
    (fault,) = faults(mixed)
    assert (fault.code, fault.place) == ("zstd-dictionary-missing", len(frame(RECORDS[0])))
    other = dictionary(number=99)
    assert codes(dictionary_frame(other) + alone) == ["zstd-dictionary-missing"]


@pytest.mark.parametrize(
    "content, why",
    [
        (b"no dictionary", "its frame holds something else"),
        (b"\x37\xa4\x30\xec and then nothing", "could not create decompression dict"),
        (frame(bytes(zstd.DICTIONARY + 1)), "it has more than 8388608 bytes"),
        (frame(b"x" * 1000)[:-3] + b"abc", "Restored data doesn't match checksum"),
    ],
)
def test_a_damaged_dictionary_is_told_of(content, why):
    made = dictionary()
    data = skippable(content) + frames(RECORDS, made)
    (fault,) = faults(data)
    assert fault.code == "zstd-dictionary-missing"
    assert fault.detail.endswith(f"; the file's own: {why}")
    assert len(captures(skippable(content) + frames(RECORDS))) == 3


def test_a_record_in_several_frames_is_whole():
    record = warc(http(b"<title>Long</title>" + bytes(range(256)) * 2000))
    cuts = [record[n : n + 100_000] for n in range(0, len(record), 100_000)]
    data = frame(RECORDS[0]) + frames(cuts) + frame(RECORDS[1])
    one, two = captures(data)
    assert (one.title, one.content_truncated) == ("Long", None)
    assert one.warc_record_offset == len(frame(RECORDS[0]))
    assert one.warc_record_offset + one.warc_record_length == two.warc_record_offset
    assert codes(data) == []


def test_empty_and_skippable_frames_are_passed_over():
    parts = [frame(record) for record in RECORDS]
    large = skippable(bytes(1 << 20), number=3)
    data = EMPTY + OTHER + parts[0] + EMPTY + parts[1] + OTHER + OTHER + parts[2] + large + parts[3]
    data += OTHER + EMPTY
    assert kind(data) == "warc.zst"
    found = captures(data)
    assert [c.url[-1] for c in found] == ["0", "1", "2"]
    for capture, part in zip(found, parts[1:], strict=True):
        at = capture.warc_record_offset
        assert data[at : at + capture.warc_record_length] == part
    assert codes(data) == []
    assert kind(OTHER + data) == "warc.zst"  # forbidden, and written by pzstd


def test_several_records_in_one_frame_are_read_with_one_fault():
    data = frame(b"".join(RECORDS)) + frame(RECORDS[1])
    assert skips(data) == ["warcinfo"]
    assert [c.warc_record_offset is None for c in captures(data)] == [True, True, True, False]
    assert codes(data) == ["zstd-not-per-record"]


def test_frames_that_end_anywhere_hold_the_same_records():
    whole = b"".join(RECORDS)
    data = frames([whole[n : n + 100] for n in range(0, len(whole), 100)])
    assert len(captures(data)) == 3
    assert "zstd-not-per-record" in codes(data)


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("sized", [True, False])
def test_header_fields_may_be_there_or_not(checked, sized):
    data = b"".join(frame(record, checked=checked, sized=sized) for record in RECORDS)
    assert placeless(data) == placeless(members(RECORDS))
    assert codes(data) == []


def test_a_file_cut_anywhere_keeps_what_is_before():
    parts = [frame(record) for record in RECORDS]
    data = b"".join(parts)
    for cut in range(1, len(data)):
        found = events(data[:cut])
        whole = [n for n in range(1, 5) if len(b"".join(parts[:n])) <= cut]
        got = [e for e in found if isinstance(e, Capture | Skipped)]
        assert len(got) >= len(whole), cut
        at_end = cut == len(b"".join(parts[: len(whole)]))
        assert bool(faults(data[:cut])) != at_end, cut


def test_a_broken_frame_is_left_and_the_next_one_read():
    parts = [frame(record) for record in RECORDS]
    middle = bytearray(parts[2])
    middle[30:40] = bytes(10)
    data = b"".join((*parts[:2], bytes(middle), parts[3]))
    assert urls(data) == ["http://a.cz/0", "http://a.cz/2"]
    (fault,) = faults(data)
    assert (fault.code, fault.place) == ("zstd-corrupt", len(parts[0] + parts[1]))
    assert fault.done == f"continued at byte {len(data) - len(parts[3])}"


def test_a_wrong_checksum_keeps_the_record():
    parts = [bytearray(frame(record)) for record in RECORDS]
    parts[1][-1] ^= 1
    data = b"".join(parts)
    assert len(captures(data)) == 3
    assert codes(data) == ["zstd-corrupt"]


def test_a_file_that_begins_with_a_broken_frame():
    first = bytearray(frame(RECORDS[0]))
    first[12:20] = b"\xff" * 8
    assert urls(bytes(first) + frames(RECORDS[1:])) == [f"http://a.cz/{n}" for n in range(3)]
    assert codes(bytes(first)) == ["not-an-archive"]


def test_bytes_lost_within_a_frame_cost_no_other_record():
    parts = [frame(record) for record in RECORDS]
    for lost in (1, 20, 60, 100):
        short = parts[1][:40] + parts[1][40 + lost :]
        data = parts[0] + short + parts[2] + parts[3]
        assert urls(data)[-2:] == ["http://a.cz/1", "http://a.cz/2"], lost
        assert codes(data), lost


def test_an_archive_stored_within_a_broken_frame_gives_no_records():
    # Blocks of what does not compress hold it as it is.
    noise = Random(2).randbytes
    inner = frames(warc(http(noise(9000)), url=b"http://inner.cz/%d" % n) for n in range(60))
    outer = bytearray(frame(warc(http(inner))))
    assert outer.count(zstd.MAGIC) > 20
    outer[-1] ^= 1
    data = frame(RECORDS[0]) + bytes(outer) + frame(RECORDS[1])
    assert urls(data) == [URL.decode(), "http://a.cz/0"]
    assert codes(data) == ["zstd-corrupt"]


def test_garbage_between_frames():
    parts = [frame(record) for record in RECORDS]
    data = parts[0] + parts[1] + b"garbage" + parts[2] + parts[3] + b"\x28\xb5"
    assert len(captures(data)) == 3
    assert [(f.code, f.detail) for f in faults(data)] == [
        ("zstd-garbage", "7 bytes"),
        ("zstd-garbage", "2 bytes"),
    ]


@pytest.mark.parametrize("size", [4 << 20, 200 << 20, 0xFFFFFFFF])
def test_a_skippable_frame_that_leads_nowhere_swallows_nothing(size):
    broken = b"\x50\x2a\x4d\x18" + size.to_bytes(4, "little")
    data = frame(RECORDS[0]) + broken + frames(RECORDS[1:])
    assert len(captures(data)) == 3
    assert codes(data) == ["zstd-corrupt"]


def test_a_frame_that_asks_for_too_much_memory_is_a_fault():
    wide = zstandard.ZstdCompressionParameters.from_level(3, window_log=28)
    maker = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    greedy = maker.compress(RECORDS[1]) + maker.flush()
    with at_most(8 << 20):
        assert urls(frame(RECORDS[0]) + greedy + frame(RECORDS[2])) == ["http://a.cz/1"]
    assert codes(frame(RECORDS[0]) + greedy + frame(RECORDS[2])) == ["zstd-window"]
    allowed = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    maker = zstandard.ZstdCompressor(compression_params=allowed).compressobj()
    assert len(captures(maker.compress(RECORDS[1]) + maker.flush())) == 1


def test_what_expands_a_hundred_thousandfold_stays_small():
    data = frames([warc(http(bytes(64 << 20))), RECORDS[1]])
    assert len(data) < 8 << 10
    with at_most(4 << 20):
        assert captures(data)[0].content_length == 64 << 20


def test_reads_of_any_size_give_the_same():
    class Slow(io.BytesIO):
        def read(self, size=-1, /):
            return super().read(min(size, 13) if size > 0 else size)

    made = dictionary()
    data = dictionary_frame(made) + frames(RECORDS, made) + OTHER + b"xx" + frames(RECORDS, made)

    def texts(stream):
        records = ZstdFrames(read_head(stream), stream)
        sections = []
        while records.next_section():
            sections.append((records.place(), b"".join(iter(lambda: records.take(999), b""))))
        return sections, records.faults

    assert texts(Slow(data)) == texts(io.BytesIO(data))
    assert b"".join(text for _, text in texts(Slow(data))[0]) == b"".join(RECORDS) * 2
