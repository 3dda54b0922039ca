"""Citations in BibTeX, RIS and tags: what is written is read back as it was, whatever the text."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.kinds import KINDS, find_kind
from functions.kinds.datasets import FILESET
from functions.kinds.kind import CitedWork, LinkedName, find_doi, link_identifier, name_licence
from functions.oai.render.render import Renderer
from functions.reading.repository import PublishedRecord
from functions.site.record import citation
from functions.snapshot import instant
from tests.functions.oai.client import Client, Clock, content
from tests.functions.reading.memory import Item, MemoryRepository, capture
from tests.functions.site.crawl import Crawl

NAME = "oai:example.org:f"
RENDERER = Renderer()
RIGHTS = "http://rightsstatements.org/vocab/InC/1.0/"
PAPER: Mapping[str, Any] = {
    "handle": "RePEc:aaa:wpaper:1",
    "type": "ReDIF-Paper 1.0",
    "series_name": "Working papers",
    "fields": {
        "author": [
            {"name": ["Němcová, Božena"], "person": ["RePEc:per:1820-02-04:bozena"]},
            {"name": ["Bread and Butter"]},
        ],
        "title": ["Prices & {wages}: 100 %"],
        "abstract": ["Of <b>bread</b>."],
        "creation-date": ["2025-11"],
        "keywords": ["bread; wages"],
        "classification-jel": ["D12"],
        "doi": ["https://doi.org/10.1234/a_b"],
        "file": [{"url": ["https://a.org/1.pdf"], "format": ["application/pdf"]}],
    },
}
DATASET: Mapping[str, Any] = {
    "title": "Hives",
    "creators": [{"name": "Wax, Ida", "orcid": "0000-0002-1825-0097"}],
    "published": "2024-07-01",
    "abstract": "Three hives.",
    "subjects": ["honey"],
    "licences": [{"url": "https://creativecommons.org/licenses/by-nc/4.0/"}],
    "doi": "10.5072/hives",
    "versions": [
        {"identifier": "oai:example.org:g", "version": "2", "relation": "IsPreviousVersionOf"}
    ],
    "related": [
        {"identifier": "10.5072/paper", "identifier_type": "DOI", "relation": "IsSupplementTo"}
    ],
    "files": [{"path": "a.png", "key": "k", "mimetype": "image/png", "bytes": 9}],
}
DUBLIN_CORE = (
    '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/"><!-- <dc:title>Not this</dc:title> -->'
    "<dc:title>Bees</dc:title><dc:creator>Novák, Jan</dc:creator>"
    "<dc:date>2020-02-01T00:00:00Z</dc:date><dc:date>1998-05</dc:date>"
    "<dc:description><![CDATA[<p>Of bees.</p>]]></dc:description>"
    "<dc:subject>honey &amp; wax</dc:subject>"
    f"<dc:rights>{RIGHTS}</dc:rights>"
    "<dc:identifier>doi:10.1234/bees</dc:identifier></oai_dc:dc>"
)
MARC = (
    '<record xmlns="http://www.loc.gov/MARC21/slim"><datafield tag="100" ind1="1" ind2=" ">'
    '<subfield code="a">Novák, Jan,</subfield></datafield><datafield tag="245" ind1="1" ind2="0">'
    '<subfield code="a">Bees /</subfield></datafield><datafield tag="260" ind1=" " ind2=" ">'
    '<subfield code="b">Včela,</subfield><subfield code="c">c1998.</subfield></datafield></record>'
)
UNESCAPED = {
    r"\textbackslash{}": "\\",
    r"\textbraceleft{}": "{",
    r"\textbraceright{}": "}",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    **{f"\\{sign}": sign for sign in "$&%#_"},
}


def read_bibtex(text: str) -> dict[str, str]:
    """Return the type, the key and the fields of an entry, by the braces alone, as BibTeX does."""
    head = re.match(r"@(\w+)\{([^,{}\s]+),\n", text)
    assert head is not None, text
    fields, place = {"": head[1], "key": head[2]}, head.end()
    while text[place] != "}":
        start = re.compile(r"  (\w+) = \{").match(text, place)
        assert start is not None, text[place:]
        assert start[1] not in fields
        end, depth = start.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        fields[start[1]] = text[start.end() : end - 1]
        assert text[end : end + 2] == ",\n"
        place = end + 2
    assert text[place:] == "}\n"
    return fields


def unescape(value: str) -> str:
    marks = "|".join(map(re.escape, UNESCAPED))
    return re.sub(marks, lambda match: UNESCAPED[match[0]], value)


def published(kind: str, fields: Mapping[str, Any]) -> PublishedRecord:
    columns = {column.name: None for column in KINDS[kind].columns}
    stamp = instant.from_text("2026-01-01T00:00:00Z")
    return PublishedRecord(1, NAME, kind, stamp, False, (), {**columns, **fields})


@given(st.text(), st.text(), st.lists(st.text(), max_size=3), st.text())
def test_any_text_is_read_back(title: str, abstract: str, authors: list[str], source: str) -> None:
    def plain(text: str) -> str:
        return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", text).split())

    people = [{"name": name} for name in authors]
    fields = {"title": title, "abstract": abstract, "creators": people, "publisher": source}
    record = published("fileset", fields)
    cited = citation.describe(record, title, "https://a.org/{x}\\", "")
    entry = read_bibtex(RENDERER.page("cite.bib", cited).decode())
    for name, text in (("title", title), ("abstract", abstract), ("publisher", source)):
        assert unescape(entry.get(name, "")) == plain(text)
    assert entry["url"] == "https://a.org/%7Bx%7D%5C"
    lines = RENDERER.page("cite.ris", cited).decode().split("\n")
    assert [lines[0], *lines[-2:]] == ["TY  - DATA", "ER  - ", ""]
    assert all(re.match("[A-Z][A-Z0-9]  - ", line) for line in lines[:-1])
    names = [line[6:] for line in lines if line.startswith("AU  - ")]
    assert names == [plain(name) for name in authors if plain(name)]
    assert [line[6:] for line in lines if line.startswith("TI  - ")] == [plain(title)][
        : bool(plain(title))
    ]


def site(kind: str, fields: Mapping[str, Any], **settings: Any) -> Client:
    repository = MemoryRepository()
    record = published(kind, fields)
    hour = instant.from_text("2026-03-01T11:30:00Z")
    repository.publish({NAME: Item((), kind, record.fields)}, hour)
    return Client(repository, Clock(), repository_name="An archive", **settings)


def test_a_paper_is_cited_alike_everywhere() -> None:
    client = site("template", PAPER)
    reply = client.raw(f"id={NAME}", path="/cite.bib")
    assert reply["headers"]["Content-Type"].startswith("application/x-bibtex")
    assert reply["headers"]["Content-Disposition"] == 'attachment; filename="f.bib"'
    entry = read_bibtex(content(reply).decode())
    assert entry[""] == "techreport"
    assert entry["author"] == "Němcová, Božena and {Bread and Butter}"
    assert entry["title"] == r"Prices \& \textbraceleft{}wages\textbraceright{}: 100 \%"
    assert (entry["year"], entry["month"], entry["series"]) == ("2025", "11", "Working papers")
    assert entry["doi"] == "10.1234/a_b"
    assert entry["keywords"] == "bread, wages, D12"
    ris = content(client.raw(f"id={NAME}", path="/cite.ris")).decode()
    assert "TY  - RPRT\nTI  - Prices & {wages}: 100 %\n" in ris
    assert "DA  - 2025/11\n" in ris
    page = Crawl(client).read(f"/record/{NAME}")
    tags = [(meta.get("name"), meta.get("content")) for meta in page.tree.iter("meta")]
    assert ("citation_author", "Bread and Butter") in tags
    assert ("citation_publication_date", "2025/11") in tags
    assert ("citation_doi", "10.1234/a_b") in tags
    assert ("citation_keywords", "bread; wages; D12") in tags
    assert "November 2025 · Working papers" in page.text


def test_a_dataset_shows_its_licence_versions_and_images() -> None:
    client = site("fileset", DATASET, content_serve=True)
    page = Crawl(client).read(f"/record/{NAME}")
    assert "There is a newer version of this dataset: Version 2" in page.text
    assert "Is supplement to doi:10.5072/paper" in page.text
    assert "CC BY-NC 4.0" in page.text
    links = {*page.links()}
    assert {"https://orcid.org/0000-0002-1825-0097", "https://doi.org/10.5072/paper"} <= links
    assert "https://creativecommons.org/licenses/by-nc/4.0/" in links
    (image,) = page.tree.iter("img")
    assert (image.get("loading"), image.get("alt")) == ("lazy", "")
    assert "file=a.png" in str(image.get("src"))
    closed = Crawl(site("fileset", DATASET)).read(f"/record/{NAME}")
    assert not [*closed.tree.iter("img")]


def test_an_image_of_the_web_is_shown_small() -> None:
    fields = {**capture("http://a.cz/i.png").fields, "content_mime_type": "image/png"}
    fields["fetch_date"] = "2007-11-05T00:00:00Z"
    for settings, count in (({"content_serve": True}, 1), ({}, 0)):
        page = Crawl(site("capture", fields, **settings)).read(f"/record/{NAME}")
        assert len([*page.tree.iter("img")]) == count
    other = {"content_serve": True, "content_address": ["https://other.org/{timestamp}/{url}"]}
    assert not [*Crawl(site("capture", fields, **other)).read(f"/record/{NAME}").tree.iter("img")]


@pytest.mark.parametrize("metadata", [DUBLIN_CORE, MARC])
def test_a_harvested_record_says_who_when_and_what(metadata: str) -> None:
    fields = {"records": [{"prefix": "x", "namespace": "", "metadata": metadata}], "id": "1"}
    work = find_kind("harvested").work(fields)
    assert [creator.name for creator in work.creators] == ["Novák, Jan"]
    assert "1998" in work.date
    assert find_kind("harvested").title(fields) == "Bees"
    if metadata == DUBLIN_CORE:
        assert (work.date, work.abstract) == ("1998-05", "Of bees.")
        assert work.subjects == ("honey & wax",)
        assert work.licences == (LinkedName(RIGHTS, RIGHTS),)
        assert work.doi == "10.1234/bees"


def test_a_large_record_is_read_once_and_a_broken_one_not_at_all() -> None:
    many = "".join(f"<a><![CDATA[]]>{n}</a>" for n in range(50_000))  # a search for ends took hours
    entry = {"prefix": "x", "metadata": f"<r><title>Bees</title>{many}</r>"}
    assert find_kind("harvested").title({"records": [entry], "id": "1"}) == "Bees"
    entry = {"prefix": "x", "metadata": "<r><title>Bees</title>"}
    assert find_kind("harvested").title({"records": [entry], "id": "1"}) == "1"


def test_the_card_of_a_harvested_record_names_its_rights() -> None:
    records = [{"prefix": "oai_dc", "namespace": "", "metadata": DUBLIN_CORE}]
    page = Crawl(site("harvested", {"records": records, "id": "1"})).read(f"/record/{NAME}")
    assert "Licences In Copyright" in page.text
    assert "Novák, Jan May 1998" in page.text
    assert "Novák, Jan (1998). “Bees”. An archive. https://doi.org/10.1234/bees." in page.text


def test_a_declared_field_of_an_own_record_comes_first() -> None:
    records = [{"prefix": "oai_dc", "namespace": "", "metadata": DUBLIN_CORE}]
    work = find_kind("record").work({"records": records, "creators": ["Doe, Jane"], "date": "1999"})
    assert (work.creators, work.date) == ((LinkedName("Doe, Jane"),), "1999")
    assert work.abstract == "Of bees."
    assert find_kind("record").work({}) == CitedWork()


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("https://creativecommons.org/licenses/by-sa/3.0/cz/", "CC BY-SA 3.0 CZ"),
        ("http://creativecommons.org/publicdomain/zero/1.0/legalcode", "CC0 1.0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "Public Domain Mark 1.0"),
        ("https://a.org/terms", "https://a.org/terms"),
        ("Ask us", "Ask us"),
    ],
)
def test_a_licence_has_its_name(uri: str, name: str) -> None:
    assert name_licence(uri) == name


def test_identifiers_lead_to_what_they_name() -> None:
    assert find_doi(["x", "http://dx.doi.org/10.1234/x"]) == "10.1234/x"
    assert link_identifier("DOI: 10.1234/x").link == "https://doi.org/10.1234/x"
    assert link_identifier("hdl:1721.1/26698").link == "https://hdl.handle.net/1721.1/26698"
    assert link_identifier("urn:isbn:1") == LinkedName("urn:isbn:1")


def test_what_is_gone_or_unknown_is_not_cited() -> None:
    client = site("fileset", {column.name: None for column in FILESET.columns})
    assert client.raw("id=none", path="/cite.bib")["statusCode"] == 404
    entry = read_bibtex(content(client.raw(f"id={NAME}", path="/cite.bib")).decode())
    assert entry["title"] == NAME
