"""WACZ files that are damaged anywhere: their archives are read as bare ones are."""

import hashlib
import io
import json
import re
import struct
import zipfile

import pytest

from builder.intake.captures import Capture, Fault
from builder.sources.webarchives.webarchive import ArchiveReader
from tests.builder.sources.webarchives.containers import (
    ALL,
    archived,
    captures,
    codes,
    events,
    faults,
    http,
    members,
    warc,
)

RECORDS = [warc(http(b"<p>%d" % n * 50), url=b"http://a.cz/%d" % n) for n in range(4)]
ARCHIVE = members(RECORDS)
SECOND = members([warc(http(b"second"), url=b"http://b.cz/")])


class Forwards(io.RawIOBase):
    """A file that cannot seek, for which zipfile writes data descriptors."""

    def __init__(self):
        self.data = b""

    def writable(self):
        return True

    def write(self, data):
        self.data += bytes(data)
        return len(data)


def wacz(method=zipfile.ZIP_STORED, *, forwards=False, long=False):
    out = Forwards() if forwards else io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in (
            ("datapackage.json", b"{}"),
            ("archive/one.warc.gz", ARCHIVE),
            ("archive/two.warc.gz", SECOND),
            ("pages/pages.jsonl", b'{"format": "json-pages-1.0"}\n'),
        ):
            info = zipfile.ZipInfo(name, (2026, 11, 22, 0, 0, 0))
            info.compress_type = method
            with archive.open(info, "w", force_zip64=long) as file:
                file.write(data)
    return out.data if forwards else out.getvalue()


def test_the_manifest_is_compared_with_what_is_there():
    out = io.BytesIO()
    right, wrong = (f"sha256:{hashlib.sha256(d).hexdigest()}" for d in (ARCHIVE, b"other"))
    listed = {"./archive/one.warc.gz": right, "archive/two.warc.gz": wrong, "archive/gone": None}
    resources = [{"path": path, "hash": digest} for path, digest in listed.items()]
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("datapackage.json", json.dumps({"resources": resources}))
        archive.writestr("archive/one.warc.gz", ARCHIVE)
        archive.writestr("archive/two.warc.gz", SECOND)
        archive.writestr("inner.wacz", b"", zipfile.ZIP_DEFLATED)
        archive.writestr("other/three.WARC.GZ", SECOND)
    data = out.getvalue()
    assert len(captures(data)) == 5
    assert [(fault.code, fault.detail.split()[0]) for fault in faults(data)] == [
        ("wacz-member", "archive/gone"),
        ("wacz-member", "inner.wacz"),
        ("wacz-member", "other/three.WARC.GZ"),
        ("wacz-member", "archive/two.warc.gz"),
    ]


def test_a_wacz_of_several_is_read_and_none_deeper():
    def pack(name, data):
        digest = hashlib.sha256(ARCHIVE).hexdigest()  # of something else
        listed = {"resources": [{"path": name, "hash": f"sha256:{digest}"}]}
        return archived((name, data), ("datapackage.json", json.dumps(listed)))

    inner = pack("week/Inner.WACZ", wacz())
    assert [capture.warc_filename for capture in captures(inner)] == [
        f"a/week/Inner.WACZ/archive/{name}.warc.gz" for name in ["one"] * 4 + ["two"]
    ]
    assert [fault.detail for fault in faults(inner)] == [
        "week/Inner.WACZ has another digest than datapackage.json says"
    ]
    cut = captures(inner[: inner.rindex(b"PK\1\2") - 60])
    assert [capture.warc_filename for capture in cut] == [
        capture.warc_filename for capture in captures(inner)
    ]
    deeper = pack("outer.wacz", inner)
    assert captures(deeper) == []
    assert "week/Inner.WACZ is not in the archive folder" in [f.detail for f in faults(deeper)]


@pytest.mark.parametrize("text", [b"{not", b"", b"[1]", b'{"resources": [{"path": 1}, 2]}'])
def test_an_odd_manifest_is_passed_over(text):
    data = archived(("datapackage.json", text), ("archive/one.warc.gz", ARCHIVE))
    assert (len(captures(data)), codes(data)) == (4, [])


FORMS = {
    "stored": wacz(),
    "deflated": wacz(zipfile.ZIP_DEFLATED),
    "described": wacz(forwards=True),
    "described-deflated": wacz(zipfile.ZIP_DEFLATED, forwards=True),
    "long": wacz(long=True),
    "long-described": wacz(forwards=True, long=True),
}
WHOLE = [(c.url, c.warc_filename, c.warc_record_offset) for c in captures(FORMS["stored"])]


def found(data):
    return [(c.url, c.warc_filename, c.warc_record_offset) for c in captures(data)]


@pytest.mark.parametrize("form", FORMS)
def test_a_wacz_without_its_directory_is_read_by_its_local_headers(form):
    data = FORMS[form]
    assert len(WHOLE) == 5
    assert (found(data), codes(data)) == (WHOLE, [])
    for cut in (10, 22, len(data) - data.index(b"PK\1\2")):
        assert (found(data[:-cut]), codes(data[:-cut])) == (WHOLE, ["wacz-damaged"]), cut
    broken = data.replace(b"PK\1\2", b"PK\1\3", 1)
    assert (found(broken), codes(broken)) == (WHOLE, ["wacz-damaged"])


@pytest.mark.parametrize("form", ["stored", "described", "long", "long-described"])
def test_one_flipped_bit_in_a_stored_archive_costs_one_capture_at_most(form):
    data = FORMS[form]
    first = data.index(ARCHIVE)
    for at in range(0, len(ARCHIVE), 37):
        broken = bytearray(data)
        broken[first + at] ^= 1 << at % 8
        whole = [c for c in captures(bytes(broken)) if not c.content_damaged]
        places = [(c.url, c.warc_filename, c.warc_record_offset) for c in whole]
        assert len(set(WHOLE) - set(places)) <= 1, at
        (fault,) = [f for f in faults(bytes(broken)) if f.code == "wacz-damaged"]
        assert fault.place == data.index(b"archive/one") - 30
        assert "checksum" in fault.detail


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", FORMS)
def test_a_flipped_bit_in_any_header_costs_no_capture_silently(form):
    """Of local headers, data descriptors and the directory.

    Only the length of an extra field costs captures, where the archives lie unpacked.
    """
    data = FORMS[form]
    urls = sorted(url for url, *_ in WHOLE)
    begins = {archive: data.find(archive) for archive in (ARCHIVE, SECOND)}
    inside = {at + place for part, at in begins.items() for place in range(len(part))}
    headers = [match.start() for match in re.finditer(b"PK\3\4", data)]
    untold, lost = [], set()
    for at in range(0, len(data), 1 if form in ("stored", "described") else 5):
        broken = bytearray(data)
        broken[at] ^= 1 << at % 8
        read = sorted(c.url for c in captures(bytes(broken)))
        if read != urls and not codes(bytes(broken)):
            untold.append((at, at % 8))
        if "deflated" not in form and at not in inside and {*read} != {*urls}:
            lost.add(at)
    assert untold == []
    assert lost <= {header + 28 + byte for header in headers for byte in (0, 1)}


def test_a_name_of_another_alphabet_costs_no_capture():
    whole = archived(("archive/xxx.warc.gz", ARCHIVE))
    data = bytearray(whole.replace(b"xxx", "d\u00e9t".encode("cp437")))
    data[8] ^= 9  # the method, in the local header
    assert (len(captures(bytes(data))), codes(bytes(data))) == (4, ["wacz-damaged"])


@pytest.mark.parametrize("place", [1 << 32, (1 << 62) + 7, 1 << 63, (1 << 64) - 1])
def test_a_place_beyond_the_zip_costs_no_capture(tmp_path, place):
    """An offset of ZIP64 may be one that no file can be sought to."""
    data = FORMS["stored"]
    at = data.index(b"PK\1\2", data.index(b"PK\1\2") + 1)  # of the first archive
    names = at + 46 + len("archive/one.warc.gz")
    record = bytearray(data[at:names])
    struct.pack_into("<H", record, 30, 12)
    struct.pack_into("<I", record, 42, 0xFFFFFFFF)
    extra = struct.pack("<HHQ", 1, 8, place)
    end = bytearray(data[data.index(b"PK\5\6") :])
    struct.pack_into("<I", end, 12, struct.unpack_from("<I", end, 12)[0] + len(extra))
    rest = data[names : data.index(b"PK\5\6")]
    path = tmp_path / "a"
    path.write_bytes(data[:at] + record + extra + rest + end)
    with path.open("rb") as stream:  # which seeks as the system does
        told = list(ArchiveReader(stream, "a", ALL))
    given = [e for e in told if isinstance(e, Capture)]
    assert [(c.url, c.warc_filename, c.warc_record_offset) for c in given] == WHOLE
    assert [e.code for e in told if isinstance(e, Fault)] == ["wacz-damaged"]


def test_a_wacz_cut_within_an_archive_gives_what_is_there():
    for form in ("stored", "described"):
        data = FORMS[form]
        cut = data[: data.index(ARCHIVE) + len(ARCHIVE) - len(members(RECORDS[-1:])) - 5]
        assert [url for url, *_ in found(cut)][:2] == [f"http://a.cz/{n}" for n in range(2)]
        assert codes(cut)[0] == "wacz-damaged"


def test_deflated_archives_keep_what_lies_before_the_damage():
    records = [warc(http(b"<p>%d" % n * 99), url=b"http://a.cz/%d" % n) for n in range(200)]
    files = ("archive/a.warc", b"".join(records))
    data = bytearray(archived(files, method=zipfile.ZIP_DEFLATED))
    middle = len(data) // 2
    data[middle : middle + 8] = b"\xff" * 8
    assert len(captures(bytes(data))) > 40
    assert "wacz-damaged" in codes(bytes(data))


def test_headers_that_were_made_to_lie_take_bounded_time():
    header = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 8, 0, 0, 0, 0, 0, 0, 9, 0)
    data = (header + b"archive/a") * 2_000
    found = events(data)
    assert len(found) <= 3 * 2_000
    assert {f.code for f in found if hasattr(f, "code")} <= {
        "wacz-damaged",
        "empty-file",
        "not-an-archive",
    }
