"""The zip itself: WARC files of a bounded size, its index, and an empty one that is whole too."""

import gzip
import hashlib
import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.exports import chosen_captures, record_copy
from builder.exports.chosen_captures import Chosen, SortedLines
from builder.exports.record_copy import cut
from builder.exports.wacz.package import HEADING, About, Parcel, pack_index
from functions.store import engine
from tests.builder.exports.wacz.shelf import Shelf
from tests.builder.sources.webarchives.containers import captures, http, members, warc

ABOUT = About("A title", "", datetime(2026, 11, 22, tzinfo=UTC))
PAGES = {b"http://a.cz/%d" % n: b"<title>%d</title>" % n + bytes(n * 1000) for n in range(7)}


def written(folder: Path, largest: int) -> bytes:
    """Return a WACZ file of all pages, whose WARC files end at a size."""
    out = io.BytesIO()
    shelf = Shelf(a_warc_gz=members(warc(http(body), url=url) for url, body in PAGES.items()))
    with engine.connect() as connection:
        parcel = Parcel(out, connection, ABOUT, largest)
        for capture in shelf.captures("a.warc.gz"):
            with cut(shelf, capture, folder) as record:
                parcel.add(Chosen(capture, None, "A title", False), record)
        parcel.end()
    assert parcel.size == len(out.getvalue())
    return out.getvalue()


@pytest.mark.parametrize(("largest", "files"), [(1, 7), (1 << 30, 1), (600, 4)])
def test_a_warc_file_ends_at_a_size(tmp_path: Path, largest: int, files: int) -> None:
    data = written(tmp_path, largest)
    found = captures(data, name="a.wacz")
    assert [one.url.encode() for one in found] == [*PAGES]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if name.startswith("archive/")]
        assert len(names) == len({one.warc_filename for one in found}) == files
        for line in gzip.decompress(archive.read("indexes/index.cdx.gz")).splitlines():
            told = json.loads(line.split(b" ", 2)[2])
            start, length = int(told["offset"]), int(told["length"])
            record = archive.read(f"archive/{told['filename']}")[start : start + length]
            (one,) = captures(record)
            assert one.url == told["url"]


def test_a_large_record_lies_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_copy, "HELD", 10)
    assert len(captures(written(tmp_path, 1 << 30))) == len(PAGES)


def test_one_of_nothing_is_whole() -> None:
    out = io.BytesIO()
    with engine.connect() as connection:
        Parcel(out, connection, ABOUT).end()
    with zipfile.ZipFile(out) as archive:
        assert archive.testzip() is None
        package = json.loads(archive.read("datapackage.json"))
        assert archive.read("indexes/index.cdx.gz") == b""
        assert gzip.decompress(archive.read("archive/data-00001.warc.gz")).startswith(b"WARC/1.1")
    assert package["created"] == "2026-11-22T00:00:00Z"
    assert [resource["path"] for resource in package["resources"]] == [
        "archive/data-00001.warc.gz",
        "indexes/index.cdx.gz",
        "indexes/index.idx",
        "pages/pages.jsonl",
    ]


TEXTS = st.lists(st.binary(max_size=12).filter(lambda b: b"\n" not in b), max_size=60)


@given(TEXTS, st.integers(1, 64))
def test_lines_come_back_sorted_by_their_bytes(texts: list[bytes], many: int) -> None:
    with engine.connect() as connection, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chosen_captures, "BATCH", many)
        lines = SortedLines(connection, "lines")
        for text in texts:
            lines.add(text + b"\n")
        assert list(lines) == sorted(text + b"\n" for text in texts)


def test_the_second_index_leads_to_each_member() -> None:
    lines = [b'cz,a)/%03d 20080430204826 {"url": "http://a.cz/"}\n' % n for n in range(25)]
    members_ = list(pack_index(lines, 10))
    assert [gzip.decompress(block).count(b"\n") for _, block in members_] == [10, 10, 5]
    index = b"".join(block for _, block in members_)
    assert gzip.decompress(index) == b"".join(lines)
    for number, (line, block) in enumerate(members_):
        key, date, told = line.split(b" ", 2)
        assert (key, date) == (b"cz,a)/%03d" % (10 * number), b"20080430204826")
        place = json.loads(told)
        assert index[place["offset"] :][: place["length"]] == block
        assert place["digest"] == f"sha256:{hashlib.sha256(block).hexdigest()}"
    assert list(pack_index([])) == []
    heading = {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
    assert b"!meta 0 %b\n" % json.dumps(heading).encode() == HEADING
