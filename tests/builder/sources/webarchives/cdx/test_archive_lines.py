"""An index and the archive that it was made of give the same items, in whatever order they come."""

import base64
import json
from itertools import count
from pathlib import Path

import pytest

from builder.intake import intake
from builder.intake.captures import Capture
from builder.intake.rows import IntakeWriter
from builder.sources.webarchives.cdx import reader
from builder.sources.webarchives.cdx.block import IndexFile
from builder.sources.webarchives.cdx.text import find_form
from builder.sources.webarchives.identity import parse_address
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.webarchive import ArchiveReader
from functions.reading.repository import RecordSelection
from functions.snapshot.manifest import Span
from tests.builder.beginning import begin
from tests.builder.indexes import ALL, NOTHING, Read, line
from tests.builder.sources.webarchives.containers import http, members, skips, warc
from tests.builder.sources.webarchives.test_request import exchange, post

pytestmark = pytest.mark.shared(2)

DATA = Path(__file__).parents[5].parent / "shared" / "data" / "webarchive"
_NUMBERS = count()

REAL = {
    # index: its archive, and the name that the index has for it
    "pywb__dupes.cdxj": ("pywb__dupes.warc.gz", "dupes.warc.gz"),
    "pywb__iana.cdxj": ("pywb__iana.warc.gz", "iana.warc.gz"),
    "solrwayback__IAH-20080430204825-00000-blackbook.warc.gz.cdx": (
        "ipwb__IAH-20080430204825-00000-blackbook.warc.gz",
        "IAH-20080430204825-00000-blackbook.warc.gz",
    ),
}


def captures(path, name):
    with path.open("rb") as stream:
        return [e for e in ArchiveReader(stream, name, ALL) if isinstance(e, Capture)]


def source(name):
    return intake.IntakeSource(name, "d" + name, name, "warc", 1, 1, 0, 0, {}, {})


def take(world, folder, path, name):
    """Ingest an index, or an archive under a name, as one run."""
    folder = folder / f"run-{next(_NUMBERS)}"
    folder.mkdir()
    form = find_form(path.read_bytes()[: 1 << 14])
    if form:
        with path.open("rb") as file:
            reader.read(file, IndexFile(path.name, folder, "000000", ALL), form, 1, lambda *_: None)
    else:
        part = IntakeWriter(folder, "000000")
        for item in captures(path, name):
            part.capture(item, tuple(sorted(item.sets)))
        part.close()
    world.runs += 1
    run = intake.IntakeRun(f"20260101T0000{world.runs:02}Z-x", (source(path.name),))
    intake.commit(world.store, run, folder)


def records(world):
    """Return all that is published of each item."""
    repository = world.repository()
    newest = repository.pointer().newest()
    manifest = repository.manifest(newest.snapshot)
    found = []
    selection = RecordSelection(("capture",), Span(1, manifest.last_position))
    while True:
        page = repository.page(manifest, selection, 1000, headers=False)
        found += page
        if len(page) < 1000:
            break
        selection = RecordSelection(
            ("capture",), Span(page[-1].position + 1, manifest.last_position)
        )
    columns = ("position", "sequence")
    return {
        r.identifier: ({k: v for k, v in r.fields.items() if k not in columns}, sorted(r.sets))
        for r in found
        if not r.deleted
    }


@pytest.mark.thorough
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no real archives at {DATA}")
@pytest.mark.parametrize("listed", REAL)
def test_real_indexes(make_world, tmp_path, listed):
    file, name = REAL[listed]
    both(make_world, tmp_path, DATA / "oracle" / listed, DATA / "core" / file, name)


def both(make_world, tmp_path, listed, archive, name):
    """Hold records of index and archive, in any order, against those of the archive alone."""

    def alone(world):
        take(world, tmp_path, archive, name)
        world.publish()

    first = make_world("archive")
    begin(first, ("index and archive", name), alone)
    expected = records(first)
    last = make_world("index")
    take(last, tmp_path, listed, name)
    last.publish()
    assert set(records(last)) == set(expected)
    for world, other in ((first, listed), (last, archive)):
        take(world, tmp_path, other, name)
        world.publish()
        assert records(world) == expected
    together = make_world("together")
    take(together, tmp_path, listed, name)
    take(together, tmp_path, archive, name)
    together.publish()
    assert records(together) == expected


def cdxj(capture, **changes):
    """Return the line that an indexer would write of a capture."""
    raw = capture.url_bytes or capture.url.encode()
    is_revisit = capture.warc_record_type == "revisit"
    said = {
        "url": raw.decode("utf-8", "surrogateescape"),
        "mime": "warc/revisit" if is_revisit else capture.content_mime_type or "unk",
        "status": None if is_revisit else str(capture.fetch_status or "-"),
        "digest": capture.content_digest,
        "length": str(capture.warc_record_length),
        "offset": str(capture.warc_record_offset),
        "filename": "crawls/" + capture.warc_filename,
        "method": capture.fetch_method,
        "requestBody": capture.fetch_body,
        **changes,
    }
    date = "".join(c for c in capture.fetch_date if c.isdigit())[:14]
    text = json.dumps({k: v for k, v in said.items() if v is not None}, ensure_ascii=False)
    return f"{capture.url_surtkey} {date} ".encode() + text.encode("utf-8", "surrogateescape")


NO_DOCUMENTS = [
    # What cdxj-indexer lists of metadata and requests
    line("http://a.cz/w", mime="text/anvl", status=None, offset="99001"),
    line("http://a.cz/w", mime="application/warc-fields", status=None, offset="99002"),
    line("http://a.cz/w", mime=None, status=None, digest=NOTHING, offset="99003"),
]


@pytest.fixture
def made(tmp_path):
    """An archive with whatever makes items differ, and alike ones; and its captures."""
    digest = b"WARC-Payload-Digest: sha1:" + base64.b32encode(b"x" * 20)
    urls = [
        b"http://www.a.cz/",
        b"http://a.cz/?b=2&a=1",
        b"http://A.cz:8080/x/../y",
        b"http://a.cz/a b",
        b"http://a.cz/caf\xe9",
        "http://a.cz/café".encode(),
        b"http://a.cz/%7Euser;jsessionid=" + b"0" * 32,
        "http://háčky.cz/".encode(),
        b"ftp://a.cz/x",
        b"http://u:p@a.cz/",
        b"urn:uuid:1",
    ]
    blocks = [warc(http(b"<title>%d</title>" % n), url=url) for n, url in enumerate(urls)]
    blocks += [warc(http(b"again"), url=b"http://a.cz/again") for _ in range(3)]
    blocks += [
        warc(http(b""), digest, kind=b"revisit", url=b"http://a.cz/r"),
        warc(http(b"", status=b"HTTP/1.1 304 No"), digest, kind=b"revisit", url=b"http://a.cz/s"),
        warc(http(b"", b"Location: /x", status=b"HTTP/1.1 302 Found"), url=b"http://a.cz/t"),
        warc(http(b"gone", status=b"HTTP/1.1 404 No"), url=b"http://a.cz/u"),
        warc(http(b"late"), url=b"http://a.cz/v", date=b"2008-04-30T20:48:26.123Z"),
        warc(b"bytes", b"Content-Type: image/png", kind=b"resource", url=b"http://a.cz/w"),
        warc(b"via: x", b"Content-Type: text/anvl", kind=b"metadata", url=b"http://a.cz/w"),
        warc(b"a: b", b"Content-Type: application/warc-fields", kind=b"resource"),
    ]
    blocks += exchange(post("q=č&a=%41".encode()), 1)
    blocks += exchange(post(b'{"q": "\\n"}', b"application/json", method=b"PUT"), 2, before=True)
    blocks += exchange(post(method=b"HEAD"), 3)
    path = tmp_path / "made.warc.gz"
    path.write_bytes(members(blocks))
    return path, captures(path, path.name)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", ["sorted", "reversed and repeated"])
def test_made_indexes(make_world, tmp_path, made, order):
    archive, found = made
    lines = sorted([*map(cdxj, found), *NO_DOCUMENTS])
    if order != "sorted":
        lines = lines[::-1] + lines[::2]
    path = tmp_path / "made.cdxj"
    path.write_bytes(b"\n".join(lines) + b"\n")
    both(make_world, tmp_path, path, archive, archive.name)


def test_made_cdx(tmp_path, made):
    """Its captures are those of the other form, of which test_made_indexes tells what comes."""
    lines = [b" CDX N b a m s k r M S V g"]
    for one in made[1]:
        said = json.loads(
            cdxj(one).partition(b" {")[2].join([b"{", b""]).decode("utf-8", "surrogateescape")
        )
        date = "".join(c for c in one.fetch_date if c.isdigit())[:14]
        values = [
            one.url_surtkey,
            date,
            said["url"],
            said["mime"],
            said.get("status", "-"),
            said["digest"],
            "-",
            "-",
        ]
        values += [said["length"], said["offset"], said["filename"]]
        lines.append(" ".join(values).encode("utf-8", "surrogateescape"))
    other = Read(b"\n".join(lines) + b"\n", tmp_path / "cdx")
    assert other.form == "cdx"
    right = Read(b"\n".join(map(cdxj, made[1])) + b"\n", tmp_path / "cdxj")
    assert right.form == "cdxj"
    assert len(right.captures) == len(made[1])
    # The key alone tells the method; what was sent is not in it as it was.
    assert other.captures == [{**one, "fetch_body": None} for one in right.captures]
    assert [one["fetch_method"] for one in other.captures].count("POST") == 1
    assert not other.faults


def test_the_key_is_ours(made):
    for one in made[1]:
        assert parse_address(one.url_bytes or one.url.encode()).url == one.url


@pytest.mark.parametrize(
    ("status", "reasons"), [("302 Found", ["redirect"]), ("404 Not Found", ["error"]), ("200", [])]
)
def test_a_revisit_whose_status_both_name(tmp_path, status, reasons):
    """Rules leave it out of both; an index that names none publishes it."""
    head = b"HTTP/1.1 " + status.encode() + b"\r\nContent-Type: text/html\r\n\r\n"
    record = warc(head, b"WARC-Payload-Digest: sha1:" + b"A" * 32, kind=b"revisit")
    assert skips(record, DocumentRules()) == reasons
    named = line(mime="warc/revisit", status=status[:3])
    assert sorted(Read(named, tmp_path / "named", DocumentRules()).given.skips) == reasons
    silent = line(mime="warc/revisit", status="-")
    assert Read(silent, tmp_path / "silent", DocumentRules()).given.captures == 1
