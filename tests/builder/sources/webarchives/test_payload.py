"""Payloads in codings, as servers send them and as archives keep them under whatever header."""

import base64
import gzip
import hashlib
import zlib

import brotli
import pytest
import zstandard

from functions.archive.coding import decode_head
from tests.builder.sources.webarchives.containers import (
    PAGE,
    captures,
    chunked,
    codes,
    faults,
    frame,
    http,
    sha1,
    skippable,
    warc,
)

LIMIT = 1 << 18
GZIP = gzip.compress(PAGE, mtime=0)
ZSTD = frame(PAGE)
DEFLATE = zlib.compress(PAGE, wbits=-15)


def streamed(data, window_log=20):
    """Return zstd as a server makes it: without length or checksum, in flushed blocks."""
    asked = zstandard.ZstdCompressionParameters.from_level(3, window_log=window_log)
    made = zstandard.ZstdCompressor(compression_params=asked).compressobj()
    half = len(data) // 2
    pieces = [made.compress(data[:half]), made.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)]
    return b"".join((*pieces, made.compress(data[half:]), made.flush()))


@pytest.mark.parametrize(
    "coding, body",
    [
        (b"gzip", GZIP),
        (b"GZip", GZIP),
        (b"x-gzip", GZIP),
        (b"gzip", gzip.compress(PAGE[:30], mtime=0) + gzip.compress(PAGE[30:], mtime=0)),
        (b"gzip", GZIP + b"trailing bytes"),
        (b"gzip", GZIP[:-9]),
        (b"gzip", GZIP[:-8] + b"\0\0\0\0" + GZIP[-4:]),
        (b"deflate", zlib.compress(PAGE)),
        (b"deflate", DEFLATE),
        (b"br", brotli.compress(PAGE)),
        (b"BR", brotli.compress(PAGE)[:-3]),
        (b"zstd", ZSTD),
        (b"ZStd", streamed(PAGE)),
        (b"zstd", ZSTD[:-2]),
        (b"zstd", ZSTD[:-1] + b"\0"),
        (b"zstd", skippable(b"x", number=3) + frame(PAGE[:30]) + frame(PAGE[30:])),
        (b"gzip, br", brotli.compress(GZIP)),
        (b"br ,gzip", gzip.compress(brotli.compress(PAGE), mtime=0)),
        (b"gzip, gzip", gzip.compress(GZIP, mtime=0)),
        (b"gzip,zstd", frame(GZIP)),
        (b"identity", PAGE),
        (b"none,", PAGE),
        (b"", PAGE),
    ],
)
def test_codings_that_are_undone(coding, body):
    record = warc(http(body, b"Content-Type: text/html", b"Content-Encoding: " + coding))
    (capture,) = captures(record)
    assert (capture.title, codes(record)) == ("Zprávy", [])
    assert capture.content_mime_detected == "text/html"
    assert capture.content_digest == sha1(body)
    assert capture.content_length == len(body)
    empty = warc(http(gzip.compress(b""), b"Content-Encoding: gzip"))
    assert codes(empty) == []


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HTTP/1.1 200 OK\r\n:status: 200\r\nContent-Type: text/html\r\n\r\n", 200),
        (b"HTTP/1.1 200 OK\r\nno field\r\nContent-Type: text/html\r\n\r\n", 200),
        (b"ICY 200 OK\r\nContent-Type: text/html\r\n\r\n", 200),
        (b"404 Not Found\nServer: x\nContent-Type: text/html\n\n", 404),
        (b"HTTP/1.1 200 OK\n", 200),
    ],
)
def test_a_head_ends_at_the_empty_line_whatever_its_first_lines(head, status):
    (capture,) = captures(warc(head + PAGE + b"\n\nmore"))
    assert (capture.fetch_status, capture.title) == (status, "Zprávy")
    assert capture.content_length == len(PAGE + b"\n\nmore")


def test_the_digest_of_a_block_without_http_is_that_of_its_payload():
    block = b"WARC-Block-Digest: sha1:" + sha1(b"text").encode()
    nothing = b"WARC-Block-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    original, revisit, bare = captures(
        warc(b"text", block, kind=b"resource")
        + warc(b"", block, kind=b"revisit")
        + warc(b"", nothing, kind=b"revisit")
    )
    assert original.content_digest == revisit.content_digest == sha1(b"text")
    assert bare.content_digest is None
    assert codes(warc(b"other", block, kind=b"resource")) == ["digest-mismatch"]


@pytest.mark.parametrize(
    "coding, body, why",
    [
        (b"br", b"\xff\xff\xff", "br data cannot be decoded"),
        (b"gzip", GZIP[:10] + b"\xff" * 20, "gzip data cannot be inflated"),
        (b"zstd", ZSTD[:6] + b"\xff" * 20, "zstd data cannot be decoded: a block"),
        (b"zstd", streamed(PAGE, window_log=28), "zstd data cannot be decoded: Frame requires too"),
        (b"compress", b"\x1f\x9d\x90<title>", "compress is not decoded: LZW"),
        (b"x-compress", b"\x1f\x9d\x90<title>", "x-compress is not decoded: LZW"),
        (b"dcb", b"\xff\x44\x43\x42" + bytes(40), "dcb is not decoded: its dictionary"),
        (b"dcz", b"\x5e\x2a\x4d\x18" + bytes(40), "dcz is not decoded: its dictionary"),
        (b"gzip, dcz, br", brotli.compress(bytes(40)), "dcz is not decoded"),
        (b"gzip," * 9, PAGE, "10 codings"),
    ],
)
def test_codings_that_are_flagged_leave_no_title(coding, body, why):
    record = warc(http(body, b"Content-Type: text/html", b"Content-Encoding: " + coding))
    (fault,) = faults(record)
    assert (fault.code, fault.done) == ("content-encoding-undecoded", "type and title not read")
    assert fault.detail.startswith(why)
    (capture,) = captures(record)
    assert (capture.title, capture.content_mime_detected) == (None, None)
    assert capture.content_mime_type == "text/html"


@pytest.mark.parametrize(
    "coding, why",
    [
        (b"gzip", "gzip declared, but the payload is not gzip"),
        (b"deflate", "deflate declared, but the payload is not deflate"),
        (b"br", "br declared, but the payload is not br"),
        (b"zstd", "zstd declared, but the payload is not zstd"),
        (b"null", "null is not a coding"),
        (b"UTF-8", "utf-8 is not a coding"),
        (b"gzip, br", "br declared, but the payload is not br"),
    ],
)
def test_pages_kept_decoded_under_a_header_that_says_otherwise(coding, why):
    record = warc(http(PAGE, b"Content-Type: text/html", b"Content-Encoding: " + coding))
    (fault,) = faults(record)
    assert (fault.detail, fault.done) == (why, "read without decoding")
    assert captures(record)[0].title == "Zprávy"


@pytest.mark.parametrize("name", [b"Transfer-Encoding: chunked", b"transfer-encoding:  Chunked "])
@pytest.mark.parametrize(
    "coding, body", [(b"gzip", GZIP), (b"zstd", ZSTD), (b"br", brotli.compress(PAGE))]
)
def test_codings_within_chunks(name, coding, body):
    record = warc(http(chunked(body), name, b"Content-Encoding: " + coding))
    assert (captures(record)[0].title, codes(record)) == ("Zprávy", [])


def test_transfer_codings_besides_chunked():
    record = warc(http(chunked(GZIP), b"Transfer-Encoding: gzip, chunked"))
    assert (captures(record)[0].title, codes(record)) == ("Zprávy", [])
    both = http(
        chunked(gzip.compress(brotli.compress(PAGE), mtime=0)),
        b"Content-Encoding: br",
        b"Transfer-Encoding: gzip, chunked",
    )
    assert (captures(warc(both))[0].title, codes(warc(both))) == ("Zprávy", [])


def test_chunked_declared_and_undone_by_the_crawler():
    for body in (PAGE, b"\r\n" + PAGE, b"<!-- 1\r\n -->" + PAGE):
        record = warc(http(body, b"Transfer-Encoding: chunked"))
        assert captures(record)[0].title == "Zprávy"
    zipped = http(GZIP, b"Transfer-Encoding: chunked", b"Content-Encoding: gzip")
    assert (captures(warc(zipped))[0].title, codes(warc(zipped))) == ("Zprávy", [])


@pytest.mark.parametrize("stored", [True, False], ids=["chunked", "undone"])
@pytest.mark.parametrize(
    "label, made",
    [
        (b"sha1:", lambda d: base64.b32encode(hashlib.sha1(d).digest())),
        (b"SHA1:", lambda d: base64.b32encode(hashlib.sha1(d).digest()).lower()),
        (b"sha1:", lambda d: hashlib.sha1(d).hexdigest().encode()),
        (b"sha-1:", lambda d: hashlib.sha1(d).hexdigest().upper().encode()),
        (b"sha256:", lambda d: hashlib.sha256(d).hexdigest().encode()),
        (b"sha-256:", lambda d: hashlib.sha256(d).hexdigest().encode()),
        (b"sha-256:", lambda d: base64.b32encode(hashlib.sha256(d).digest())),
        (b"sha512=", lambda d: hashlib.sha512(d).hexdigest().encode()),
        (b"md5:", lambda d: hashlib.md5(d).hexdigest().encode()),
        (b"md5:", lambda d: base64.b32encode(hashlib.md5(d).digest())),
    ],
)
def test_digests_of_either_form_of_a_chunked_payload(stored, label, made):
    body = chunked(GZIP)
    declared = made(body if stored else GZIP)
    head = (b"Transfer-Encoding: chunked", b"Content-Encoding: gzip")
    record = warc(http(body, *head), b"WARC-Payload-Digest: " + label + declared)
    assert codes(record) == []
    # That of the page itself is that of neither.
    record = warc(http(body, *head), b"WARC-Payload-Digest: " + label + made(PAGE))
    assert codes(record) == ["digest-mismatch"]


@pytest.mark.parametrize(
    "text",
    [
        b"sha1:",
        b"sha1:AAAA",
        b"sha1:" + b"1" * 32,  # no letter of base32
        b"sha1:" + b"g" * 40,
        b"sha256:" + b"A" * 32,
        b"crc32:00000000",
        b"A" * 32,
    ],
)
def test_digests_of_no_known_form(text):
    assert codes(warc(http(), b"WARC-Payload-Digest: " + text)) == ["digest-unreadable"]


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_whatever_expands_without_end_gives_no_more_than_the_limit(coding):
    page = b"<title>a</title>" + bytes(64 << 20)
    body = {
        "gzip": lambda: gzip.compress(page, 9),
        "br": lambda: brotli.compress(page, quality=5),
        "zstd": lambda: frame(page),
    }[coding]()
    assert len(body) < 100_000
    decoded, wrong = decode_head(body, [coding], LIMIT)
    assert wrong is None
    assert decoded == page[:LIMIT]
