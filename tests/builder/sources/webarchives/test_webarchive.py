"""Whole files: what they are, which records are documents, and what a capture holds."""

import gzip
import hashlib
import io
import re
from datetime import UTC, datetime
from pathlib import Path

import brotli
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

import builder
from builder.intake.captures import FAULT_CODES, Fault
from builder.sources.webarchives.recognise import recognise
from builder.sources.webarchives.rules import DocumentRules
from functions import archive
from tests.builder.sources.webarchives.containers import (
    PAGE,
    URL,
    arc,
    archived,
    captures,
    codes,
    events,
    faults,
    filedesc,
    http,
    members,
    sha1,
    skips,
    warc,
)


@pytest.mark.parametrize(
    "data, kind",
    [
        (warc(http()), "warc"),
        (b"\r\n" + warc(http()), "warc"),
        (members([warc(http())]), "warc.gz"),
        (members([b"", b"", warc(http())]), "warc.gz"),
        (filedesc() + arc(http()), "arc"),
        (arc(http()), "arc"),
        (members([arc(http())]), "arc.gz"),
        (archived(("datapackage.json", "{}")), "wacz"),
        (archived(("mimetype", "x"), ("word/a.xml", "x")), None),
        (b"", None),
        (b"This file is not an arc file.\n", None),
        (gzip.compress(b"plain", mtime=0), None),
        (gzip.compress(b"", mtime=0), None),
    ],
)
def test_a_file_is_known_by_its_first_bytes(data, kind):
    assert recognise(data) == kind


@pytest.mark.parametrize(
    "data, code, detail",
    [
        (b"", "empty-file", ""),
        (b"\x28\xb5\x2f\xfd....", "not-an-archive", "damaged zstd"),
        (b"\x5d\x2a\x4d\x18....", "not-an-archive", "zstd of nothing known"),
        (b"\x04\x22\x4d\x18....", "unsupported-compression", "lz4"),
        (b" CDX N b a m s k r M S V g\n", "not-an-archive", "a CDX index"),
        (b'cz,a)/ 20200101000000 {"url": 1}\n', "not-an-archive", "a CDXJ index"),
        (archived(("mimetype", "x")), "not-an-archive", "a zip file that is not a WACZ"),
        (gzip.compress(b" CDX N b a\n", mtime=0), "not-an-archive", "gzip of a CDX index"),
        (b"text\n", "not-an-archive", ""),
    ],
)
def test_a_file_that_is_no_archive_gives_exactly_one_fault(data, code, detail):
    (fault,) = events(data)
    assert isinstance(fault, Fault)
    assert fault.code == code
    assert fault.detail.startswith(detail)


def test_every_code_is_used_and_has_a_meaning():
    source = "".join(
        path.read_text("utf-8")
        for package in (builder, archive)
        for path in Path(str(package.__file__)).parent.rglob("*.py")
        if path.name != "fault.py"
    )
    for code, meaning in FAULT_CODES.items():
        assert f'"{code}"' in source, code
        assert re.fullmatch(r"[a-z0-9-]+", code)
        assert meaning


def test_a_response_becomes_a_capture_with_every_field():
    block = http(PAGE, b"Content-Type: Text/HTML; charset=UTF8", b"Content-Language: en")
    data = warc(b"x", kind=b"warcinfo", url=None) + warc(block)
    (capture,) = captures(data, name="crawl.warc")
    assert capture.url == "http://www.a.cz/page"
    assert capture.url_bytes is None
    assert capture.url_surtkey == "cz,a)/page"
    assert capture.url_host_name == "www.a.cz"
    assert capture.url_host_registered_domain == "a.cz"
    assert capture.sets == ("domain:cz:a:www", "mime:text:html")
    assert capture.fetch_date == "2008-04-30T20:48:26Z"
    assert capture.fetch_time == datetime(2008, 4, 30, 20, 48, 26, tzinfo=UTC)
    assert capture.fetch_status == 200
    assert capture.content_digest == sha1(PAGE)
    assert capture.content_length == len(PAGE)
    assert capture.content_mime_type == capture.content_mime_detected == "text/html"
    assert capture.content_charset == "utf-8"
    assert capture.content_languages == "cs"
    assert capture.content_truncated is None
    assert capture.title == "Zprávy"
    assert capture.warc_filename == "crawl.warc"
    assert data[capture.warc_record_offset :].startswith(b"WARC/1.0\r\nWARC-Type: response")
    end = capture.warc_record_offset + capture.warc_record_length
    assert data[end:] == b"\r\n\r\n"
    assert codes(data) == []


def test_arc_and_warc_of_one_capture_agree():
    (one,) = captures(filedesc() + arc(http()))
    (two,) = captures(members([warc(http())]))
    assert one.identity == two.identity
    assert (one.title, one.sets, one.url_surtkey) == (two.title, two.sets, two.url_surtkey)


def test_equal_captures_of_one_file_get_an_ordinal():
    one, two, three = captures(warc(http()) * 3)
    assert len({one.identity, two.identity, three.identity}) == 3
    assert captures(warc(http()) * 2)[1].identity == two.identity


def test_what_warcio_writes_is_read(monkeypatch):
    # It leaves its temporary file open.
    monkeypatch.setattr(WARCWriter, "_create_temp_file", staticmethod(io.BytesIO))
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=True)
    fields = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.0")
    record = writer.create_warc_record(
        "http://example.com/", "response", payload=io.BytesIO(PAGE), http_headers=fields
    )
    writer.write_record(record)
    (capture,) = captures(out.getvalue())
    assert (capture.title, capture.content_digest) == ("Zprávy", sha1(PAGE))
    assert codes(out.getvalue()) == []


@pytest.mark.parametrize("version", [b"WARC/0.16", b"WARC/0.18", b"WARC/1.1", b"warc/1.0"])
@pytest.mark.parametrize("eol", [b"\r\n", b"\n"])
def test_versions_and_line_ends(version, eol):
    data = warc(http(eol=eol), eol=eol, version=version) * 2
    assert [c.title for c in captures(data)] == ["Zprávy", "Zprávy"]
    assert codes(data) == []


def test_names_and_types_in_any_case_folded_lines_and_bracketed_uris():
    data = (
        b"WARC/1.0\r\nwarc-TYPE:  RESPONSE \r\nWARC-Target-URI: <http://a.cz/>\r\n"
        b"WARC-Truncated:\r\n length\r\nwarc-date: 2008-04-30T20:48:26Z\r\n"
        b"CONTENT-LENGTH: %d\r\n\r\n%b\r\n\r\n" % (len(http()), http())
    )
    (capture,) = captures(data)
    assert capture.url == "http://a.cz/"
    assert capture.content_truncated == "length"


@pytest.mark.parametrize(
    "record, reason",
    [
        (warc(b"x", kind=b"request"), "request"),
        (warc(b"x", kind=b"metadata"), "metadata"),
        (warc(b"x", kind=b"warcinfo", url=None), "warcinfo"),
        (warc(b"x", kind=b"conversion"), "conversion"),
        (warc(b"x", b"Content-Type: text/anvl", kind=b"resource"), "metadata"),
        (arc(b"x", mime=b"application/warc-fields; charset=x"), "metadata"),
        (warc(b"x", kind=b"continuation"), "continuation"),
        (warc(b"x", url=b"dns:a.cz"), "dns"),
        (warc(b"x", url=b"DNS:A.CZ"), "dns"),
        (warc(b"x", url=b"whois://whois.nic.cz/a.cz"), "whois"),
        (warc(b"x", url=b"urn:pageinfo:http://a.cz/", kind=b"resource"), "pageinfo"),
        (warc(b"x", url=b"metadata://a.cz/log", kind=b"resource"), "crawl-log"),
        (warc(b"x", kind=b"wrong"), "unknown-type"),
        (warc(b"x", url=None), "no-target-uri"),
        (filedesc(), "filedesc"),
        (warc(http(status=b"HTTP/1.1 302 Found")), "redirect"),
        (warc(http(status=b"HTTP/1.1 404 Not Found")), "error"),
        (warc(http(status=b"HTTP/1.1 304 Not Modified")), "error"),
        (warc(http(status=b"HTTP 502 Bad Gateway")), "error"),
    ],
)
def test_what_is_no_document_is_counted_with_its_reason(record, reason):
    assert skips(record, DocumentRules()) == [reason]
    assert captures(record, DocumentRules()) == []


def test_rules_let_redirects_and_errors_in():
    redirect = warc(http(b"", b"Location: /a b", status=b"HTTP/1.1 301 Moved"))
    (capture,) = captures(redirect, DocumentRules(redirects=True))
    assert capture.fetch_redirect == "/a%20b"
    assert len(captures(warc(http(status=b"HTTP/2 404")), DocumentRules(errors=True))) == 1
    (capture,) = captures(warc(http()), DocumentRules(domain_sets=False, mime_sets=False))
    assert capture.sets == ()


def test_a_revisit_refers_to_its_original():
    digest = hashlib.sha1(PAGE).digest()
    block = http(b"", b"Content-Type: text/html", status=b"HTTP/1.1 304 Not Modified")
    (capture,) = captures(
        warc(
            block,
            b"WARC-Payload-Digest: SHA-1:" + digest.hex().encode(),
            b"WARC-Refers-To-Target-URI: <http://a.cz/orig>",
            b"WARC-Refers-To-Date: 2008-04-30T20:48:26Z",
            kind=b"revisit",
        ),
        DocumentRules(),
    )
    assert capture.warc_record_type == "revisit"
    assert capture.content_digest == sha1(PAGE)
    assert capture.refers_to_url == "http://a.cz/orig"
    assert capture.refers_to_date == "2008-04-30T20:48:26Z"


def test_a_revisit_that_declares_only_a_date_refers_to_its_own_url():
    date = b"WARC-Refers-To-Date: 2008-04-30T20:48:26Z"
    (capture,) = captures(warc(b"", date, kind=b"revisit"))
    assert (capture.refers_to_url, capture.refers_to_date) == (capture.url, "2008-04-30T20:48:26Z")
    assert capture.content_length == 0
    assert (capture.title, capture.content_mime_detected) == (None, None)
    (bare,) = captures(warc(b"", kind=b"revisit"))
    assert bare.content_digest is None
    again = http(b"", status=b"HTTP/1.1 200 OK")
    assert captures(warc(again, kind=b"revisit"))[0].identity == bare.identity
    assert bare.sets == ("domain:cz:a:www",)


def test_a_resource_is_all_payload():
    record = warc(b"<p>HTTP", b"Content-Type: text/plain; charset=x", kind=b"resource")
    (capture,) = captures(record)
    assert capture.content_mime_type == "text/plain"
    assert capture.content_digest == sha1(b"<p>HTTP")
    assert capture.fetch_status is None


def test_the_files_in_a_wacz_are_read():
    inner = members([warc(http())])
    data = archived(
        ("datapackage.json", "{}"), ("archive/data.warc.gz", inner), ("pages/pages.jsonl", "{}")
    )
    (capture,) = captures(data, name="x.wacz")
    assert capture.warc_filename == "x.wacz/archive/data.warc.gz"
    assert capture.warc_record_offset == 0
    assert capture.warc_record_length == len(inner)


def test_arc_version_2_lines_and_announcements_that_lie():
    line = (
        b"URL IP-address Archive-date Content-type Result-code "
        b"Checksum Location Offset Filename Archive-length"
    )
    body = b"no http head"
    two = (
        b"http://a.cz/ 192.0.2.1 20080430204826 text/html; charset=x 302 abc http://b.cz/ 12 a.arc "
        + b"%d\n%b\n" % (len(body), body)
    )
    first, second = captures(filedesc(b"2 0", line) + two + arc(http()))
    assert (first.fetch_status, first.fetch_redirect) == (302, "http://b.cz/")
    assert first.content_mime_type == "text/html"
    assert second.fetch_status == 200


def test_arc_headers_as_crawlers_wrote_them():
    (spaced,) = captures(arc(http(), url=b"http://a.cz/a b?c=d e"))
    assert spaced.url == "http://a.cz/a%20b?c=d%20e"
    assert spaced.url_bytes == b"http://a.cz/a b?c=d e"
    (charset,) = captures(arc(b"body", mime=b"text/plain; Charset=iso-8859-2"))
    assert (charset.content_mime_type, charset.url) == ("text/plain", URL.decode())
    (bare,) = captures(arc(b"SSH-2.0-OpenSSH\r\n", mime=b"no-type"))
    assert (bare.content_mime_type, bare.fetch_status) == (None, None)
    assert bare.content_digest == sha1(b"SSH-2.0-OpenSSH\r\n")
    (empty,) = captures(arc(b"x", mime=b""))
    assert empty.content_length == 1


def test_http_heads_as_servers_sent_them():
    def one(block):
        return captures(warc(block))[0]

    assert one(http(eol=b"\n")).title == "Zprávy"
    assert one(b"HTTP/2 200\r\ncontent-type: text/html\r\n\r\n" + PAGE).fetch_status == 200
    assert one(b"HTTP/1.1 200 \r\nX: \xff\xfe\r\n\r\na").content_length == 1
    assert one(b"HTTP/1.0 200 OK\n" + PAGE).content_digest == sha1(PAGE)
    assert one(b"HTTP/1.0 200 OK").content_length == 0
    assert one(PAGE).fetch_status is None
    assert one(b"").content_length == 0


def test_bombs_stay_small():
    body = brotli.compress(b"<title>a</title>" + bytes(1 << 25), quality=1)
    assert captures(warc(http(body, b"Content-Encoding: br")))[0].title == "a"
    body = gzip.compress(b"<title>a</title>" + bytes(1 << 25), 1)
    assert captures(warc(http(body, b"Content-Encoding: gzip")))[0].title == "a"


def test_dates_are_as_exact_as_the_file():
    (capture,) = captures(warc(http(), date=b"2019-11-18T12:56:03.352903Z"))
    assert capture.fetch_date == "2019-11-18T12:56:03.352903Z"
    assert capture.fetch_time == datetime(2019, 11, 18, 12, 56, 3, 352903, tzinfo=UTC)
    (whole,) = captures(warc(http(), date=b"2019-11-18T12:56:03Z"))
    assert capture.identity == whole.identity


def test_titles_hold_nothing_that_xml_forbids():
    data = warc(http(b"<title>a&#1;\x0b b\n\n c</title>"))
    (capture,) = captures(data)
    assert capture.title == "a b c"
    assert [(f.code, f.field) for f in faults(data)] == [("xml-illegal-character", "title")]
