"""Encodings of pages: what tells of them, in which order, and what of them is detected."""

import pytest

from builder.sources.webarchives.html import title_and_language
from functions.archive import charset
from functions.snapshot import schema
from tests.builder.sources.webarchives.containers import captures, http, warc
from tests.builder.sources.webarchives.languages import (
    CZECH,
    HUNGARIAN,
    JAPANESE,
    PAGES,
    RUSSIAN,
    page,
)


@pytest.mark.parametrize(("codec", "domain", "text"), PAGES)
def test_a_page_that_declares_nothing_has_the_right_title(
    codec: str, domain: str, text: tuple[str, str]
) -> None:
    data, title = page(codec, text)
    found = charset.html_charset(data, f"www.a.{domain}")
    assert found.source == "detected"
    assert title_and_language(data, found.name)[0] == title


def test_what_is_alike_in_two_encodings_is_one_of_them() -> None:
    """Where the bytes of a text tell no more, as of Russian in KOI8-R, that is also KOI8-U."""
    names = {codec: charset.detect(page(codec, text)[0], f"a.{d}").name for codec, d, text in PAGES}
    assert names["iso8859-5"] == "iso-8859-5"
    assert names["koi8-r"] == names["koi8-u"] == "koi8-u"
    assert names["gbk"] == "gbk"
    assert names["cp874"] == "windows-874"
    czech, czech_windows = (page(codec, CZECH)[0] for codec in ("iso8859-2", "cp1250"))
    assert charset.detect(czech, "a.cz").name == "iso-8859-2"
    assert charset.detect(czech_windows, "a.cz").name == "windows-1250"


HUNGARIAN_PAGE = page("cp1250", HUNGARIAN)[0]


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("www.a.hu", "iso-8859-2"),
        ("a.com", "windows-1252"),
        # No top-level domain, which the detector would not take
        (None, "windows-1252"),
        ("192.0.2.1", "windows-1252"),
        ("[::1]", "windows-1252"),
        ("A.HU", "windows-1252"),
        ("a.hú", "windows-1252"),
        ("a.", "windows-1252"),
        ("", "windows-1252"),
    ],
)
def test_the_domain_decides_where_the_text_does_not(host: str | None, name: str) -> None:
    assert charset.detect(HUNGARIAN_PAGE, host) == (name, "detected")


def test_what_shows_nothing_is_assumed() -> None:
    assert charset.detect(b"<p>plain", "a.cz") == ("utf-8", "assumed")
    assert charset.detect(b"", None) == ("utf-8", "assumed")


def test_iso_2022_jp_is_believed_and_not_detected() -> None:
    """Browsers do not detect it, since its escape sequences can hide markup."""
    data, title = page("iso2022_jp", JAPANESE)
    assert charset.detect(data, "a.jp") == ("utf-8", "assumed")
    declared = b"<meta charset=iso-2022-jp>" + data
    found = charset.html_charset(declared, "a.jp")
    assert found == ("iso-2022-jp", "declared")
    assert title_and_language(declared, found.name)[0] == title


def test_detection_reads_from_the_first_byte_beyond_ascii() -> None:
    data, _ = page("koi8-r", RUSSIAN)
    for size in (0, 100, 30_000):
        script = b"<script>" + b"x" * size + b"</script>"
        assert charset.detect(script + data, "a.ru").name == "koi8-u"
        assert charset.detect(data + script * 3 + b"\xff" * 90_000, "a.ru").name == "koi8-u"


def test_a_page_may_end_within_a_character() -> None:
    data = "<p>Příliš žluťoučký kůň".encode()
    assert charset.detect(data[:-1], "a.cz") == ("utf-8", "detected")


PRESCAN = {
    # page: what it declares (HTML, section 13.2.3.2)
    b"<meta charset=windows-1250>": "windows-1250",
    b"<META\nCharSet = 'cp1250' >": "windows-1250",
    b"<meta/charset=big5>": "big5",
    b"<meta charset='x'><meta charset=big5>": "big5",
    b"<meta charset=big5 charset=gbk>": "big5",
    b"<meta http-equiv=content-type content='text/html; charset=big5'>": "big5",
    b"<meta http-equiv=Content-Type content='charset charset = \"big5\"'>": "big5",
    b"<meta http-equiv=Content-Type content='text/html; charset=big5;x'>": "big5",
    b"<meta name=description content='text/html; charset=big5'>": None,
    b"<meta content='text/html; charset=big5'>": None,
    b"<meta charset=x http-equiv=content-type content='charset=big5'>": None,
    b"<metadata charset=big5>": None,
    b"<!-- <meta charset=big5> --><meta charset=gbk>": "gbk",
    b"<!--><meta charset=gbk>": "gbk",
    b"<!-- <meta charset=big5>": None,
    b"<a title='<meta charset=big5>'>": None,
    b"<? <meta charset=big5>": None,
    b"<meta charset=utf-16>": "utf-8",
    b"<meta charset=x-user-defined>": "windows-1252",
    b"<meta charset=iso-8859-1>": "windows-1252",
    b"<meta charset=big5": None,
    b"<?xml version='1.0' encoding='iso-8859-2'?>": "iso-8859-2",
    b"<?xml version='1.0' encoding='iso-8859-2'?><meta charset=big5>": "big5",
    b"<p>" + b" " * 4096 + b"<meta charset=big5>": None,
}


@pytest.mark.parametrize("data", PRESCAN)
def test_what_a_page_declares(data: bytes) -> None:
    assert charset.html_declaration(data) == PRESCAN[data]


META = b"<meta charset=windows-1250>"
TITLE = b"<title>\xc5\xbe\xc5\x99</title>"


@pytest.mark.parametrize(
    ("kind", "body", "found"),
    [
        (b"text/html", b"\xef\xbb\xbf" + META + TITLE, ("utf-8", "marked")),
        (b"text/html; charset=big5", b"\xef\xbb\xbf" + TITLE, ("utf-8", "marked")),
        (b"text/html; charset=big5", META + TITLE, ("big5", "declared")),
        (b"text/html; charset=none", META + TITLE, ("windows-1250", "declared")),
        (b"text/html", TITLE, ("utf-8", "detected")),
        (b"text/html", b"<title>x</title>", ("utf-8", "assumed")),
        (b"text/html", b"", (None, None)),
        (b"text/plain", b"\xc5\xbe", (None, None)),
        (b"text/plain; charset=cp1250", b"x", ("windows-1250", "declared")),
        (b"application/xml", b"<?xml version='1.0' encoding='big5'?>", ("big5", "declared")),
        # What is no HTML declares nothing as HTML does.
        (b"application/rss+xml", b"<?xml version='1.0'?><rss>" + META, (None, None)),
        (b"text/javascript", b"write('<meta charset=big5>')", (None, None)),
        (b"image/png", META, (None, None)),
    ],
)
def test_a_capture_says_how_its_encoding_is_known(
    kind: bytes, body: bytes, found: tuple[str | None, str | None]
) -> None:
    (capture,) = captures(warc(http(body, b"Content-Type: " + kind)))
    assert (capture.content_charset, capture.content_charset_source) == found


def test_the_source_stands_beside_the_encoding() -> None:
    names = [column.name for column in schema.CAPTURE]
    assert names[names.index("content_charset") + 1] == "content_charset_source"
