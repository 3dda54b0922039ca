"""Ranges: a file read in parts gives what it gives as a whole, or the caller can see why not."""

import gzip
import io
import itertools
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.intake.captures import Capture, Fault
from builder.sources.webarchives.backlog import join_borders
from builder.sources.webarchives.events import Edge, Event, Ordinals, Skipped
from builder.sources.webarchives.side_records import Crawl
from builder.sources.webarchives.webarchive import ArchiveReader
from functions.snapshot.oai_name import capture_identity
from tests.builder.sources.webarchives.containers import (
    ALL,
    arc,
    dictionary,
    dictionary_frame,
    events,
    filedesc,
    frame,
    frames,
    http,
    members,
    skippable,
    warc,
)
from tests.extent import examples

pytestmark = pytest.mark.shared(2)

_DATA = Path(__file__).parents[4].parent / "shared/data/webarchive"
_NOISE = bytes(range(256)) * 4
_RECORDS = [
    warc(b"operator: one\r\n", kind=b"warcinfo", url=None),
    *(warc(http(_NOISE[n:] + b"%d" % n), url=b"http://a.cz/%d" % (n % 4)) for n in range(6)),
]
_VERSION_2 = b"URL IP-address Archive-date Content-type Result-code Checksum Location Offset"
_ARCS = [filedesc(), *(arc(http(), url=b"http://a.cz/%d" % n) for n in range(4))]
_ARC_2 = b"http://a.cz/ 192.0.2.1 20080430204826 text/html 200 - - 0 a.arc 3\nabc\n"
_ARCS_2 = [filedesc(b"2 0", _VERSION_2 + b" Filename Archive-length"), *[_ARC_2] * 3]


def _broken(record: bytes, at: int) -> bytes:
    data = bytearray(gzip.compress(record, mtime=0))
    data[at] ^= 0x55
    return bytes(data)


_PARTS = [members([record]) for record in _RECORDS]
_ONE = _PARTS[1]
_DICTIONARY = dictionary()
_TRAINED = dictionary_frame(_DICTIONARY)
_FILES = {
    "warc": b"".join(_RECORDS),
    "warc.gz": b"".join(_PARTS),
    "arc": b"".join(_ARCS),
    "arc.gz": members(_ARCS),
    "arc-2": b"".join(_ARCS_2),
    "arc-2.gz": members(_ARCS_2),
    "without-filedesc": b"".join(_ARCS[1:]),
    "alike": members([_RECORDS[1]] * 4),
    "empty-members": b"".join(members([b"", record, b""]) for record in _RECORDS),
    "several-records-a-member": members([b"".join(_RECORDS[:3]), *_RECORDS[3:]]),
    "all-in-one-member": members([b"".join(_RECORDS)]),
    "records-across-members": members([_RECORDS[1][:99], _RECORDS[1][99:], _RECORDS[2]]),
    "corrupt-checksum": b"".join((*_PARTS[:2], _broken(_RECORDS[2], -5), *_PARTS[3:])),
    "corrupt-header": b"".join((*_PARTS[:2], _broken(_RECORDS[2], 1), *_PARTS[3:])),
    "corrupt-middle": b"".join((*_PARTS[:2], _broken(_RECORDS[2], 60), *_PARTS[3:])),
    "garbage-between-members": _ONE + b"no gzip" + _PARTS[2] + b"none" + _PARTS[3],
    "garbage-between-records": _RECORDS[1] + b"junk\r\n" * 9 + _RECORDS[2] + _RECORDS[3],
    "garbage-first": b"\r\n\r\n" + _RECORDS[1] + b"\n\n\n" + _RECORDS[2],
    "cut-short.gz": b"".join(_PARTS)[:-30],
    "cut-short": b"".join(_RECORDS)[:-3000],
    "length-invalid": warc(http(), length=b"x") + _RECORDS[1] + _RECORDS[2],
    "warc.zst": frames(_RECORDS),
    "arc-2.zst": frames(_ARCS_2),
    "dictionary.zst": _TRAINED + frames(_RECORDS, _DICTIONARY),
    "dictionary-missing.zst": frames(_RECORDS[:2])
    + frames(_RECORDS[2:5], _DICTIONARY)
    + frames(_RECORDS[5:]),
    "skippable-and-empty.zst": (skippable(bytes(99), 0) + frame(b"")).join(map(frame, _RECORDS)),
    "all-in-one-frame.zst": frame(b"".join(_RECORDS)),
    "records-across-frames.zst": frames([_RECORDS[1][:99], _RECORDS[1][99:], _RECORDS[2]]),
    "corrupt.zst": frames(_RECORDS[:2]) + frame(_RECORDS[2])[:-9] + bytes(9) + frames(_RECORDS[3:]),
    "garbage.zst": frames(_RECORDS[:2]) + b"no zstd" + frames(_RECORDS[2:]),
    "cut-short.zst": frames(_RECORDS)[:-30],
    "not-an-archive": b"no archive",
    "gzip-of-no-archive": gzip.compress(b"no archive", mtime=0) * 3,
    "empty": b"",
}
_TOO_LONG = warc(http(), length=b"99999") + _RECORDS[1] + _RECORDS[2]
_FALSE_START = warc(http(b"x" * 50 + b"\nWARC/1.0\r\nWARC-Type: response\r\n" + b"y" * 50))


class Ranges:
    """The events of a file's ranges, cut at offsets; whether each begins where another ends."""

    def __init__(self, data: bytes, cuts: list[int], *, further: bool = False) -> None:
        self.met = True
        self.events: list[Event] = []
        met_before: Edge | None = None
        borders = [0, *sorted(cuts), None]
        told = False
        places: list[list[int]] = []  # of the captures of each range, among the events
        near = []
        for start, end in itertools.pairwise(borders):
            reading = ArchiveReader(io.BytesIO(data), "a", ALL, start, end, further=further)
            places.append([])
            records = 0
            for event in reading:
                if isinstance(event, Capture):
                    places[-1].append(len(self.events))
                records += isinstance(event, Capture | Skipped)
                once = isinstance(event, Fault) and event.code.endswith("-not-per-record")
                if not (once and told):
                    self.events.append(event)
                told = told or once
            self.met = self.met and met_before in (None, reading.first)
            met_before = reading.next
            near.append((records, reading.near))
        requests = join_borders(near)
        for (number, row), columns in (requests or {}).items():
            at = places[number][row]
            self.events[at] = replace(self.events[at], **columns)
        self.met &= requests is not None and met_before == Edge(None, met_before.version)


def anonymous(found: list[Event]) -> list[Event]:
    """Return events without identities: captures that are alike are counted within a range."""
    return [replace(event, identity="") if isinstance(event, Capture) else event for event in found]


def _split(found: list[Event]) -> tuple[list[Event], list[Fault]]:
    """Return a file's events, and apart from them what is wrong with the file's own structure.

    A fault of what a file begins with is told behind its first record, wherever that lies.
    """
    found = anonymous(found)
    own = [e for e in found if isinstance(e, Fault) and e.code.startswith(("gzip-", "zstd-"))]
    return [e for e in found if e not in own], sorted(own, key=lambda f: (f.place or 0, f.code))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", _FILES)
def test_a_cut_anywhere_makes_two_ranges_that_make_the_whole(name: str) -> None:
    data = _FILES[name]
    whole = events(data)
    starts = {e.warc_record_offset or 0 for e in whole if isinstance(e, Capture)}
    cuts = {
        *range(1, len(data) + 2, 1 + len(data) // 100),
        *(s + n for s in starts for n in (0, 1)),
    }
    for cut in cuts - {0}:
        ranges = Ranges(data, [cut])
        assert ranges.met, cut
        assert _split(ranges.events) == _split(whole), cut


@given(st.sampled_from(sorted(_FILES)), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_any_number_of_ranges(name: str, draw: st.DataObject) -> None:
    data = _FILES[name]
    cuts = draw.draw(st.lists(st.integers(1, len(data) + 9), unique=True, max_size=9))
    ranges = Ranges(data, cuts)
    assert ranges.met
    assert _split(ranges.events) == _split(events(data))


@given(st.sampled_from(sorted(_FILES)), st.data())
@settings(max_examples=examples(400), deadline=None)
def test_ranges_of_a_file_damaged_anyhow_meet_only_if_they_make_the_whole(
    name: str, draw: st.DataObject
) -> None:
    data = bytearray(_FILES[name] or b"-")
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, len(data) - 1))
        data[at : at + draw.draw(st.integers(0, 9))] = draw.draw(st.binary(max_size=9))
        data = data or bytearray(b"-")
    cuts = draw.draw(st.lists(st.integers(1, len(data)), unique=True, max_size=4))
    ranges = Ranges(bytes(data), cuts)
    if ranges.met:
        assert _split(ranges.events) == _split(events(bytes(data)))


def test_a_false_start_within_a_payload_is_seen() -> None:
    stored = zlib.compress(warc(http(_ONE + _ONE)), 0, 31)  # an archive that is not compressed
    for data in (_FALSE_START + _RECORDS[1], stored + _ONE):
        whole = events(data)
        seen = [Ranges(data, [cut]) for cut in range(1, len(data), 3)]
        assert all(ranges.events == whole for ranges in seen if ranges.met)
        assert not all(ranges.met for ranges in seen)
    for cut in range(1, len(_TOO_LONG), 3):  # the next record is found within what it declares
        ranges = Ranges(_TOO_LONG, [cut])
        assert ranges.met
        assert ranges.events == events(_TOO_LONG)


def test_where_ranges_begin_and_end() -> None:
    data = _FILES["warc.gz"]
    second, third = len(_PARTS[0]), len(_PARTS[0] + _PARTS[1])
    reading = ArchiveReader(io.BytesIO(data), "a", ALL, 1, second + 1)
    found = [event for event in reading if isinstance(event, Capture)]
    assert [capture.warc_record_offset for capture in found] == [second]
    assert (reading.first, reading.next) == (Edge(second, 1), Edge(third, 1))
    last = ArchiveReader(io.BytesIO(data), "a", ALL, len(data) - 1)
    assert list(last) == []
    assert (last.first, last.next) == (Edge(None, 1), Edge(None, 1))


def test_a_later_range_knows_the_version_that_an_arc_announced() -> None:
    data = _FILES["arc-2.gz"]
    reading = ArchiveReader(io.BytesIO(data), "a", ALL, 40)
    assert {e.fetch_status for e in reading if isinstance(e, Capture)} == {200}
    assert reading.first is not None
    assert reading.first.version == 2
    assert not any(isinstance(e, Crawl) for e in ArchiveReader(io.BytesIO(data), "a", ALL, 40))


def test_ranges_that_disagree_on_the_version_do_not_meet() -> None:
    data = members([*_ARCS, *_ARCS_2])
    ranges = Ranges(data, [len(data) - 10])
    assert not ranges.met


def test_ordinals() -> None:
    ordinals = Ordinals()
    names = [capture_identity(b"%d" % n, None, None, None) for n in range(5000)]
    assert {ordinals.next(name) for name in names} == {0}
    assert [ordinals.next(names[n]) for n in (0, 9, 9, 4000, 0)] == [1, 1, 2, 1, 2]


@pytest.mark.thorough
@pytest.mark.skipif(not _DATA.is_dir(), reason="the collection of real files is not here")
@pytest.mark.parametrize("parts", [2, 7])
def test_real_files(parts: int) -> None:
    apart = []
    for path in sorted(_DATA.glob("*/**/*")):
        data = path.read_bytes() if path.is_file() else b""
        if not data or path.suffix in (".csv", ".md", ".json"):
            continue
        cuts = [len(data) * n // parts + 1 for n in range(1, parts)]
        ranges = Ranges(data, cuts)
        if ranges.met:
            assert _split(ranges.events) == _split(events(data)), path.name
        else:
            apart.append(path.name)
    assert len(apart) < 3, apart
