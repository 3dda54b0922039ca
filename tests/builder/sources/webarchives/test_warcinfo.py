"""What archive files say of their crawl."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources.webarchives import side_records
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.side_records import Crawl
from builder.sources.webarchives.webarchive import ArchiveReader

WARCINFO = (
    b"software: Heritrix/3.1.1 http://crawler.archive.org\r\nOperator : Jana \xc5\xbdid\r\n"
    b"format: WARC File Format 1.0\r\nisPartOf:  serials-2007-11\r\n"
    b"description: \x07 all\tof it\r\n"
    b"software: a second one\r\noperator-from: nobody\r\n"
)
ARC = (
    b"1 1 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n"
    b'<?xml version="1.0"?>\n<arcmetadata xmlns:dc="http://purl.org/dc/elements/1.1/">\n'
    b"<arc:software>Heritrix 1.12 &amp; more</arc:software><arc:operator></arc:operator>"
    b'<dcterms:isPartOf xml:lang="en">serials</dcterms:isPartOf>\n'
    b"<dc:description>Default\n  Profile</dc:description></arcmetadata>\n"
)


def test_named_fields() -> None:
    assert side_records.parse_crawl(WARCINFO) == Crawl(
        "Heritrix/3.1.1 http://crawler.archive.org", "Jana \u017did", "serials-2007-11", "all of it"
    )


def test_an_arc_version_block() -> None:
    assert side_records.parse_crawl(ARC) == Crawl(
        "Heritrix 1.12 & more", None, "serials", "Default Profile"
    )


@pytest.mark.parametrize(
    "block", [b"", b"1 0 x\n", b"<arcmetadata/>", b"software:\r\n", b"\xff\xfe"]
)
def test_what_says_nothing(block: bytes) -> None:
    assert side_records.parse_crawl(block) is None


@given(st.binary(max_size=200), st.booleans())
def test_whatever_a_block_holds(noise: bytes, xml: bool) -> None:
    block = b"<arcmetadata><operator>" + noise + b"</operator>" if xml else b"operator: " + noise
    found = side_records.parse_crawl(block)
    text = (found and found.operator) or ""
    assert text == " ".join(text.split())
    assert not any(ord(c) < 32 or c in "\ufffe\uffff" for c in text)


def record(kind: bytes, block: bytes, more: bytes = b"") -> bytes:
    return (
        b"WARC/1.0\r\nWARC-Type: "
        + kind
        + b"\r\nWARC-Date: 2007-11-05T00:00:00Z\r\n"
        + more
        + b"Content-Length: %d\r\n\r\n" % len(block)
        + block
        + b"\r\n\r\n"
    )


def test_a_file_tells_of_its_crawl_and_loses_no_record() -> None:
    page = record(
        b"resource",
        b"<title>a</title>",
        b"WARC-Target-URI: http://a.cz/\r\nContent-Type: text/html\r\n",
    )
    long = b"operator: first\r\n" + b"x" * 200_000
    data = record(b"warcinfo", WARCINFO) + page + record(b"warcinfo", long) + page
    events = list(ArchiveReader(io.BytesIO(data), "a.warc", DocumentRules()))
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["Skipped", "Crawl", "Capture", "Skipped", "Crawl", "Capture"]
    first, second = (event for event in events if isinstance(event, Crawl))
    assert first.part_of == "serials-2007-11"
    assert second == Crawl(operator="first")
    assert Crawl().fill_from(second).fill_from(first) == Crawl(
        first.software, "first", first.part_of, first.description
    )


def test_an_arc_file_tells_of_its_crawl() -> None:
    head = b"filedesc://a.arc 0.0.0.0 20071105000000 text/plain %d\n" % len(ARC) + ARC + b"\n"
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>a</title>"
    row = b"http://a.cz/ 1.2.3.4 20071105000000 text/html %d\n" % len(page) + page + b"\n"
    events = list(ArchiveReader(io.BytesIO(head + row), "a.arc", DocumentRules()))
    assert [type(event).__name__ for event in events] == ["Skipped", "Crawl", "Capture"]
    assert [e.part_of for e in events if isinstance(e, Crawl)] == ["serials"]
