"""Published indexes of real archives: every line of each is agreed with, or argued with here.

A line of a capture is compared with the capture. A line of what is not published is compared with
where the reader left a record out, and with the record that lies at that very place. No record of
a file is without a line, but for those that are named.
"""

import csv
import hashlib
import io
import json
import re
import zlib
from collections import Counter
from pathlib import Path
from zipfile import ZipFile

import pytest

from builder.intake.captures import Capture, Fault
from builder.sources.webarchives import identity
from builder.sources.webarchives.events import Skipped
from builder.sources.webarchives.webarchive import ArchiveReader
from functions.archive import record_header
from functions.archive.stream import RecordStream
from tests.builder.sources.webarchives.containers import ALL, sha1

DATA = Path(__file__).parents[4].parent / "shared" / "data" / "webarchive"
ORACLE = DATA / "oracle"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real archives at {DATA}")


class File:
    """A file's records by offset, each either published or left out."""

    def __init__(self, data, name):
        self._data = data
        with io.BytesIO(data) as stream:
            self.events = list(ArchiveReader(stream, name, ALL))
        self.captures = {e.warc_record_offset: e for e in self.events if isinstance(e, Capture)}
        self.skipped = {e.offset: e for e in self.events if isinstance(e, Skipped)}
        self.faults = [e for e in self.events if isinstance(e, Fault)]
        records = [e for e in self.events if isinstance(e, Capture | Skipped)]
        assert len(records) == len(self.captures) + len(self.skipped)

    def raw(self, event):
        """Return the bytes at a record's place."""
        captured = isinstance(event, Capture)
        offset = event.warc_record_offset if captured else event.offset
        length = event.warc_record_length if captured else event.length
        return self._data[offset : offset + length]

    def stored(self, event):
        """Return the bytes at a record's place, uncompressed, which must be nothing but it."""
        piece = self.raw(event)
        if not self._data.startswith(b"\x1f\x8b"):
            return piece
        inflater = zlib.decompressobj(31)
        raw = inflater.decompress(piece)
        assert inflater.eof
        assert inflater.unused_data == b""
        return raw

    def record(self, event):
        """Return the header and the block that lie at a record's place."""
        stream = RecordStream(self.stored(event), io.BytesIO())
        stream.next_section()
        is_warc = stream.peek(5).upper() == b"WARC/"
        record, _ = (
            record_header.read_warc(stream) if is_warc else record_header.read_arc(stream, 1)
        )
        return record, stream.peek(record.length)


def opened(folder, name):
    return File((DATA / folder / name).read_bytes(), name)


def digits(text):
    return re.sub(r"\D", "", text or "")[:14]


# What the Internet Archive's CDX-Writer says otherwise, line by line, and why it is not followed.
IA_EXCEPTIONS = {
    # The file has ten digits; the rest of the index's fourteen is made up.
    ("10_digit_date.arc.gz", 666, "date"): "20160209",
    # HTTP declares text/xml and the ARC header text/html, which the index takes. HTTP comes first
    # here, so that the ARC and the WARC copy of a capture agree: a WARC has no other type.
    ("10_digit_date.arc.gz", 666, "mime"): "text/xml",
    ("14_digit_plus_text_date.arc.gz", 659, "mime"): "text/xml",
    # Its indexes give a revisit no status; each record holds the HTTP head with its status.
    ("empty-gzips.warc.gz", 2782, "status"): "200",
    ("empty-gzips.warc.gz", 5031, "status"): "200",
    # "HTTP/1.1 410 Gone" CR CR LF CR LF: the empty line ends the head here and leaves nothing,
    # which is the digest of no bytes; the index took the empty line itself for the payload.
    ("empty_record.arc.gz", 154, "digest"): "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
    # 226 is FTP's reply code; a resource record has no HTTP status.
    ("ftp-resource-payload-digest.warc.gz", 0, "status"): "-",
}


def ia_lines():
    with (ORACLE / "ia_cdxwriter_expected.csv").open(newline="") as rows:
        yield from csv.DictReader(rows)


def ia_of_capture(capture):
    # The index shows spaces escaped, but bytes beyond ASCII as they are.
    url = (capture.url_bytes or capture.url.encode()).replace(b" ", b"%20")
    revisited = capture.warc_record_type == "revisit"
    return {
        "length": str(capture.warc_record_length),
        "status": str(capture.fetch_status or "-"),
        "digest": capture.content_digest,
        "date": digits(capture.fetch_date),
        "url": repr(url),
        "surt": capture.url_surtkey,
        # Of a revisit, the indexes tell that it is one in place of its type.
        "mime": "warc/revisit" if revisited else capture.content_mime_type or "unk",
    }


def ia_of_skipped(file, skipped):
    record, block = file.record(skipped)
    # The version and the names of the fields are part of an ARC file's first header.
    content = block.split(b"\n", 2)[2] if skipped.reason == "filedesc" else block
    shown = identity.parse_address(record.url)
    return {
        "length": str(skipped.length),
        "status": "-",
        "digest": sha1(content),
        "date": digits(record.date.decode()),
        "url": repr(record.url),
        "surt": shown.url if skipped.reason == "filedesc" else shown.surt,
        "mime": "warc-info" if skipped.reason == "warcinfo" else f"warc/{skipped.reason}",
    }


def test_the_internet_archives_cdx_is_agreed_with_line_by_line():
    files = {}
    exceptions = dict(IA_EXCEPTIONS)
    count = Counter()
    for line in ia_lines():
        name, offset = line["file"], int(line["offset"])
        file = files.setdefault(name, opened("hard", f"ia-cdxwriter__{name}"))
        if offset in file.captures:
            ours = ia_of_capture(file.captures.pop(offset))
        else:
            ours = ia_of_skipped(file, file.skipped.pop(offset))
        theirs = {
            "length": line["compressed_size"],
            "status": line["status"],
            "digest": line["payload_sha1_b32"],
            "date": line["timestamp"],
            "url": line["url_bytes_repr"],
            "surt": line["massaged_url"],
            "mime": line["mime"],
        }
        if line["mime"] == "warc-info":
            # A warcinfo record has no URL: the index makes one up, of file and program.
            assert (ours.pop("url"), ours.pop("surt")) == ("b''", "")
        for field, value in ours.items():
            assert value == exceptions.pop((name, offset, field), theirs[field]), (line, field)
        count[line["mime"].partition("/")[0]] += 1
        # Whether a robot may show a page is no concern of an index of documents.
        assert line["redirect"] == "-"
        assert line["meta"] == ("A" if (name, offset) == ("uncompressed.arc", 392) else "-")
    assert count.total() == 33
    assert len(files) == 14
    assert not exceptions
    left = {n: {**f.captures, **f.skipped} for n, f in files.items() if f.captures or f.skipped}
    # CDX-Writer ended at the negative length. The record that has it cannot be read either; behind
    # it there is one more, a proxy's error.
    negative = left.pop("negative_content_length.arc.gz")
    assert list(negative) == [520, 399]
    assert (negative[520].fetch_status, negative[399].reason) == (502, "damaged")
    assert not left


@pytest.mark.parametrize(
    "name, count, others",
    [
        ("pywb__dupes", 12, {"request": 12, "warcinfo": 1}),
        ("pywb__iana", 171, {"request": 171, "warcinfo": 1}),
    ],
)
def test_pywbs_index_is_agreed_with(name, count, others):
    file = opened("core", f"{name}.warc.gz")
    lines = (ORACLE / f"{name}.cdxj").read_text().splitlines()
    assert len(lines) == count
    for line in lines:
        key, time, text = line.split(" ", 2)
        said = json.loads(text)
        capture = file.captures.pop(int(said.pop("offset")))
        assert (capture.url_surtkey, digits(capture.fetch_date)) == (key, time)
        ours = {
            "url": capture.url,
            "digest": capture.content_digest,
            "length": str(capture.warc_record_length),
            "filename": f"{name.partition('__')[2]}.warc.gz",
            "mime": "warc/revisit",
        }
        if capture.warc_record_type != "revisit":
            # For a revisit pywb says neither type nor status.
            ours |= {
                "status": str(capture.fetch_status),
                "mime": capture.content_mime_type or "unk",
            }
        assert said == ours
        assert file.stored(capture).startswith(b"WARC/1.0\r\nWARC-Type: re")
    assert not file.captures
    assert Counter(skipped.reason for skipped in file.skipped.values()) == others
    assert not file.faults


def test_solrwaybacks_index_is_agreed_with():
    name = "IAH-20080430204825-00000-blackbook.warc.gz"
    file = opened("core", f"ipwb__{name}")
    kinds = Counter()
    lines = (ORACLE / f"solrwayback__{name}.cdx").read_text().splitlines()
    assert lines[0] == " CDX N b a m s k r M S V g"
    for line in lines[1:]:
        key, time, url, mime, status, digest, redirect, meta, length, offset, source = line.split()
        assert (meta, source) == ("-", name)
        if int(offset) in file.captures:
            capture = file.captures.pop(int(offset))
            assert (capture.url_surtkey, digits(capture.fetch_date), capture.url) == (
                key,
                time,
                url,
            )
            assert (capture.content_mime_type, str(capture.fetch_status)) == (mime, status)
            assert (capture.content_digest, str(capture.warc_record_length)) == (digest, length)
            kinds["capture"] += 1
            said = capture.fetch_redirect
            # It makes redirects absolute, and takes some from a page's refresh, with status 200.
            if said is None:
                assert redirect == "-" or status == "200"
            else:
                assert redirect.endswith(said.lstrip("/"))
            continue
        skipped = file.skipped.pop(int(offset))
        record, block = file.record(skipped)
        kinds[skipped.reason] += 1
        expected = {"warcinfo": "warc-info", "dns": "text/dns"}
        assert mime == expected.get(skipped.reason, f"warc/{skipped.reason}")
        assert (status, redirect) == ("-", "-")
        assert (digits(record.date.decode()), str(skipped.length)) == (time, length)
        assert sha1(block) == digest
        if skipped.reason == "warcinfo":
            # It has no URL: one is made up, of file and program.
            assert (record.url, key, url[:10]) == (b"", url, "warcinfo:/")
        elif skipped.reason == "dns":
            # Its key for a look-up is the host's with "www"; ours is the URL, as pywb's.
            assert record.url.decode() == url
            assert key == ",".join(reversed(url.removeprefix("dns:").split("."))) + ")"
        else:
            assert record.url.decode() == url
            assert identity.parse_address(record.url).surt == key
    assert kinds == {"capture": 261, "request": 261, "metadata": 261, "dns": 38, "warcinfo": 1}
    assert not file.captures
    assert not file.skipped


def test_netarkivets_index_is_agreed_with():
    file = opened("core", "nas__fyensdk.arc")
    lines = (ORACLE / "nas__fyensdk.cdx").read_text().splitlines()
    assert len(lines) == len(file.captures) == 189
    for line in lines:
        url, ip, date, mime, length, name, offset, md5 = line.split(" ")
        capture = file.captures.pop(int(offset))
        assert (capture.url, digits(capture.fetch_date), capture.content_mime_type) == (
            url,
            date,
            mime,
        )
        header = f"{url} {ip} {date} {mime} {length}\n"
        assert capture.warc_record_length == len(header) + int(length)
        assert file.stored(capture).startswith(header.encode())
        assert name == "fyensdk.arc"
        # The pages were blanked out when the file was published, and its index was not: no MD5
        # in it is that of any bytes here.
        _, block = file.record(capture)
        bodies = (block, block.partition(b"\r\n\r\n")[2], file.stored(capture))
        assert md5 not in {hashlib.md5(body).hexdigest() for body in bodies}
    assert not file.captures
    ((offset, skipped),) = file.skipped.items()
    assert (offset, skipped.reason) == (0, "filedesc")


def test_the_index_within_a_wacz_is_agreed_with():
    path = DATA / "core" / "replayweb.page__example.wacz"
    with ZipFile(path) as archive:
        lines = archive.read("indexes/index.cdx").decode().splitlines()
        inner = File(archive.read("archive/data.warc.gz"), "data.warc.gz")
    with path.open("rb") as stream:
        within = [e for e in ArchiveReader(stream, path.name, ALL) if isinstance(e, Capture)]
    assert [c.warc_record_offset for c in within] == list(inner.captures)
    assert {c.warc_filename for c in within} == {f"{path.name}/archive/data.warc.gz"}
    other_keys = []
    for line in lines:
        key, time, text = line.split(" ", 2)
        said = json.loads(text)
        capture = inner.captures.pop(said.pop("offset"))
        _, block = inner.record(capture)
        payload = block.partition(b"\r\n\r\n")[2]
        assert re.sub(r"\D", "", capture.fetch_date) == time
        assert said == {
            "url": capture.url,
            "status": capture.fetch_status,
            "mime": capture.content_mime_type,
            "length": capture.warc_record_length,
            "filename": "data.warc.gz",
            "digest": "sha-256:" + hashlib.sha256(payload).hexdigest(),
            "recordDigest": "sha256:" + hashlib.sha256(inner.raw(capture)).hexdigest(),
        }
        if capture.url_surtkey != key:
            other_keys.append(key)
    assert len(lines) == len(within) == 14
    assert not inner.captures
    # Webrecorder's own key, other than the Internet Archive's, escapes ":", "@" and "|".
    assert len(other_keys) == 2
    assert all("%3A" in key or "%7C" in key for key in other_keys)
    assert set(Counter(s.reason for s in inner.skipped.values())) <= {"request", "warcinfo"}
