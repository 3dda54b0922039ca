"""Records cut out of archive files of every kind: the capture is the same, in a member of WARC."""

import dataclasses
import gzip
import io
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from builder.exports.record_copy import cut
from functions.content.capture_row import CaptureRow
from functions.content.protocols import ContentError
from tests.builder.exports.wacz.shelf import Shelf
from tests.builder.sources.webarchives.containers import (
    DATE,
    arc,
    captures,
    dictionary,
    dictionary_frame,
    filedesc,
    frames,
    http,
    members,
    warc,
)

BODIES = (b"<title>one</title>", b"<title>two</title>" * 40_000, b"three")
URLS = tuple(b"http://a.cz/%d" % n for n in range(3))
WARCS = [warc(http(body), url=url) for body, url in zip(BODIES, URLS, strict=True)]
ARCS = [arc(http(body), url=url) for body, url in zip(BODIES, URLS, strict=True)]
DICTIONARY = dictionary()
FILES = {
    "warc": b"".join(WARCS),
    "warc.gz": members(WARCS),
    "warc.zst": frames(WARCS),
    "dictionary.warc.zst": dictionary_frame(DICTIONARY) + frames(WARCS, DICTIONARY),
    "arc": filedesc() + b"".join(ARCS),
    "arc.gz": members([filedesc(), *ARCS]),
    "arc.zst": frames([filedesc(), *ARCS]),
    "lines.warc": b"".join(
        warc(http(body), url=url, eol=b"\n") for body, url in zip(BODIES, URLS, strict=True)
    ),
}


def taken(shelf: Shelf, capture: CaptureRow, folder: Path) -> bytes:
    with cut(shelf, capture, folder) as stream:
        return stream.read()


@pytest.mark.parametrize("name", FILES)
def test_the_capture_is_the_same_whatever_it_lay_in(name: str, tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.files[name] = FILES[name]
    asked = shelf.captures(name)
    assert len(asked) == 3
    for capture, body in zip(asked, BODIES, strict=True):
        made = taken(shelf, capture, tmp_path)
        (found,) = captures(made, name="made.warc.gz")
        assert f"oai:b.cz:{found.identity}" == capture.identifier
        assert (found.fetch_status, found.warc_record_type) == (200, "response")
        assert found.content_mime_type == "text/html"
        assert (found.warc_record_offset, found.warc_record_length) == (0, len(made))
        # By somebody else's reader as well.
        record = next(ArchiveIterator(io.BytesIO(made)))
        assert record.rec_headers.get_header("WARC-Target-URI") == capture.url
        assert record.content_stream().read() == body


def test_a_member_of_its_own_is_copied_as_it_is(tmp_path: Path) -> None:
    shelf = Shelf(a_warc_gz=FILES["warc.gz"])
    made = [taken(shelf, capture, tmp_path) for capture in shelf.captures("a.warc.gz")]
    assert b"".join(made) == FILES["warc.gz"]


def test_a_record_that_shares_its_member_is_packed_by_itself(tmp_path: Path) -> None:
    shelf = Shelf(a_warc_gz=gzip.compress(b"".join(WARCS), mtime=0))
    first, second, _ = shelf.captures("a.warc.gz")
    (found,) = captures(taken(shelf, first, tmp_path))
    assert f"oai:b.cz:{found.identity}" == first.identifier
    with pytest.raises(ContentError) as refused:
        taken(shelf, second, tmp_path)
    assert refused.value.code == "unplaced"


def test_what_is_no_answer_of_http_becomes_a_resource(tmp_path: Path) -> None:
    shelf = Shelf(a_arc=filedesc() + arc(b"SSH-2.0-banner\r\n", mime=b"text/plain"))
    (capture,) = shelf.captures("a.arc")
    made = taken(shelf, capture, tmp_path)
    (found,) = captures(made)
    assert f"oai:b.cz:{found.identity}" == capture.identifier
    assert (found.warc_record_type, found.content_mime_type) == ("resource", "text/plain")


def test_an_arc_record_keeps_its_address_and_odd_url(tmp_path: Path) -> None:
    data = arc(http(), url=b"http://a.cz/a b\xe8")
    shelf = Shelf(a_arc=filedesc() + data)
    (capture,) = shelf.captures("a.arc")
    made = gzip.decompress(taken(shelf, capture, tmp_path))
    assert b"WARC-Target-URI: http://a.cz/a b\xe8\r\n" in made
    assert b"WARC-IP-Address: 192.0.2.1\r\n" in made
    (found,) = captures(made)
    assert f"oai:b.cz:{found.identity}" == capture.identifier


@pytest.mark.parametrize("date", [b"2008", b"200804", b"20080430"])
def test_a_date_stays_as_exact_as_it_is(date: bytes, tmp_path: Path) -> None:
    shelf = Shelf(a_arc=filedesc() + arc(http(), date=date))
    (capture,) = shelf.captures("a.arc")
    (found,) = captures(taken(shelf, capture, tmp_path))
    assert found.fetch_date == capture.date
    assert f"oai:b.cz:{found.identity}" == capture.identifier


def test_a_cut_record_stays_cut(tmp_path: Path) -> None:
    for name, data in (
        ("a.warc", warc(http(), length=b"5000", end=b"")),
        ("a.warc.gz", members([warc(http(), length=b"5000", end=b"")])),
        ("b.warc.gz", members([warc(http(bytes(range(256)) * 99))])[:-300]),
        ("a.arc", filedesc() + arc(http(), length=b"5000")[:-1]),
    ):
        shelf = Shelf()
        shelf.files[name] = data
        (capture,) = shelf.captures(name)
        assert capture.truncated, name
        (found,) = captures(taken(shelf, capture, tmp_path))
        assert f"oai:b.cz:{found.identity}" == capture.identifier, name
        assert found.content_truncated, name


def test_revisits_keep_what_they_refer_to(tmp_path: Path) -> None:
    revisit = warc(
        http(b""),
        b"WARC-Payload-Digest: sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A",
        b"WARC-Refers-To-Target-URI: http://a.cz/",
        b"WARC-Refers-To-Date: " + DATE,
        kind=b"revisit",
    )
    shelf = Shelf(a_warc=revisit)
    (capture,) = shelf.captures("a.warc")
    (found,) = captures(taken(shelf, capture, tmp_path))
    assert (found.warc_record_type, found.refers_to_url) == ("revisit", "http://a.cz/")
    assert f"oai:b.cz:{found.identity}" == capture.identifier


def test_another_record_in_its_place_is_damage(tmp_path: Path) -> None:
    shelf = Shelf(a_warc_gz=FILES["warc.gz"], a_warc=FILES["warc"], a_arc=FILES["arc"])
    for name in ("a.warc.gz", "a.warc", "a.arc"):
        first, second, _ = shelf.captures(name)
        lying = dataclasses.replace(first, offset=second.offset, stored=second.stored)
        with pytest.raises(ContentError) as refused:
            taken(shelf, lying, tmp_path)
        assert refused.value.code == "damaged"
    for change in ({"digest": "A" * 32}, {"date": "2009-01-01T00:00:00Z"}, {"offset": 3}):
        with pytest.raises(ContentError) as refused:
            taken(shelf, dataclasses.replace(first, **change), tmp_path)
        assert refused.value.code == "damaged"


def test_bytes_that_are_no_record_are_damage_and_a_lost_file_is_told(tmp_path: Path) -> None:
    shelf = Shelf(a_warc_gz=FILES["warc.gz"])
    first = shelf.captures("a.warc.gz")[0]
    for data in (b"", b"nothing of the kind", gzip.compress(b"nothing"), b"\x1f\x8b", bytes(999)):
        shelf.files["a.warc.gz"] = data
        with pytest.raises(ContentError) as refused:
            taken(shelf, first, tmp_path)
        assert refused.value.code == "damaged"
    del shelf.files["a.warc.gz"]
    with pytest.raises(ContentError) as refused:
        taken(shelf, first, tmp_path)
    assert refused.value.code == "not-at-hand"


def test_a_digest_that_only_an_index_knows_is_believed(tmp_path: Path) -> None:
    shelf = Shelf(a_warc_gz=FILES["warc.gz"])
    first = dataclasses.replace(shelf.captures("a.warc.gz")[0], digest="md5:" + "0" * 32)
    assert captures(taken(shelf, first, tmp_path))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", ["warc.gz", "arc.gz", "warc.zst"])
def test_a_damaged_record_is_not_packed_anew_as_a_sound_one(
    name: str, known: bool, tmp_path: Path
) -> None:
    shelf = Shelf()
    shelf.files[name] = FILES[name]
    capture = shelf.captures(name)[0]
    data = bytearray(FILES[name])
    end = (capture.offset or 0) + (capture.stored or 0)
    data[end - (1 if name.endswith("zst") else 8)] ^= 1  # of the checksum
    shelf.files[name] = bytes(data)
    if known:
        capture = shelf.captures(name)[0]
        assert (capture.damaged, capture.digest) == ("checksum", None)
    else:  # as of an index that was made before, without digests
        capture = dataclasses.replace(capture, digest=None)
    with pytest.raises(ContentError) as refused:
        taken(shelf, capture, tmp_path)
    assert refused.value.code == "damaged"
