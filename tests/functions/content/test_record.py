"""Records of archive files: payloads come out as they went in, whatever they are packed in."""

import gzip
import hashlib
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest
import zstandard

from functions.archive.declared_digest import DeclaredDigest
from functions.content.contents import ArchivedContents
from functions.content.protocols import Content, ContentError
from tests.builder.sources.webarchives.containers import (
    PAGE,
    URL,
    arc,
    archived,
    captures,
    chunked,
    dictionary,
    dictionary_frame,
    faults,
    filedesc,
    frames,
    http,
    members,
    sha1,
    warc,
)
from tests.functions.content.stored import NONE, Stored

PAGES = {f"http://a.cz/{n}".encode(): f"<html>{n}".encode() * (n * 9000 + 1) for n in range(4)}
RECORDS = [warc(http(body), url=url) for url, body in PAGES.items()]
ARC = [filedesc(), *(arc(http(body), url) for url, body in PAGES.items())]
INFO = warc(b"software: a\r\n", kind=b"warcinfo", url=None)


def wide(data: bytes) -> bytes:
    """Return zstd that asks for more memory than a coding may (RFC 9659)."""
    asked = zstandard.ZstdCompressionParameters.from_level(3, window_log=24)
    made = zstandard.ZstdCompressor(compression_params=asked).compressobj()
    return made.compress(data) + made.flush()


def zipped(data: bytes, method: int, name: str = "archive/one.warc.gz") -> bytes:
    far = ("indexes/a.cdx", b"x" * 200_000)  # so that the directory lies elsewhere
    return archived(("datapackage.json", "{}"), (name, data), far, method=method)


def of_dictionary() -> bytes:
    made = dictionary()
    return dictionary_frame(made) + frames([INFO, *RECORDS], made)


FORMS: dict[str, Callable[[], bytes]] = {
    "a.warc": lambda: b"".join([INFO, *RECORDS]),
    "a.warc.gz": lambda: members([INFO, *RECORDS]),
    "a.warc.zst": lambda: frames([INFO, *RECORDS]),
    "b.warc.zst": of_dictionary,
    "a.arc": lambda: b"".join(ARC),
    "a.arc.gz": lambda: members(ARC),
    "stored.wacz": lambda: zipped(members([INFO, *RECORDS]), zipfile.ZIP_STORED),
    "deflated.wacz": lambda: zipped(members([INFO, *RECORDS]), zipfile.ZIP_DEFLATED),
    "several.wacz": lambda: zipped(FORMS["stored.wacz"](), zipfile.ZIP_STORED, "Week.1.WACZ"),
}


@pytest.mark.parametrize("offset", [None, -600, -1, 1, 4, 9])
@pytest.mark.parametrize("pack", [members, frames, None])
def test_a_wrong_length_is_mended_where_its_member_and_a_digest_prove_it(
    stored: Stored, offset: int | None, pack: Callable[[list[bytes]], bytes] | None
) -> None:
    """As `offset` beside the right length; None: missing. Else the capture is truncated."""
    block, body = http(PAGE * 9), PAGE * 9
    digest = b"WARC-Payload-Digest: sha1:" + sha1(body).encode()
    length = b"none" if offset is None else b"%d" % (len(block) + offset)
    records = [warc(block, digest, length=length), warc(http(b"2"), url=b"http://a.cz/2")]
    data = pack(records) if pack else b"".join(records)
    stored.put("a.x", data)
    assert stored.read(url="http://a.cz/2") == b"2"
    if pack:
        assert [(one.code, one.place) for one in faults(data)] == [("length-invalid", 0)]
        assert stored.read(url=URL.decode()) == body
        assert stored.one(url=URL.decode()).fields["content_truncated"] is None
    elif offset and (offset < 0 or offset > 4):
        assert stored.one(url=URL.decode()).fields["content_truncated"] == "unspecified"


@pytest.mark.parametrize("name", FORMS)
def test_each_payload_comes_out_of_its_place(stored: Stored, name: str) -> None:
    stored.put(name, FORMS[name]())
    assert len(stored.records) == len(PAGES)
    for url, body in PAGES.items():
        found = stored.found(url=url.decode())
        assert stored.read(url=url.decode()) == body
        assert (found.size, found.status) == (len(body), 200)
        assert found.headers == (("Content-Type", "text/html; charset=utf-8"),)
        assert found.media_type == "text/html; charset=utf-8"
        assert found.digest == f"sha1:{sha1(body)}"
        if found.stretch is not None:
            data = Path(found.stretch.address).read_bytes()[found.stretch.offset :]
            assert data[: found.stretch.length] == body
        assert (found.stretch is not None) == (name in ("a.warc", "a.arc"))


CODED = {
    b"gzip": gzip.compress(PAGE, mtime=0),
    b"x-gzip": gzip.compress(PAGE, mtime=0) + gzip.compress(PAGE, mtime=0),
    b"deflate": zlib.compress(PAGE),
    b"br": brotli.compress(PAGE),
    b"zstd": zstandard.compress(PAGE),
    b"gzip, br": brotli.compress(gzip.compress(PAGE, mtime=0)),
    b"none": PAGE,
}


@pytest.mark.parametrize("coding", CODED)
@pytest.mark.parametrize("is_chunked", [False, True])
def test_codings_are_undone_or_left(stored: Stored, coding: bytes, is_chunked: bool) -> None:
    data = CODED[coding]
    fields = [b"Content-Type: text/html", b"Content-Encoding: " + coding]
    if is_chunked:
        data = chunked(data)
        fields.append(b"Transfer-Encoding: chunked")
    stored.put("a.warc.gz", members([warc(http(data, *fields))]))
    assert stored.read() == PAGE * (2 if coding == b"x-gzip" else 1)
    assert stored.read(coded=True) == data
    undone = coding != b"none" or is_chunked
    assert stored.found().size == (None if undone else len(PAGE))
    bears = [coding.decode()] if coding != b"none" else []
    bears += ["chunked"] if is_chunked else []
    assert stored.found().facts == ({"coded": ", ".join(bears)} if bears else {})


@pytest.mark.parametrize("coding", [b"gzip", b"x-gzip", b"deflate", b"br", b"zstd", b"utf-8"])
def test_what_is_not_coded_though_it_says_so_comes_as_it_is(stored: Stored, coding: bytes) -> None:
    stored.put("a.warc", warc(http(PAGE, b"Content-Encoding: " + coding)))
    assert stored.read() == PAGE
    found = stored.found()
    told = {"coded": "utf-8"} if coding == b"utf-8" else {}
    assert (found.facts, found.size) == (told, len(PAGE))


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
@pytest.mark.parametrize("body", [PAGE, b"", b"x", b"feed", PAGE * 2000])
def test_no_chunks_are_told_of_what_was_dechunked(stored: Stored, name: str, body: bytes) -> None:
    """As crawlers store it, with the header that was sent."""
    record = warc(http(body, b"Transfer-Encoding: chunked"))
    stored.put(name, record if name == "a.warc" else members([record]))
    found = stored.found()
    assert (found.facts, found.size) == ({}, len(body))
    assert (found.stretch is None) == (name != "a.warc")
    assert stored.read() == stored.read(coded=True) == body


@pytest.mark.parametrize("coding", [b"gzip", b"zstd", b"deflate"])
def test_codings_within_chunks_are_told_as_they_are_borne(stored: Stored, coding: bytes) -> None:
    for number, data in enumerate((CODED[coding], PAGE)):
        for whole in (chunked(data), data):
            stored.records.clear()
            fields = [b"Content-Encoding: " + coding, b"Transfer-Encoding: chunked"]
            stored.put(f"{number}.warc", warc(http(whole, *fields)))
            bears = [coding.decode()] * (data != PAGE) + ["chunked"] * (whole != data)
            assert stored.found().facts == ({"coded": ", ".join(bears)} if bears else {})
            assert stored.read() == PAGE
            assert stored.read(coded=True) == whole


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        (b"gzip", gzip.compress(PAGE, mtime=0)[:10] + b"\xff" * 40),
        (b"br", b"\xff" * 100),
        (b"zstd", zstandard.compress(PAGE)[:8] + b"\xff" * 40),
        (b"zstd", wide(PAGE)),
        (b"compress", PAGE),
        (b"dcb", PAGE),
        (b", ".join([b"gzip"] * 9), gzip.compress(PAGE, mtime=0)),
    ],
    ids=["gzip", "br", "zstd", "window", "compress", "dcb", "nine"],
)
def test_what_cannot_be_undone_is_told_at_once_and_can_be_had_coded(
    stored: Stored, coding: bytes, data: bytes
) -> None:
    stored.put("a.warc", warc(http(data, b"Content-Encoding: " + coding)))
    contents = stored.contents()
    found = contents.find(NONE, stored.one())
    with pytest.raises(ContentError) as error, contents.open_content(found):
        pass
    assert error.value.code == "undecodable"
    assert stored.read(coded=True) == data


def test_a_length_that_lies_changes_nothing(stored: Stored) -> None:
    stored.put("a.warc", warc(http(PAGE, b"Content-Type: a/b", b"Content-Length: 9999999999")))
    assert stored.read() == PAGE
    assert stored.found().size == len(PAGE)


@pytest.mark.parametrize(
    ("block", "mime", "headers"),
    [
        (PAGE, b"text/html", ()),  # of HTTP/0.9, or of another protocol
        (b"HTTP/1.0 200 OK\n" + PAGE, b"text/html", ()),
        (b"HTTP/1.1 200 OK\r\n\r\n" + PAGE, b"text/html", ()),
        (
            b"HTTP/1.1 200 OK\nB: 1\nb:2 \nA : x\n y\nC:\n\n" + PAGE,
            b"text/html",
            (("B", "1"), ("b", "2"), ("A", "x y"), ("C", "")),
        ),
        (b"HTTP/1.1 200 OK\r\nX: \xe9\xff\r\n\r\n" + PAGE, b"a/b", (("X", "\xe9\xff"),)),
    ],
)
def test_heads_are_given_in_their_order_and_letters(
    stored: Stored, block: bytes, mime: bytes, headers: tuple[tuple[str, str], ...]
) -> None:
    stored.put("a.arc.gz", members([filedesc(), arc(block, mime=mime)]))
    assert stored.read() == PAGE
    assert stored.found().headers == headers
    assert stored.found().media_type == mime.decode()


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "a.warc.zst"])
def test_behind_a_large_head_lies_the_payload_that_was_ingested(stored: Stored, name: str) -> None:
    fields = [b"X-%d: %s" % (n, b"v" * 3000) for n in range(300)]
    record = warc(http(b"x", *fields))
    pack = {"a.warc": b"".join, "a.warc.gz": members, "a.warc.zst": frames}[name]
    stored.put(name, pack([record]))
    assert stored.one().fields["content_length"] == stored.found().size == 1
    assert stored.read() == b"x"
    assert len(stored.found().headers) == 300


def test_a_resource_has_the_type_of_its_record_and_no_headers(stored: Stored) -> None:
    stored.put("a.warc", warc(PAGE, b"Content-Type: image/x-a", kind=b"resource"))
    found = stored.found()
    assert (found.media_type, found.headers, found.status) == ("image/x-a", (), None)
    assert stored.read() == PAGE


@pytest.mark.parametrize(
    ("there", "detail"),
    [
        (b"", "no record begins there"),
        (b"x" * 1000, "no record begins there"),
        (warc(http(PAGE), url=b"http://other.cz/"), "has another URL"),
        (warc(http(PAGE), kind=b"request"), "of the type request"),
        (warc(http(PAGE), length=b"many"), "header of the record there cannot be read"),
        (b"WARC/1.0\r\nWARC-Type: response\r\n", "header of the record there cannot be read"),
    ],
)
def test_another_file_of_the_same_name_is_damage(stored: Stored, there: bytes, detail: str) -> None:
    stored.put("a.warc", warc(http(PAGE)))
    (stored.folder / "a.warc").write_bytes(there)
    with pytest.raises(ContentError, match=detail) as error:
        stored.found()
    assert error.value.code == "damaged"
    assert str(stored.folder) not in str(error.value)


def taken(contents: ArchivedContents, content: Content, came: bytearray) -> None:
    with contents.open_content(content) as stream:
        while piece := stream.read(1000):
            came += piece


@pytest.mark.parametrize("size", [10, 200_000])
def test_other_bytes_are_never_given_whole(stored: Stored, size: int) -> None:
    body = b"a" * size
    stored.put("a.warc", warc(http(body)))
    (stored.folder / "a.warc").write_bytes(warc(http(body[:-1] + b"b")))
    contents = stored.contents()
    found = contents.find(NONE, stored.one())
    with pytest.raises(ContentError, match="have the digest") as error:
        taken(contents, found, came := bytearray())
    assert error.value.code == "damaged"
    assert len(came) < size
    with contents.open_content(found, verified=False) as stream:
        assert len(stream.read()) == size


def test_a_digest_of_what_was_dechunked_is_one_of_the_payload(stored: Stored) -> None:
    """An index may name it, for some crawlers tell it so."""
    data = chunked(PAGE)
    archive = warc(http(data, b"Transfer-Encoding: chunked"))
    (event,) = captures(archive, name="a.warc")
    event.content_digest = sha1(PAGE)
    (stored.folder / "a.warc").write_bytes(archive)
    stored.list([event])
    assert stored.read() == PAGE
    assert stored.found().digest == f"sha1:{sha1(PAGE)}"


@pytest.mark.parametrize("algorithm", ["sha1", "md5"])
def test_a_digest_of_an_index_may_be_of_head_and_payload(stored: Stored, algorithm: str) -> None:
    """But not of a capture whose bytes were read when it was ingested."""
    block = http(PAGE)
    (event,) = captures(warc(block), name="a.warc")
    (stored.folder / "a.warc").write_bytes(warc(block))
    event.content_digest = DeclaredDigest(algorithm, hashlib.new(algorithm, block).digest()).text()
    stored.list([event])
    with pytest.raises(ContentError, match="have the digest"):
        stored.read()
    stored.records.clear()
    event.content_length = None
    stored.list([event])
    assert stored.read() == PAGE


def test_a_capture_without_a_place_has_no_bytes(stored: Stored) -> None:
    """As one of several in one member of gzip."""
    stored.put("a.warc.gz", gzip.compress(b"".join(RECORDS[:2])))
    assert stored.read(url="http://a.cz/0") == PAGES[b"http://a.cz/0"]
    with pytest.raises(ContentError) as error:
        stored.found(url="http://a.cz/1")
    assert (error.value.code, error.value.status) == ("unplaced", 404)


@pytest.mark.parametrize("name", FORMS)
def test_a_length_that_is_not_known_is_found_in_the_record(stored: Stored, name: str) -> None:
    """Of an index without that column."""
    data = FORMS[name]()
    for event in captures(data, name=name):
        event.warc_record_length = None
        event.content_length = None
        stored.list([event])
    (stored.folder / name).write_bytes(data)
    for url, body in PAGES.items():
        assert stored.read(url=url.decode()) == body
        assert stored.found(url=url.decode()).size is None
