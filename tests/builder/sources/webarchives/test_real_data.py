"""Real archives: every file is accounted for, and published indexes are agreed with.

The files are not part of the repository, since the pages in them belong to their authors.
"""

import csv
import re
import zlib
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import zstandard

from builder.intake.captures import FAULT_CODES, Capture, Fault
from builder.sources.webarchives.events import Skipped
from builder.sources.webarchives.recognise import read_head, recognise
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.side_records import Crawl
from builder.sources.webarchives.webarchive import ArchiveReader
from functions.snapshot import oai_name, schema
from tests.builder.sources.webarchives.containers import ALL, dictionary_frame, frame, frames

DATA = Path(__file__).parents[4].parent / "shared" / "data" / "webarchive"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real archives at {DATA}")

_XML_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def manifest():
    if not DATA.is_dir():
        return []
    with (DATA / "manifest.csv").open(newline="", encoding="utf-8") as rows:
        return [row for row in csv.DictReader(rows) if row["tier"] in ("core", "hard", "derived")]


def path_of(row):
    return DATA / Path(row["file"]).relative_to("shared")


def events(path, rules=ALL):
    with path.open("rb") as stream:
        return list(ArchiveReader(stream, path.name, rules))


def captures(path, rules=ALL):
    return [e for e in events(path, rules) if isinstance(e, Capture)]


def digits(capture):
    return re.sub(r"\D", "", capture.fetch_date or "")[:14]


each = pytest.mark.parametrize("row", manifest(), ids=lambda row: Path(row["file"]).name)


@each
def test_the_format_is_known_by_the_first_bytes(row):
    with path_of(row).open("rb") as stream:
        kind = recognise(read_head(stream))
    if row["format"].endswith(".lz4") or row["size"] == "0" or "nonarc" in row["file"]:
        assert kind is None
    else:
        assert kind == row["format"]


# Records that the library which made the manifest does not see: it ends at the first bad record,
# at a record in another's gzip member, or takes a text for an archive.
RECORDS = {
    "warcio__example-bad-non-chunked.warc.gz": 6,
    "aut__badexample.arc.gz": 4,
    "nas__input-nonarc.arc": 0,
    "jhove__invalid-warcfile-lonely-revisit.warc": 1,
    "gowarc__corrupted-mid-record.warc.gz.open": 12,
    "commoncrawl__whirlwind.warc.zst": 4,
}


@each
def test_every_record_is_accounted_for(row):
    path = path_of(row)
    found = events(path)
    counted = Counter()
    for event in found:
        if isinstance(event, Capture):
            counted[event.warc_record_type] += 1
        elif isinstance(event, Skipped):
            counted[event.reason] += 1
        elif not isinstance(event, Crawl):
            assert isinstance(event, Fault)
            assert event.code in FAULT_CODES
            assert event.done
    assert counted.total() == RECORDS.get(path.name, int(row["records"]))
    if row["warcio"] == "clean" and row["tier"] == "core":
        types = {k: int(n) for k, n in (pair.split("=") for pair in row["types"].split())}
        assert types.get("revisit", 0) == counted["revisit"]
        for kind in ("request", "metadata", "conversion"):
            assert types.get(kind, 0) == counted[kind]
        documents = types.get("response", 0) + types.get("resource", 0)
        others = counted["dns"] + counted["pageinfo"] + counted["crawl-log"]
        assert documents == counted["response"] + counted["resource"] + others
        assert [e.code for e in found if isinstance(e, Fault)] in (
            [],
            ["content-encoding-undecoded"],  # Sina: one "Content-Encoding: null"
        )


@each
def test_captures_hold_only_what_may_be_published(row):
    found = captures(path_of(row))
    assert len({c.identity for c in found}) == len(found)
    for capture in found:
        for value in asdict(capture).values():
            assert not isinstance(value, str) or not _XML_ILLEGAL.search(value)
        assert capture.url.isascii()
        assert " " not in capture.url_surtkey
        assert list(capture.sets) == sorted(capture.sets)
        assert all(oai_name.is_set(spec) for spec in capture.sets)
        assert not (capture.fetch_date or "").startswith("2999")
        if capture.fetch_time:
            assert capture.fetch_time.year < 2027


PAIRS = [
    ("aut__example.arc.gz", "ipwb__IAH-20080430204825-00000-blackbook.warc.gz", 261),
    ("nas__fyensdk.arc", "nas__fyensdk.warc", 189),
    *(
        (
            "ukwa-suite__IAH-20080430204825-00000-blackbook-truncated.arc",
            f"ukwa-suite__IAH-20080430204825-00000-blackbook-truncated.{kind}",
            7,
        )
        for kind in ("arc.gz", "warc", "warc.gz")
    ),
]


@pytest.mark.parametrize("one, two, count", PAIRS)
def test_one_crawl_in_two_containers_gives_equal_captures(one, two, count):
    def comparable(name):
        # The record's id is what an ARC does not have.
        found = [replace(c, refers_to_date=None) for c in placeless(DATA / "core" / name)]
        if "fyensdk" in name:
            # The HTTP heads are blanked out, and the conversion to WARC had no place for the
            # media type that only the ARC header line has.
            found = [replace(c, content_mime_type=None, sets=c.sets[:1]) for c in found]
        return found

    first, second = comparable(one), comparable(two)
    assert len(first) == count
    assert first == second


def test_the_czech_sample():
    path = DATA / "core" / "webarchivcz__example-20200623-crawler0.warc.gz"
    found = captures(path, DocumentRules())
    assert Counter(c.warc_record_type for c in found)["revisit"] == 3
    front = [c for c in found if c.title and "iDNES" in c.title]
    assert front
    assert {c.content_charset for c in front} <= {"windows-1250", "utf-8"}
    assert all("\ufffd" not in (c.title or "") for c in found)


def placeless(path):
    nowhere = {name: "" if name == "warc_filename" else None for name in schema.LOCATION}
    return [replace(c, **nowhere) for c in captures(path)]


def test_the_zstd_twin_gives_equal_captures():
    one = DATA / "core" / "commoncrawl__whirlwind.warc.gz"
    two = DATA / "derived" / "commoncrawl__whirlwind.warc.zst"
    assert placeless(one) == placeless(two)
    assert len(placeless(two)) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(
    "name", ["pywb__iana.warc.gz", "aut__example.arc.gz", "webarchivcz__example-20200623-crawler0"]
)
def test_packed_anew_in_zstd_they_give_equal_captures(name, trained, tmp_path):
    path = next((DATA / "core").glob(f"{name}*"))
    records = list(gzip_members(path.read_bytes()))
    made = zstandard.train_dictionary(1 << 14, records) if trained else None
    head = dictionary_frame(made) if made else b""
    packed = tmp_path / "a.zst"
    packed.write_bytes(head + frames(records, made))
    assert placeless(packed) == placeless(path)
    at = len(head)
    starts = {at: 0}
    for number, record in enumerate(records, 1):
        at += len(frame(record, made))
        starts[at] = number
    for capture in captures(packed):
        number = starts[capture.warc_record_offset]
        assert starts[capture.warc_record_offset + capture.warc_record_length] == number + 1


def gzip_members(data):
    while data:
        inflater = zlib.decompressobj(31)
        yield inflater.decompress(data)
        data = inflater.unused_data


# Files whose last or only record is short, which other readers pass over without a word: bytes
# declared and found of each, by place. Those of facts that are not kept here have their like in
# test_places.
SHORT = {
    "fastwarc__clipped.warc.gz": {0: (88275, 75207)},
    "jwatr__bbc.warc": {0: (43428, 26051)},
    "ia-cdxwriter__date_resolution_microsecond.warc.gz": {0: (246, 243)},
    "warcio__example-space-in-url.arc": {151: (1591, 1579)},
}


@each
def test_bytes_that_are_missing_are_told(row):
    path = path_of(row)
    found = [e for e in events(path) if isinstance(e, Fault) and e.code == "payload-short"]
    told = {f.place: tuple(map(int, re.findall(r"\d+", f.detail))) for f in found}
    assert told == SHORT.get(path.name, {})
    assert int(row["short_payloads"] or 0) == len(told)
    cut = {c.warc_record_offset for c in captures(path) if c.content_truncated}
    assert cut >= {f.place for f in found if f.done == "published as truncated"}
