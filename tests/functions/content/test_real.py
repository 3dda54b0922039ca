"""Real archives: the bytes of every capture are those that its record tells the digest of.

The files are not part of the repository, since the pages in them belong to their authors.
"""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from builder.intake.captures import Capture
from builder.sources.webarchives.cdx import index_entry, notation
from functions.content import archived_payload
from functions.content.capture_row import CaptureRow
from functions.content.protocols import ContentError
from functions.reading.repository import PublishedRecord
from functions.store.slice import FolderSlices
from tests.builder.sources.webarchives.containers import ALL, ArchiveReader
from tests.functions.content.stored import NONE, Stored

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "webarchive"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real archives at {DATA}")

UNPLACED = {
    # file: captures whose records lie in a gzip member with others, and have no place of their own
    "warcio__example-bad-non-chunked.warc.gz": 2,
    "aut__badexample.arc.gz": 2,
    "gowarc__corrupted-mid-record.warc.gz.open": 11,
}


def manifest() -> list[dict[str, str]]:
    if not DATA.is_dir():
        return []
    with (DATA / "manifest.csv").open(newline="", encoding="utf-8") as rows:
        return [row for row in csv.DictReader(rows) if row["tier"] in ("core", "hard", "derived")]


def whole(stored: Stored, one: PublishedRecord) -> str:
    """Read a capture as it is stored and decoded; return what came of it."""
    contents = stored.contents()
    if one.fields["warc_record_type"] == "revisit":
        capture = CaptureRow.of(one.identifier, 1, (), one.fields)
        with archived_payload.open_record(contents.archives, capture) as found:
            return found.document.record.type
    found_: Any = contents.find(NONE, one)
    with contents.open_content(found_, coded=True) as stream:
        assert len(stream.read()) == one.fields["content_length"]
    with contents.open_content(found_) as stream:
        size = len(stream.read())
    assert found_.size in (None, size)
    assert found_.url == one.fields["url"]
    return "verified" if found_.digest else "without a digest"


@pytest.mark.thorough
@pytest.mark.parametrize("row", manifest(), ids=lambda row: Path(row["file"]).name)
def test_the_bytes_of_each_capture_have_the_digest_of_its_record(row: dict[str, str]) -> None:
    path = DATA / Path(row["file"]).relative_to("shared")
    stored = Stored(path.parent, FolderSlices(path.parent))
    with path.open("rb") as stream:
        stored.list([e for e in ArchiveReader(stream, path.name, ALL) if isinstance(e, Capture)])
    counts: Counter[str] = Counter()
    for one in stored.records:
        try:
            counts[whole(stored, one)] += 1
        except ContentError as error:
            counts[error.code] += 1
    unplaced = UNPLACED.get(path.name, 0)
    assert counts.total() == len(stored.records)
    assert set(counts) <= {"verified", "revisit"} | ({"unplaced"} if unplaced else set())
    assert counts["unplaced"] == unplaced


INDEXED = {
    # index: the archive that it is of
    "pywb__iana.cdxj": "core/pywb__iana.warc.gz",
    "pywb__dupes.cdxj": "core/pywb__dupes.warc.gz",
}


@pytest.mark.parametrize("index", INDEXED)
def test_an_index_alone_leads_to_bytes_that_have_its_digests(index: str) -> None:
    stored = Stored(DATA / "core", FolderSlices(DATA / "core"))
    for line in (DATA / "oracle" / index).read_bytes().splitlines():
        found, _ = notation.parse_cdxj_line(line)
        if found is None:
            continue
        made, _ = index_entry.build_capture(found, ALL)
        if isinstance(made, Capture):
            made.warc_filename = Path(INDEXED[index]).name
            stored.list([made])
    assert stored.records
    size = 0
    for one in stored.records:
        if one.fields["warc_record_type"] != "revisit":
            digest = f"sha1:{one.fields['content_digest']}"
            assert stored.contents().find(NONE, one).digest == digest
            size += len(stored.read(warc_record_offset=one.fields["warc_record_offset"]))
    assert size
