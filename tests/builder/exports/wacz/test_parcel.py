"""The zip itself: WARC files of a bounded size, and an empty one that is whole all the same."""

import gzip
import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builder.exports import record_copy as module
from builder.exports.chosen_captures import Chosen
from builder.exports.record_copy import cut
from builder.exports.wacz.package import About, Parcel
from tests.builder.exports.wacz.shelf import Shelf
from tests.builder.sources.webarchives.containers import captures, http, members, warc

ABOUT = About("A title", "", "Sheaf", datetime(2026, 11, 22, tzinfo=UTC))
PAGES = {b"http://a.cz/%d" % n: b"<title>%d</title>" % n + bytes(n * 1000) for n in range(7)}


def written(folder: Path, largest: int) -> bytes:
    """Return a WACZ file of all pages, whose WARC files end at a size."""
    out = io.BytesIO()
    shelf = Shelf(a_warc_gz=members(warc(http(body), url=url) for url, body in PAGES.items()))
    parcel = Parcel(out, folder, ABOUT, largest)
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
    monkeypatch.setattr(module, "HELD", 10)
    assert len(captures(written(tmp_path, 1 << 30))) == len(PAGES)


def test_one_of_nothing_is_whole(tmp_path: Path) -> None:
    out = io.BytesIO()
    Parcel(out, tmp_path, ABOUT).end()
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
