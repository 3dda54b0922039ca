"""Pages are read as they are written, whatever lies in their records."""

from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from builder.sources.harvest.errors import Broken
from builder.sources.harvest.page import places, read, spans

OAI = "http://www.openarchives.org/OAI/2.0/"
HEADER = (
    "<header><identifier>oai:a.cz:1</identifier><datestamp>2026-11-22</datestamp>"
    "<setSpec>a</setSpec><setSpec>b:c</setSpec></header>"
)
DC = (
    '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title> A &amp; <b>B</b> </dc:title>'
    "<dc:title>C</dc:title><dc:creator/><other/></oai_dc:dc>"
)


def answer(said: str, root: str = "") -> bytes:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="{OAI}"{root}>'
        f"<responseDate>2026-11-22T10:00:00Z</responseDate><request>x</request>{said}</OAI-PMH>"
    ).encode()


def listed(records: str, root: str = "") -> bytes:
    return answer(f"<ListRecords>{records}</ListRecords>", root)


def test_a_record_is_read() -> None:
    token = '<resumptionToken completeListSize=" 12 " cursor="0"> a&amp;b\n</resumptionToken>'
    page = read(listed(f"<record>{HEADER}<metadata>{DC}</metadata></record>{token}"))
    (entry,) = page.entries
    assert (page.date, page.token, page.size) == ("2026-11-22T10:00:00Z", "a&b", 12)
    assert (entry.identifier, entry.datestamp, entry.deleted) == ("oai:a.cz:1", "2026-11-22", False)
    assert entry.sets == ("a", "b:c")
    assert entry.dc == {"title": ("A & B", "C")}
    assert entry.text == f'<record xmlns="{OAI}">{HEADER}<metadata>{DC}</metadata></record>'


@pytest.mark.parametrize(
    ("token", "read_as", "size"),
    [
        ("", None, None),
        ("<resumptionToken/>", "", None),
        ("<resumptionToken> </resumptionToken>", "", None),
        *(
            (f'<resumptionToken completeListSize="{size}">t</resumptionToken>', "t", None)
            for size in ("", "-1", "many", "1e9", "٣", "9" * 40)
        ),
        ('<resumptionToken completeListSize="7">t</resumptionToken>', "t", 7),
    ],
)
def test_no_token_is_told_from_an_empty_one_and_no_size_from_a_wrong_one(
    token: str, read_as: str | None, size: int | None
) -> None:
    page = read(listed(f"<record>{HEADER}</record>{token}"))
    assert (page.token, page.size) == (read_as, size)
    # What is deleted has its header alone, and headers are listed without an element.
    header = HEADER.replace("<header>", '<header status=" Deleted ">')
    (entry,) = read(listed(f"<record>{header}</record>{token}")).entries
    assert (entry.deleted, entry.dc) == (True, {})
    page = read(answer(f"<ListIdentifiers>{HEADER}{HEADER}{token}</ListIdentifiers>"))
    assert [(one.identifier, one.text) for one in page.entries] == [("oai:a.cz:1", "")] * 2


def test_namespaces_of_the_surroundings_come_along_where_they_are_needed() -> None:
    root = ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:x=\'urn:b&amp;c\' xmlns:no="urn:no"'
    inner = '<metadata><x:y xmlns:no="urn:own"><dc:title>T</dc:title><no:z/></x:y></metadata>'
    (entry,) = read(listed(f"<record>{HEADER}{inner}</record>", root)).entries
    element = etree.fromstring(entry.text)
    assert element.find(".//{urn:own}z") is not None
    assert element.find(".//{urn:b&c}y") is not None
    assert entry.dc == {"title": ("T",)}


def test_an_element_that_declares_for_itself_is_left_as_it_is() -> None:
    written = (
        f'<o:record xmlns:o="{OAI}" xmlns="urn:x"><o:header>{HEADER[8:-9]}</o:header></o:record>'
    )
    (entry,) = read(listed(written)).entries
    assert entry.text == written


def test_errors_formats_sets_and_identify_are_read() -> None:
    found = read(answer('<error code="badArgument"> no\n such </error><error code="x"/>'))
    assert found.errors == (("badArgument", "no such"), ("x", ""))
    row = "<metadataFormat><metadataPrefix>p</metadataPrefix><schema>s</schema></metadataFormat>"
    found = read(answer(f"<ListMetadataFormats>{row}</ListMetadataFormats>"))
    assert found.rows == ({"metadataPrefix": "p", "schema": "s"},)
    row = (
        "<set><setSpec>a</setSpec><setName>A &amp; B</setName>"
        "<setDescription><x/></setDescription></set>"
    )
    found = read(answer(f"<ListSets>{row}<resumptionToken>t</resumptionToken></ListSets>"))
    assert (found.rows, found.token) == (({"setSpec": "a", "setName": "A & B"},), "t")
    mails = "<adminEmail>a</adminEmail><adminEmail>b</adminEmail>"
    said = f"<repositoryName>R</repositoryName>{mails}"
    assert read(answer(f"<Identify>{said}</Identify>")).rows == (
        {"repositoryName": "R", "adminEmail": "a"},
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not XML"),
        (b"<html><body>Sign in</body></html>", "a document <html>"),
        (answer("<ListRecords><record>"), "not XML"),
        (answer("<a>&nbsp;</a>"), "not XML"),
        (answer("<a>\x0b</a>"), "not XML"),
        (answer("<a>@</a>").replace(b"@", b"\xe1\xc3\xa9"), "not XML"),
        (b"<!DOCTYPE a [<!ENTITY a 'b'>]>" + listed("<record>&a;</record>")[38:], "document type"),
    ],
)
def test_what_is_no_answer_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(Broken, match=why):
        read(data)


NESTED = st.recursive(
    st.sampled_from(
        [
            "text > &amp; &#10; 'q' \"q\"",
            "<!-- <record> </record> -->",
            "<![CDATA[</record><record>]]>",
            "<?pi <record> ?>",
            "<record/>",
            "<record a='/>' b='&lt;>' />",
            "<m:record/>",
            "<records/>",
            "<recorded>x</recorded>",
        ]
    ),
    lambda inner: st.lists(inner, max_size=3).flatmap(
        lambda some: st.sampled_from(
            [
                f"<record>{''.join(some)}</record>",
                f"<m:record >{''.join(some)}</m:record>",
                f"<x>{''.join(some)}</x>",
            ]
        )
    ),
    max_leaves=8,
)


@given(
    st.lists(st.tuples(st.text("aé&<>\"'", max_size=5), NESTED), max_size=5),
    st.sampled_from(["", "o:"]),
)
def test_elements_are_found_whatever_lies_in_them(some: list[tuple[str, str]], p: str) -> None:
    """What is cut out of the bytes is what the library's own tree says."""
    written = [
        f"<{p}record id={quoteattr(name)}><{p}header><{p}identifier>{number} {escape(name)}"
        f"</{p}identifier></{p}header><{p}metadata>{inner}</{p}metadata></{p}record>"
        for number, (name, inner) in enumerate(some)
    ]
    data = (
        f'<{p}OAI-PMH xmlns{":o" if p else ""}="{OAI}" xmlns:m="urn:m"><{p}ListRecords>'
        f"{' '.join(written)}</{p}ListRecords></{p}OAI-PMH>"
    ).encode()
    entries = read(data).entries
    assert [data[one.start : one.end].decode() for one in entries] == written
    for number, (entry, (name, _)) in enumerate(zip(entries, some, strict=True)):
        element = etree.fromstring(entry.text)
        assert element.tag == f"{{{OAI}}}record"
        assert entry.identifier == f"{number} {name}".strip()


@given(st.lists(NESTED, max_size=4), st.sampled_from(["<record>", "<record>", "<record >"]))
def test_the_search_for_tags_finds_what_the_scan_finds(some: list[str], tag: str) -> None:
    records = "".join(f"{tag}<header/>{inner}</record\n>" for inner in some)
    data = f'<OAI-PMH xmlns:m="urn:m"><ListRecords>{records}</ListRecords></OAI-PMH>'.encode()
    assert places(data, len(some)) == list(spans(data, b"record"))
