"""Archives behind bytes that are none: found where something suggests an archive, else not."""

import gzip
import io
import random

import pytest

from builder.intake.captures import Capture, Fault
from builder.sources.webarchives.events import Event
from builder.sources.webarchives.search import names_archive
from builder.sources.webarchives.webarchive import ArchiveReader
from tests.builder.sources.webarchives.containers import (
    ALL,
    arc,
    dictionary,
    dictionary_frame,
    events,
    filedesc,
    frames,
    http,
    members,
    warc,
)
from tests.builder.sources.webarchives.test_ranges import Ranges, anonymous
from tests.memory import at_most

_ZEROS = bytes(20_000)
_NOISE = random.Random(18).randbytes(300_000)
_WARCS = [warc(http(b"%d" % n), url=b"http://a.cz/%d" % n) for n in range(3)]
_ARCS = [filedesc(), *(arc(http(), url=b"http://a.cz/%d" % n) for n in range(3))]
_DICTIONARY = dictionary()
_ARCHIVES = {
    "warc": b"".join(_WARCS),
    "warc.gz": members(_WARCS),
    "warc.zst": frames(_WARCS),
    "warc.zst with a dictionary": dictionary_frame(_DICTIONARY) + frames(_WARCS, _DICTIONARY),
    "warc with bare newlines": b"".join(warc(http(), eol=b"\n") for _ in range(3)),
    "arc": b"".join(_ARCS),
    "arc.gz": members(_ARCS),
    "arc.zst": frames(_ARCS),
    "arc without a filedesc": b"".join(_ARCS[1:]),
}
_CODES = {"gz": "gzip-garbage", "zst": "zstd-garbage"}


def _moved(found: list[Event], by: int) -> list[tuple[str, str, int | None, int | None]]:
    return [
        (
            capture.identity,
            capture.url,
            None if capture.warc_record_offset is None else capture.warc_record_offset + by,
            capture.warc_record_length,
        )
        for capture in found
        if isinstance(capture, Capture)
    ]


def _faults(found: list[Event]) -> list[Fault]:
    return [event for event in found if isinstance(event, Fault)]


@pytest.mark.parametrize(
    "junk", [_ZEROS, _NOISE + b"\n", b"text\n" * 9000], ids=["zeros", "noise", "text"]
)
@pytest.mark.parametrize("name", _ARCHIVES)
def test_captures_behind_any_junk_are_read_where_they_lie(name: str, junk: bytes) -> None:
    data = _ARCHIVES[name]
    found = events(junk + data, further=True)
    assert _moved(found, 0) == _moved(events(data), len(junk))
    assert len(_moved(found, 0)) == 3
    (fault,) = _faults(found)
    code = _CODES.get(name.partition(" ")[0].partition(".")[2], "garbage")
    assert (fault.place, fault.code, fault.detail) == (0, code, f"{len(junk)} bytes")
    (none,) = events(junk + data)
    assert isinstance(none, Fault)
    assert none.code == "not-an-archive"


@pytest.mark.parametrize("name", _ARCHIVES)
def test_the_form_of_what_was_found_is_known(name: str) -> None:
    reading = ArchiveReader(io.BytesIO(_ZEROS + _ARCHIVES[name]), "a", ALL, further=True)
    assert sum(isinstance(event, Capture) for event in reading) == 3
    assert reading.form == name.partition(" ")[0]


@pytest.mark.parametrize("name", _ARCHIVES)
def test_ranges_of_a_file_with_junk_make_the_whole(name: str) -> None:
    data = _ZEROS + _ARCHIVES[name]
    whole = sorted(map(repr, anonymous(events(data, further=True))))
    size = len(data) - len(_ZEROS)
    for cuts in (
        [1],
        [9000, 19_999, 20_000],
        [20_001],
        [20_000 + size // 2],
        [5000, len(data) - 9],
    ):
        ranges = Ranges(data, cuts, further=True)
        assert ranges.met, cuts
        assert sorted(map(repr, anonymous(ranges.events))) == whole, cuts


def test_records_behind_others_within_what_is_compressed() -> None:
    """Zeros may lie within a member, and members of something else before an archive's."""
    behind = gzip.compress(_ZEROS + _ARCHIVES["warc"], mtime=0)
    urls = [event.url for event in events(behind, further=True) if isinstance(event, Capture)]
    assert urls == [f"http://a.cz/{n}" for n in range(3)]
    foreign = gzip.compress(_ZEROS, mtime=0) * 2
    found = events(foreign + _ARCHIVES["warc.gz"], further=True)
    assert _moved(found, 0) == _moved(events(_ARCHIVES["warc.gz"]), len(foreign))
    assert [(f.code, f.place, f.detail) for f in _faults(found)] == [("garbage", 0, "40000 bytes")]


@pytest.mark.parametrize(
    ("data", "code", "detail"),
    [
        (b"", "empty-file", ""),
        (_ZEROS, "not-an-archive", ""),
        (b"text\n" * 9000, "not-an-archive", ""),
        (b"%PDF-1.4\n" + _ARCHIVES["warc"], "not-an-archive", "a PDF file"),
        (gzip.compress(_ZEROS, mtime=0) * 3, "not-an-archive", "gzip of nothing known"),
        (frames([_ZEROS, b"text"]), "not-an-archive", "zstd of nothing known"),
        (b"\x1f\x8b\x08" + _ZEROS, "not-an-archive", "damaged gzip"),
        (_ZEROS + b"\x1f\x8b\x08\x28\xb5\x2f\xfd\x5d\x2a\x4d\x18 WARC/1.0\n", "not-an-archive", ""),
    ],
)
def test_what_holds_no_record_is_exactly_one_fault(data: bytes, code: str, detail: str) -> None:
    (fault,) = events(data, further=True)
    assert isinstance(fault, Fault)
    assert (fault.code, fault.detail, fault.done) == (code, detail, "not read")


def test_frames_whose_dictionary_is_gone_are_told() -> None:
    found = events(_ZEROS + frames(_WARCS, _DICTIONARY), further=True)
    assert {fault.code for fault in _faults(found)} == {"zstd-dictionary-missing"}


def test_a_search_takes_little_memory() -> None:
    data = bytes(8 << 20) + _ARCHIVES["warc.gz"]
    with at_most(3 << 20):
        found = list(ArchiveReader(io.BytesIO(data), "a", ALL, further=True))
    assert len(_moved(found, 0)) == 3


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a.warc A.ARC.GZ a.warc.zst a.warc.lz4 a.wacz a.cdxj a.cdx.gz", True),
        ("a.warc.gz.open a.warc.wet.gz", True),
        ("README.txt MANIFEST warc search cluster.idx", False),
        ("a.warc.gz.md5 a.warc.gz.sha1 a.warc.txt", False),
    ],
)
def test_names_of_archives(names: str, expected: bool) -> None:
    assert {names_archive(name) for name in names.split()} == {expected}
