"""Whatever the bytes are: nothing is raised, and no record is lost from the count."""

import io
import zipfile

from hypothesis import given, settings
from hypothesis import strategies as st

from builder.intake.captures import FAULT_CODES, Capture, Fault
from builder.sources.webarchives.events import Skipped
from builder.sources.webarchives.html import title_and_language
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.webarchive import ArchiveReader
from tests.builder.sources.webarchives.containers import (
    arc,
    archived,
    filedesc,
    http,
    members,
    warc,
)
from tests.extent import examples

_RECORDS = [warc(http(), url=b"http://a.cz/%d" % n) for n in range(4)]
_ARCS = [filedesc(), *(arc(http(), url=b"http://a.cz/%d" % n) for n in range(3))]
_FILES = [b"".join(_RECORDS), members(_RECORDS), b"".join(_ARCS), members(_ARCS)]


class _Slow(io.BytesIO):
    """A stream that gives a few bytes at a time, as a network does."""

    def read(self, size=-1, /):
        return super().read(min(size, 7) if size > 0 else size)


def _kinds(data, stream=io.BytesIO):
    found = list(ArchiveReader(stream(data), "a", DocumentRules()))
    for event in found:
        assert isinstance(event, Capture | Skipped | Fault)
        if isinstance(event, Fault):
            assert event.code in FAULT_CODES
    return found


@given(st.binary(max_size=4000))
@settings(max_examples=examples(150), deadline=None)
def test_arbitrary_bytes(data):
    found = _kinds(data)
    assert found


@given(
    st.sampled_from([b"WARC/1.0\r\n", b"\x1f\x8b\x08", b"filedesc://", b"PK\x03\x04"]), st.binary()
)
@settings(max_examples=examples(150), deadline=None)
def test_arbitrary_bytes_behind_a_good_start(start, data):
    _kinds(start + data)


@given(st.data())
@settings(max_examples=examples(200), deadline=None)
def test_corrupted_wacz(draw):
    method = draw.draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    files = (("datapackage.json", "{}"), ("archive/a.warc", _FILES[0]))
    data = bytearray(archived(*files, method=method))
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    assert _kinds(bytes(data[: draw.draw(st.integers(100, len(data)))]))


def test_a_slow_stream_gives_the_same():
    for data in _FILES:
        assert _kinds(data, _Slow) == _kinds(data)


@given(st.binary(max_size=3000), st.sampled_from(["utf-8", "windows-1250", "utf-16le", "gbk"]))
@settings(max_examples=examples(200), deadline=None)
def test_arbitrary_pages(page, charset):
    title_and_language(b"<html><title>" + page + b"</title>", charset)
    title_and_language(page, charset)
