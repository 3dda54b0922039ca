"""Templates in oai_dc, redif and amf: what each says, and RePEc's terms in every record."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from lxml import etree

from builder.sources.redif.form.document import (
    Inheritable,
    document_head,
    document_sets,
    inherit,
    tail,
)
from functions.kinds import TEMPLATE
from functions.kinds.templates import redif_fields
from functions.oai.format import load
from functions.oai.render import check
from functions.oai.render.render import Renderer
from functions.snapshot import oai_name, obi
from tests.builder.obi.archive import PREFIX, Repec
from tests.builder.sources.datasets.test_formats import told
from tests.builder.sources.redif import samples
from tests.builder.sources.redif.samples import (
    ARCHIVE,
    BOOK,
    CHAPTER,
    INSTITUTION,
    PAPER,
    PERSON,
    SERIES,
)
from tests.builder.sources.redif.test_corpus import DATA
from tests.functions.oai.client import Client, content
from tests.functions.reading.memory import Item, MemoryRepository, capture

DC = "{http://purl.org/dc/elements/1.1/}"
AMF = "{http://amf.openlib.org}"
START = datetime(2026, 3, 1, 11, tzinfo=UTC)
ARTICLE = b"""Template-Type: ReDIF-Article 1.0
Author-Name: A & B <c>
Author-Name-First: A
Author-Name-Last: B
Author-Email: a@example.org
Author-Homepage: http://example.org/~a
Author-Workplace-Name: Uni
Author-Workplace-Homepage: http://example.org/
Editor-Name: Ed
Title: T ]]> &amp;
Abstract: One
Abstract: Two
Keywords: one, two; three
Keywords: four, five
Classification-JEL: A1, B22; C3
Journal: J
Volume: 16
Issue: 02
Pages: 239-242
Year: 2011
Month: April
DOI: 10.1000/x<y>
Language: en
File-URL: http://example.org/a.pdf
File-Format: application/pdf
File-Restriction: Subscribers only
File-URL: http://example.org/b.pdf
Order-URL: http://example.org/order
Paper-Handle: RePEc:aaa:wpaper:98-01
Handle: RePEc:aaa:journl:v:16:y:2011:i:02:p:239-242_00
"""


def item(data: bytes, **inherited: Any) -> tuple[str, Item]:
    template = samples.one(data)
    assert template.handle is not None
    of = Inheritable(**inherited) if inherited else Inheritable()
    inherited = inherit(of, Inheritable(), is_article=template.type == "ReDIF-Article 1.0")
    end = tail(1_352_481_230, "aaa/x.rdf", template.handle, inherited)
    fields = json.loads(document_head(template) + end)
    fields[obi.GATHERED] = None  # a publish sets it
    assert [*fields] == [column.name for column in TEMPLATE.columns]
    name = oai_name.template_identifier("oai:example.org:", template.handle)
    return name, Item(document_sets(template), "template", TEMPLATE.read(json.dumps(fields)))


def made(prefix: str, data: bytes, **inherited: Any) -> etree._Element:
    """Return the metadata of a template in a format, out of an answer that is valid."""
    repository = MemoryRepository()
    name, one = item(data, **inherited)
    repository.publish({name: one}, START)
    page = Client(repository).get("GetRecord", identifier=name, metadataPrefix=prefix)
    assert page.codes == []
    (metadata,) = page.root.iter("{*}metadata")
    return metadata[0]


def test_an_article_in_dublin_core() -> None:
    found = told(made("oai_dc", ARTICLE, name="Journal", provider=("Press",)))
    rights = found.pop("rights")
    assert rights == ["Subscribers only", TEMPLATE.terms]
    assert found == {
        "title": ["T ]]> &"],
        "creator": ["A & B <c>"],
        "contributor": ["Ed"],
        "description": ["One", "Two"],
        "subject": ["one, two", "three", "four", "five", "A1", "B22", "C3"],
        "date": ["2011-04"],
        "type": ["article"],
        "publisher": ["Press"],
        "source": ["J, vol. 16, no. 02, pp. 239-242"],
        "identifier": [
            "RePEc:aaa:journl:v:16:y:2011:i:02:p:239-242_00",
            "http://example.org/a.pdf",
            "http://example.org/b.pdf",
            "https://doi.org/10.1000/x<y>",
        ],
        "language": ["en"],
        "format": ["application/pdf"],
        "relation": ["RePEc:aaa:wpaper:98-01"],
    }


@pytest.mark.parametrize(
    ("data", "type_", "noun", "noun_type"),
    [
        # the template, its type in Dublin Core, and its noun and type in AMF
        (PAPER, ["preprint"], "text", "preprint"),
        (BOOK, ["book"], "text", "book"),
        (CHAPTER, ["bookitem"], "text", "bookitem"),
        (SERIES, ["Collection"], "collection", "serial"),
        (ARCHIVE, ["Collection"], "collection", None),
        (PERSON, None, "person", None),
        (INSTITUTION, None, "organization", None),
        (PAPER.replace(b"ReDIF-Paper", b"ReDIF-Software"), ["software"], "text", None),
        (PAPER.replace(b"ReDIF-Paper", b"ReDIF-Leaflet"), None, "text", None),
    ],
)
def test_each_type_has_a_title_its_handle_and_the_terms(
    data: bytes, type_: list[str] | None, noun: str, noun_type: str | None
) -> None:
    found = told(made("oai_dc", data))
    assert found["title"][0]
    assert found["identifier"][0].startswith("RePEc:")
    assert found.get("type") == type_
    assert found["rights"][-1] == TEMPLATE.terms
    (one,) = made("amf", data)
    assert (etree.QName(one).localname, one.findtext(f"{AMF}type")) == (noun, noun_type)


def test_what_restricts_a_file_is_shown_wherever_it_is_told() -> None:
    """Scenario 22, and RePEc's terms: the series' restriction where the files have none."""
    restricted = PAPER.replace(b"File-Format:", b"File-Restriction: Ask\nFile-Format:")
    assert told(made("oai_dc", restricted))["rights"][:-1] == ["Ask"]
    assert told(made("oai_dc", restricted, restriction=("All",)))["rights"][:-1] == ["Ask"]
    assert told(made("oai_dc", PAPER, restriction=("All",)))["rights"][:-1] == ["All"]
    assert told(made("amf", restricted))["restriction"] == ["Ask"]
    assert told(made("amf", PAPER, restriction=("All",)))["restriction"] == ["All"]


@pytest.mark.parametrize("prefix", ["oai_dc", "redif", "amf"])
def test_a_template_tells_in_which_file_it_stood(prefix: str) -> None:
    repository = MemoryRepository()
    name, one = item(PAPER)
    one.fields["source"] = "aaa/w paper/1#.rdf"
    repository.publish({name: one}, START)
    client = Client(repository, redif_origin="https://ftp.example.org/RePEc")
    page = client.get("GetRecord", identifier=name, metadataPrefix=prefix)
    assert page.codes == []
    (origin,) = page.root.iter("{*}originDescription")
    assert (origin.get("harvestDate"), origin.get("altered")) == ("2026-03-01T11:00:00Z", "true")
    assert told(origin) == {
        "baseURL": ["https://ftp.example.org/RePEc"],
        "identifier": ["https://ftp.example.org/RePEc/aaa/w%20paper/1%23.rdf"],
        "datestamp": ["2012-11-09T17:13:50Z"],
        "metadataNamespace": ["urn:x-sheaf:redif:1"],
    }
    without = Client(repository, provenance_origin="https://a.cz/warc")
    page = without.get("GetRecord", identifier=name, metadataPrefix=prefix)
    assert not [*page.root.iter("{*}about")]


def test_an_article_in_amf() -> None:
    one = made("amf", ARTICLE)
    assert one.tag == f"{AMF}amf"
    (text,) = one
    assert (text.tag, text.get("id")) == (
        f"{AMF}text",
        "RePEc:aaa:journl:v:16:y:2011:i:02:p:239-242_00",
    )
    assert [etree.QName(e).localname for e in text] == [
        *("type", "title", "abstract", "abstract", "keywords", "keywords"),
        *("classification", "classification", "classification", "date"),
        *("displaypage", "displaypage", "serial", "file", "file", "hasauthor", "haseditor"),
        "ispartof",
    ]
    author = told(text.find(f"{AMF}hasauthor"))
    assert author["name"] == ["A & B <c>", "Uni"]
    assert author["givenname"] == ["A"]
    serial = told(text.find(f"{AMF}serial"))
    assert serial == {
        "journaltitle": ["J"],
        "volume": ["16"],
        "issue": ["02"],
        "startpage": ["239"],
        "endpage": ["242"],
        "issuedate": ["2011-04"],
    }
    assert text.find(f"{AMF}ispartof")[0].get("ref") == "RePEc:aaa:journl"


def ties(element: etree._Element) -> list[tuple[str, str | None, str | None]]:
    """Return each noun below a verb: the verb, its reference, and its name or title."""
    return [
        (
            etree.QName(verb).localname,
            noun.get("ref"),
            noun.findtext(f"{AMF}name") or noun.findtext(f"{AMF}title"),
        )
        for verb in element.iter("*")
        if etree.QName(verb).localname in VERBS
        for noun in verb
    ]


def test_a_person_in_amf_names_works_and_workplaces() -> None:
    data = PERSON.replace(
        b"Workplace-Name: None\n",
        b"""Author-Article: repec:BLA:kyklos:v:57
Author-Paper: repec:iza:izadps:dp1563
Author-Software: RePEc:boc:bocode:s1
Editor-Book: repec:aaa:rbooks:1
Editor-Series: repec:AAA:wpaper
Author-Paper: lost
Workplace-Name: Bowling Alley
Workplace-Institution: RePEc:EDI:derugus
""",
    )
    found = samples.one(data)
    assert found.structure["author-paper"] == [
        "RePEc:iza:izadps:dp1563",
        "lost",
        "RePEc:aaa:wpaper:98-01",
    ]
    assert found.structure["editor-series"] == ["RePEc:aaa:wpaper"]
    assert [(d.code, d.line) for d in found.diagnostics] == [("invalid-value", 8)]
    assert ties(made("amf", data)) == [
        ("ispartof", "RePEc:edi:derugus", "Bowling Alley"),
        ("isauthorof", "RePEc:iza:izadps:dp1563", None),
        ("isauthorof", "lost", None),
        ("isauthorof", "RePEc:aaa:wpaper:98-01", None),
        ("isauthorof", "RePEc:bla:kyklos:v:57", None),
        ("isauthorof", "RePEc:boc:bocode:s1", None),
        ("iseditorof", "RePEc:aaa:rbooks:1", None),
        ("iseditorof", "RePEc:aaa:wpaper", None),
    ]


def test_a_chapter_in_amf_is_part_of_its_book() -> None:
    data = CHAPTER.replace(
        b"In-Book:",
        b"Author-Person: pMAU1\nBook-Title: All Rugs\nProvider-Name: Press\n"
        b"Provider-Institution: RePEc:edi:pressus\nIn-Book:",
    )
    assert ties(made("amf", data)) == [
        ("hasauthor", "pmau1", "Lebowski, Maude"),
        ("haspublisher", "RePEc:edi:pressus", "Press"),
        ("ispartof", "RePEc:aaa:rbooks:1", "All Rugs"),
        ("ispartof", "RePEc:aaa:rchaps", None),
    ]
    titled = CHAPTER.replace(b"In-Book: RePEc:aaa:rbooks:1", b"Book-Title: All Rugs")
    assert ties(made("amf", titled))[1] == ("ispartof", None, "All Rugs")


NOUNS = {"text", "collection", "person", "organization"}
VERBS = {
    *("hasauthor", "haseditor", "haspublisher", "hasmaintainer", "isauthorof", "iseditorof"),
    *("ispartof", "haspart"),
}


@pytest.mark.parametrize("data", samples.GOOD)
def test_amf_is_of_nouns_that_verbs_relate(data: bytes) -> None:
    """The published rules: a verb has nouns, a noun has adjectives and verbs, and id or ref."""
    root = made("amf", data)
    assert {etree.QName(one).localname for one in root} <= NOUNS
    for one in root.iter("*"):
        name, above = etree.QName(one).localname, etree.QName(one.getparent()).localname
        assert one.tag.startswith(AMF)
        assert name == name.lower()
        if name in VERBS:
            assert above in NOUNS
            assert {etree.QName(noun).localname for noun in one} <= NOUNS
            assert len(one)
        elif name in NOUNS:
            assert above in VERBS | {"amf"}
            assert len({*one.attrib} & {"id", "ref"}) < 2
        elif one is not root:
            assert len(one) or one.text


def test_the_text_of_a_template_comes_as_it_is() -> None:
    data = ARTICLE.replace(b"One", b"One\n  indented\x0b\n\n# comment")
    one = made("redif", data)
    assert one.text == data.replace(b"\x0b", b"").decode().rstrip("\n")
    schema = "urn:x-sheaf:redif:1 https://oai.example.org/schema/redif.xsd"
    assert dict(one.attrib) == {
        "{http://www.w3.org/2001/XMLSchema-instance}schemaLocation": schema,
        "{http://www.w3.org/XML/1998/namespace}space": "preserve",
        "handle": "RePEc:aaa:journl:v:16:y:2011:i:02:p:239-242_00",
        "type": "ReDIF-Article 1.0",
        "valid": "true",
        "noted": "2012-11-09T17:13:50Z",
        "source": "aaa/x.rdf",
    }


def test_the_terms_and_the_source_are_told_once_there_are_templates() -> None:
    repository = MemoryRepository()
    repository.publish({"oai:example.org:01": capture("http://a.cz/")}, START)
    assert "RePEc" not in content(Client(repository).raw(path="/")).decode()
    name, one = item(PAPER)
    repository.publish({name: one}, START.replace(minute=30))
    page = content(Client(repository).raw(path="/")).decode()
    assert '<a href="http://repec.org">RePEc</a>' in page
    charts = content(Client(repository).raw(path="/charts")).decode()
    assert 'data-value="template"' in charts
    for settings, rights in (({}, []), ({"rights_statement": "Ask us"}, ["Ask us"])):
        page_ = Client(repository, **settings).get("Identify")
        assert [e.text for e in page_.root.iter(f"{DC}rights")] == [*rights, TEMPLATE.terms]


def test_odd_fields_are_passed_over() -> None:
    fields = {"author": ["a text", {"name": ["A", {"x": ["y"]}]}], "title": [{"a": ["b"]}]}
    assert redif_fields.texts(fields, "author", "name") == ["A"]
    assert redif_fields.titles(fields) == []
    assert redif_fields.texts(None, "author", "name") == []


@pytest.mark.parametrize(
    ("fields", "date"),
    [
        ({"creation-date": ["2012-05-05"], "year": ["2011"]}, "2012-05-05"),
        ({"creation-date": ["201205"]}, "2012-05"),
        ({"creation-date": ["May 2012"], "year": ["2011"]}, "2011"),
        ({"year": ["2011"], "month": ["July/August"]}, "2011"),
        ({"year": ["2011"], "month": ["Sept"]}, "2011-09"),
        ({"year": ["2011"], "month": ["7"]}, "2011-07"),
        ({"year": ["2011"], "month": ["13"]}, "2011"),
        ({"year": ["11"]}, None),
        ({}, None),
    ],
)
def test_dates(fields: dict[str, list[str]], date: str | None) -> None:
    assert redif_fields.date(fields) == date


def test_the_crosswalks_withstand_whatever_a_template_holds() -> None:
    formats, renderer = load(), Renderer()
    for row in formats.rows:
        if "template" in row.crosswalks:
            check.check(renderer, row, "template")


@pytest.mark.thorough
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no real ReDIF at {DATA}")
def test_real_templates_are_valid_in_every_format(repec: Repec) -> None:
    """Each page is checked against the official schemas and ours (client.get)."""
    repec.replay(DATA / "tarballs" / "RePEc_2026-04-16.tar.gz")
    repec.replay(DATA / "files", is_tree=True)
    repec.publish()
    with repec.asked(pages_records=200) as client:
        sizes = set()
        for prefix in ("oai_dc", "redif", "amf"):
            pages = [*client.pages(metadataPrefix=prefix)]
            records = [r for page in pages for r in page.root.iter("{*}record")]
            sizes.add(len(records))
            for record in records:
                deleted = record.find("{*}header").get("status") == "deleted"
                assert deleted or len(record.find("{*}metadata")) == 1
                if prefix == "oai_dc" and not deleted:
                    rights = [e.text for e in record.iter(f"{DC}rights")]
                    assert rights[-1] == TEMPLATE.terms
    assert sizes.pop() > 600
    assert not sizes


def test_stored_markup_is_shown_as_plain_text(repec: Repec) -> None:
    data = b"""Template-Type: ReDIF-Paper 1.0
Author-Name: Josef Kova&#269;
Title: <i>Rugs</i> &amp;amp; <b>tables</b>, p<0.05
Abstract: <p>First.</p><p>Second: a &lt; b.</p>
Keywords: R&amp;D; rugs
Handle: RePEc:aaa:wpaper:7
"""
    repec.publish_tree(x=data)
    name = PREFIX + "RePEc:aaa:wpaper:7"
    with repec.asked() as client:
        dc, amf, redif = (
            client.get("GetRecord", identifier=name, metadataPrefix=prefix).root
            for prefix in ("oai_dc", "amf", "redif")
        )
    assert dc.findtext(f".//{DC}title") == "Rugs & tables, p<0.05"
    assert dc.findtext(f".//{DC}creator") == amf.findtext(f".//{AMF}name") == "Josef Kova\u010d"
    assert dc.findtext(f".//{DC}description") == "First. Second: a < b."
    assert [one.text for one in dc.iter(f"{DC}subject")] == ["R&D", "rugs"]
    assert amf.findtext(f".//{AMF}abstract") == "First. Second: a < b."
    assert redif.findtext(".//{*}redif") == data.decode().rstrip()
