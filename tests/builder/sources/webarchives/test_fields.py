"""Single fields: dates, digests, addresses, SURTs, media types, character encodings, titles."""

import pytest

from builder.sources.webarchives import html, identity, payload
from builder.sources.webarchives import identity as instant
from functions.archive import charset, declared_digest
from functions.content import terms
from functions.snapshot import oai_name, surt


@pytest.mark.parametrize(
    "date, text, code",
    [
        (b"2008-04-30T20:48:26Z", "2008-04-30T20:48:26Z", None),
        (b"2008-04-30t20:48:26z", "2008-04-30T20:48:26Z", None),
        (b"2014-02-10T00:00:01.000000002Z", "2014-02-10T00:00:01.000000002Z", None),
        (b"2014", "2014", "date-partial"),
        (b"2014-01", "2014-01", "date-partial"),
        (b"2014-01-02", "2014-01-02", "date-partial"),
        (b"2014-01-02T03:04Z", "2014-01-02T03:04Z", "date-partial"),
        (b"2014-01-02T03:04:05", "2014-01-02T03:04:05Z", "date-zone"),
        (b"2014-01-02T03:04:05+01:00", "2014-01-02T02:04:05Z", "date-zone"),
        (b"2014-01-02T03:04:05Z junk", "2014-01-02T03:04:05Z", "date-junk"),
        (b"20140102030405", "2014-01-02T03:04:05Z", None),
        (b"2014-13-02T03:04:05Z", None, "date-invalid"),
        (b"2014-02-30T03:04:05Z", None, "date-invalid"),
        (b"0000-01-01T00:00:00Z", None, "date-invalid"),
        (b"1412092816", None, "date-invalid"),  # seconds since 1970
        (b"2999-12-31T23:59:59Z", None, "date-invalid"),  # what readers give for no date
        (b"9999-12-31T23:59:59-01:00", None, "date-invalid"),
        (b"2014-01-02T03:04:05+99:99", None, "date-invalid"),
        (b"yesterday", None, "date-invalid"),
        (b"", None, "date-invalid"),
    ],
)
def test_warc_dates(date, text, code):
    found, flaw = instant.parse_warc_date(date)
    assert found.text == text
    assert (flaw and flaw[0]) == code
    assert (found.time is not None) == (text is not None and len(text) >= 20)


def test_digests():
    assert declared_digest.parse_digest(b"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ").text() == (
        "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    )
    hexadecimal = b"SHA-1:da39a3ee5e6b4b0d3255bfef95601890afd80709"
    assert declared_digest.parse_digest(hexadecimal).text() == "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    assert declared_digest.parse_digest(b"sha-256:" + b"ab" * 32).text() == "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    "raw, url, host, spec",
    [
        (b"http://www.webarchiv.cz/", None, "www.webarchiv.cz", "domain:cz:webarchiv:www"),
        (b"http://www.bbc.co.uk/", None, "www.bbc.co.uk", "domain:co.uk:bbc:www"),
        (b"http://co.uk/", None, "co.uk", "domain:co.uk"),
        (b"http://192.0.2.1:8080/", None, "192.0.2.1", "domain:ip:192.0.2.1"),
        (b"http://[2001:DB8::1]/", None, "2001:db8::1", "domain:ip:2001!3Adb8!3A!3A1"),
        (b"http://localhost/", None, "localhost", "domain:localhost"),
        (b"http://-a-.tumblr.com/", None, "-a-.tumblr.com", "domain:com:tumblr:-a-"),
        (b"http://u:p@A.CZ.:80/", None, "a.cz", "domain:cz:a"),
        ("http://žluť.cz/".encode(), "http://%C5%BElu%C5%A5.cz/", "xn--lu-yta1h.cz", None),
        (b"urn:isbn:1", None, None, None),
        (b"http://JavaScript:Wtop('a')", None, None, None),
        (b'http://a b.cz/\n<>"\xff', "http://a%20b.cz/%0A%3C%3E%22%FF", None, None),
        (b"", None, None, None),
    ],
)
def test_addresses(raw, url, host, spec):
    found = identity.parse_address(raw)
    assert found.url == (raw.decode() if url is None else url)
    assert found.raw == (None if url is None else raw)
    assert (found.host and found.host.name) == host
    if spec:
        assert found.host.set_spec == spec
        assert oai_name.is_set(spec)


@pytest.mark.parametrize(
    "raw, key",
    [
        (b"http://www.Example.COM/", "com,example)/"),
        (b"http://example.com", "com,example)/"),
        (b"http://-a-.tumblr.com/X", "com,tumblr,-a-)/x"),
        (b"https://www2.example.com:443/A/?b=2&a=1&a", "com,example)/a?a&a=1&b=2"),
        (b"http://example.com:8080/a/../b//c/", "com,example:8080)/b/c"),
        (b"http://example.com/?", "com,example)/"),
        (b"http://user@example.com/#frag", "com,example)/"),
        (b"http://example.com/%7Euser/%2541%20", "com,example)/~user/a%20"),
        (b"http://example.com/%CE%d2\xff", "com,example)/%ce%d2%ff"),
        (b"http://a.cz/x;jsessionid=" + b"0" * 32 + b"?q=1", "cz,a)/x?q=1"),
        (b"http://a.cz/?PHPSESSID=" + b"0" * 32 + b"&q=1", "cz,a)/?q=1"),
        (b"http://a.cz/?q=1&sid=" + b"0" * 32, "cz,a)/?q=1"),
        (b"http://a.cz/?cfid=1&cftoken=2&q=1", "cz,a)/?q=1"),
        (b"http://192.0.2.1/a", "1,2,0,192)/a"),
        (b"http://user@192.0.2.1:8080/a", "1,2,0,192:8080)/a"),
        (b"https://192.000.002.010:443/", "8,2,0,192)/"),
        (b"http://3232235777/", "1,1,168,192)/"),
        (b"http://1.2.3/", "3,0,2,1)/"),
        (b"http://0113.191.0.1/", "1,0,191,0113)/"),
        (b"http://09.1.2.3/", "3,2,1,09)/"),
        (b"http://999.1.1.1/", "1,1,1,999)/"),
        (b"http://[2001:DB8::1]:8080/A", "2001:db8::1:8080)/a"),
        (b"http://[::ffff:192.0.2.1]/", "1,2,0,::ffff:192)/"),
        (b"ftp://ftp.gnome.org/HEADER.html", "org,gnome,ftp)/header.html"),
        (b"urn:ISBN:1", "urn:ISBN:1"),
        (b"http://JavaScript:Wtop('a')", "http://JavaScript:Wtop('a')"),
        (b"gopher://g.example/1/a", "example,g)/1/a"),
        (b"www.a.cz/index.html", "cz,a)/index.html"),
        (b"//a.cz/x", "cz,a)/x"),
        (b"http:/a.cz/x", "cz,a)/x"),
        (b"youtube-dl:00001:https://a.cz/x", "youtube-dl:00001:https://a.cz/x"),
    ],
)
def test_surts(raw, key):
    found = identity.parse_address(raw)
    assert found.surt == key
    assert surt.of(raw) == key
    assert terms.parse_scope(found.url, "exact").ranges == (terms.exact_range(key),)


def test_keys_of_pywb():
    """As the package surt 0.3.1 makes them."""
    keys = {
        b"http://www.a.cz/x/?b=2&a=1#f": "cz,a)/x?a=1&b=2",
        b"file:///A1/b/Signal VIP.jpg": "file:/a1/b/signal%20vip.jpg",
        b"urn:X-log:a?url=http%3A%2F%2Fc.cz%2F": "urn:x-log:a?url=http://c.cz/",
        b"urn:view:http://a.cz/?c=\xe2\x9c\x93": "urn:view:http://a.cz?c=%e2%9c%93",
        b"gemini://gem.example/page": "example,gem)/page",
        b"http:a.cz/none": "cz,a)/none",
        b"http://a.cz/a;jsessionid=" + b"0" * 32: "cz,a)/a;jsessionid=" + "0" * 32,
        b"http://a.cz/a\tb\\b": "cz,a)/ab\\b",
    }
    assert {raw: surt.pywb_key(raw) for raw in keys} == keys


@pytest.mark.parametrize(
    "declared, essence",
    [
        (b"Text/HTML; charset=x", "text/html"),
        (b"application/xhtml+xml", "application/xhtml+xml"),
        (b"text/html, text/plain", "text/html"),
        (b"no-type", None),
        (b"unk", None),
        (b"text html", None),
        (b"text/<b>", None),
        (b"", None),
    ],
)
def test_declared_types(declared, essence):
    assert payload.essence(declared) == essence


@pytest.mark.parametrize(
    "head, name",
    [
        (b"\n <!doctype html>", "text/html"),
        (b"\xef\xbb\xbf<html>", "text/html"),
        ("<html>".encode("utf-16"), "text/html"),
        (b"<?xml version='1.0'?><a/>", "text/xml"),
        (b"<?xml version='1.0'?><html xmlns='x'>", "application/xhtml+xml"),
        (b"<svg xmlns='x'>", "image/svg+xml"),
        (b"%PDF-1.4", "application/pdf"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wave"),
        (b"\x00\x00\x00\x18ftypmp42", "video/mp4"),
        (b"wOF2", "font/woff2"),
        (b"PK\x03\x04", "application/zip"),
        (b"\xef\xbb\xbfabc", "text/plain"),
        (b"just text", None),
        (b"<abc>", None),
        (b"", None),
    ],
)
def test_detected_types(head, name):
    assert payload.detect_type(head) == name


def test_encodings():
    assert charset.whatwg_name("UTF8") == "utf-8"
    assert charset.whatwg_name("iso-8859-1") == "windows-1252"
    assert charset.whatwg_name("nonsense") is None


def test_titles():
    def title(page, name="utf-8"):
        return html.title_and_language(page, name)[0]

    assert title(b"<title> a &amp;\n b </TITLE >") == "a & b"
    assert title(b"<svg><title>no</title></svg><title>yes</title>") == "yes"
    assert title(b"<!-- <title>no</title> --><title>yes</title>") == "yes"
    assert title(b'<script>x="<title>no</title>"</script><title>yes</title>') == "yes"
    assert title("<title>ž</title>".encode("windows-1250"), "windows-1250") == "ž"
    assert title("<title>ž</title>".encode("utf-16"), "utf-16le") == "ž"
    assert title(b"<meta charset=big5><title>\xc5\xbe</title>") == "ž"
    assert title(b"<title>open") == "open"
    assert title(b"<title></title>") is None
    assert len(title(b"<title>" + b"a" * 9000 + b"</title>")) == 2000
    assert title(b"<div>" * 20000 + b"<title>deep</title>") == "deep"


def test_languages():
    assert html.languages("cs-CZ, EN_us, cs, *, x, <b>") == "cs,en"
    assert html.languages("") is None
    assert html.languages(None) is None
    assert html.title_and_language(b'<html class=a lang="de-AT"><p>', "utf-8")[1] == "de-AT"
