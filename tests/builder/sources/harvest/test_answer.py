"""Answers that are no XML are mended where that can be told, and taken apart where it cannot."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from builder.sources.harvest import answer
from builder.sources.harvest.answer import NAMESPACES, UNREADABLE, page, take_apart
from builder.sources.harvest.errors import Broken
from builder.sources.harvest.page import ListPage, read
from tests.builder.sources.harvest.test_page import HEADER, OAI, listed


def record(number: int, title: str) -> str:
    header = HEADER.replace("oai:a.cz:1", f"oai:a.cz:{number}")
    return (
        f'<record>{header}<metadata><d xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>'
        f"{title}</dc:title></d></metadata></record>"
    )


@pytest.mark.parametrize(
    ("bad", "good", "words"),
    [
        (b"a\x0bb\x00", "ab", answer.CHARACTERS),
        ("a\ufffeb\uffff".encode(), "ab", answer.CHARACTERS),
        (b"a&#0;b&#x1F;&#xFFFE;", "ab", answer.CHARACTERS),
        (b"a\xed\xa0\xbd\xed\xb8\x80b", "a\U0001f600b", answer.CHARACTERS),
        (b"a\xed\xa0\xbdb", "ab", answer.CHARACTERS),
        (b"caf\xe9 \x93q\x94", "caf\xe9 \u201cq\u201d", answer.BYTES),
        (b"&nbsp;&eacute;&Scaron;", "\xe9\u0160", answer.ENTITIES),
        (b"AT&T & &unknown; &amp; &#65;", "AT&T & &unknown; & A", answer.MARKUP),
        (b"1 < 2 and 3 <4", "1 < 2 and 3 <4", answer.MARKUP),
        (b"<![CDATA[a & b &nbsp; \x01]]>", "a & b &nbsp;", answer.CHARACTERS),
    ],
)
def test_what_xml_does_not_allow_is_mended_and_told(bad: bytes, good: str, words: str) -> None:
    data = listed(record(1, "T") + record(2, "@") + record(3, "\xe9")).replace(b"@", bad)
    with pytest.raises(Broken):
        read(data)
    entries = page(data, None).entries
    assert [one.dc["title"] for one in entries] == [("T",), (good,), ("\xe9",)]
    assert [one.fault for one in entries] == [None, words, None]
    for one in entries:
        etree.fromstring(one.text)


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        (b"\xef\xbb\xbf" + listed(record(1, "\xe9")), None),
        (b"\n \n" + listed(record(1, "\xe9")), None),
        (b"<b>Warning</b>: no <br/>\n" + listed(record(1, "\xe9")) + b"<!-- 1 s --><p>", None),
        (listed(record(1, "\xe9")).decode().encode("utf-16"), None),
        (codecs.BOM_UTF32_BE + listed(record(1, "\xe9")).decode().encode("utf-32-be"), None),
        (listed(record(1, "\xe9")).replace(b"UTF-8", b"iso-8859-1").decode().encode("latin-1"), ""),
        (
            listed(record(1, "\xe9")).replace(b' encoding="UTF-8"', b"").decode().encode("cp1252"),
            "windows-1252",
        ),
        (b"<!DOCTYPE OAI-PMH [<!ENTITY a 'b'>]>" + listed(record(1, "\xe9"))[38:], None),
    ],
)
def test_what_is_told_wrong_or_in_another_way_is_read(data: bytes, charset: str | None) -> None:
    (entry,) = page(data, charset).entries
    assert entry.dc == {"title": ("\xe9",)}
    assert entry.fault is None


def test_well_known_prefixes_that_nobody_declares_are_declared() -> None:
    bare = record(1, "T").replace(' xmlns:dc="http://purl.org/dc/elements/1.1/"', "")
    first, other = page(listed(bare + record(2, "U")), None).entries
    assert (first.dc, other.dc) == ({"title": ("T",)}, {"title": ("U",)})
    etree.fromstring(first.text)
    with pytest.raises(Broken, match="unbound"):
        page(listed(record(1, "<strange:x/>")), None)


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ("a ]]> b", "a ]]&gt; b"),
        ('<dc:x xml:lang="cs" xml:lang="en">c</dc:x>', '<dc:x xml:lang="cs">c</dc:x>'),
        ("<mods:note>c</mods:note>", "<mods:note>c</mods:note>"),
        ("<mods:a>c</b>", f'<mods:a xmlns:mods="{NAMESPACES["mods"]}">c</mods:a>'),
        ('<a b:c="d">e</a>', '<a b:c="d" xmlns:b="urn:x-sheaf:undeclared:b">e</a>'),
        ("a<br>b<br />c", "a<br/>b<br/>c"),
        ("a<i>b", "a<i>b</i>"),
        ("a</p>b", "ab"),
        ("<!-- a -- b --->", "<!-- a - - b - -->"),
        ('<a href="b<c"/>', '<a href="b&lt;c"/>'),
        ('<a href="?x=1&y=2"/>', '<a href="?x=1&amp;y=2"/>'),
        ("<a href=b.cz/?c checked>d</a>", '<a href="b.cz/?c" checked="checked">d</a>'),
        ("3 <5 and y>3 <john@a.cz>", "3 &lt;5 and y>3 &lt;john@a.cz>"),
        ("<?xml version='1.0'?><?php x?><!DOCTYPE a>", "<?php x?>"),
        ("<dc::x>b</dc::x>", "<dc:x>b</dc:x>"),
        ("<1a>x</1a>", "&lt;1a>x&lt;/1a>"),
        ("<a 1b=2 c='d\"'>", "<a c='d\"'></a>"),
        ("<![CDATA[<b>]]><i></b></i>", "<![CDATA[<b>]]><i></i>"),
        ("<![CDATA[ a", "&lt;![CDATA[ a"),
    ],
)
def test_markup_is_repaired_within_its_record(bad: str, good: str) -> None:
    data = listed(record(1, "T") + record(2, bad) + record(3, "C"))
    found = _read(data)
    assert [one.identifier for one in found.entries] == [f"oai:a.cz:{n}" for n in (1, 2, 3)]
    assert found.lost == ()
    first, mended, last = found.entries
    assert f"<dc:title>{good}</dc:title>" in mended.text
    assert (first.fault, last.fault, bool(mended.fault)) == (None, None, True)
    etree.fromstring(mended.text)


def _read(data: bytes) -> ListPage:
    """Read a page as the client does: whole if that can be, else record by record."""
    try:
        return page(data, None)
    except Broken:
        found = take_apart(data, None)
        assert found is not None
        return found


WRAPPED = '<w xmlns="urn:w"><record><header><identifier>inner</identifier></header>{}</record></w>'


@pytest.mark.parametrize("inner", ["<v>1</w>", "</record><record><header/><v>", "<!-- -- --><v/>"])
def test_records_within_metadata_are_no_records_of_the_list(inner: str) -> None:
    """Each record has one of its own in its metadata, and one of these is broken."""
    whole, broken = WRAPPED.format("<v>1</v>"), WRAPPED.format(inner)
    found = _read(listed("".join(record(n, broken if n == 2 else whole) for n in (1, 2, 3))))
    assert [one.identifier for one in found.entries] == [f"oai:a.cz:{n}" for n in (1, 2, 3)]
    assert found.lost == ()


def test_a_page_with_a_record_that_does_not_end_gives_the_others() -> None:
    token = b'<resumptionToken completeListSize="3">a&amp;b</resumptionToken>'
    cut = record(2, "B").removesuffix("</d></metadata></record>")
    data = listed(record(1, "A") + cut + record(3, "C"))
    data = data.replace(b"</ListRecords>", token + b"</ListRecords>")
    with pytest.raises(Broken):
        page(data, None)
    found = take_apart(data, None)
    assert found is not None
    assert [one.identifier for one in found.entries] == ["oai:a.cz:1", "oai:a.cz:3"]
    assert found.lost == (("oai:a.cz:2", UNREADABLE),)
    assert (found.token, found.size, found.torn) == ("a&b", 3, False)
    assert found.date == "2026-11-22T10:00:00Z"
    whole = page(listed(record(1, "A")), None).entries[0].text
    assert found.entries[0].text == whole


def test_a_page_that_breaks_off_gives_what_is_whole() -> None:
    data = listed(record(1, "A") + record(2, "B") + record(3, "C"))
    found = take_apart(data[: data.index(b"C</dc")], None)
    assert found is not None
    assert [one.identifier for one in found.entries] == ["oai:a.cz:1", "oai:a.cz:2"]
    assert (found.lost, found.torn, found.token) == ((), True, None)
    for nothing in (b"<html>", listed("")[:-10]):
        assert take_apart(nothing, None) is None


@given(st.binary(max_size=60), st.sampled_from([None, "utf-8", "latin-1", "no-such", "utf-16"]))
def test_whatever_comes_is_mended_or_refused(junk: bytes, charset: str | None) -> None:
    data = listed(record(1, "@@") + record(2, "T")).replace(b"@@", junk)
    for _ in range(2):
        try:
            entries = page(data, charset).entries
        except Broken:
            entries = getattr(take_apart(data, charset), "entries", ())
        for one in entries:
            etree.fromstring(one.text, etree.XMLParser(huge_tree=True))
        data = junk + data


@given(st.text(max_size=40))
def test_what_is_mended_is_mended_once(text: str) -> None:
    first = answer.repair(
        f'<OAI-PMH xmlns="{OAI}">{text}</OAI-PMH>'.encode("utf-8", "replace"), None
    )
    again = answer.repair(first.data, None)
    assert again.data == first.data
    assert again.places == ()
