"""Landing pages: what they say in their head, and pages that are made to be slow."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources.datasets.platforms.pages.head import read_biblio

URL = "https://example.org/set/1"


def said(head: str, **more: Any) -> dict[str, Any]:
    return read_biblio(f"<!DOCTYPE html><html><head>{head}</head></html>".encode(), URL, **more)


def test_highwire_tags_are_read() -> None:
    found = said(
        '<meta name="citation_title" content="Hives &amp; scales">'
        '<META CONTENT="Včela, Jana" NAME="citation_author" />'
        "<meta name='citation_author' content='Roj, P.'>"
        '<meta name="citation_publication_date" content="2024/05/06">'
        '<meta name="citation_doi" content="https://doi.org/10.5072/ABC">'
        '<meta name="generator" content="Dataverse 6"><link rel="canonical" href="/set/1?v=2">'
    )
    assert found == {
        "title": "Hives & scales",
        "contrib_names": ["Včela, Jana", "Roj, P."],
        "release_date": "2024-05-06",
        "doi": "10.5072/abc",
        "generator": "Dataverse 6",
        "links": {"canonical": ["https://example.org/set/1?v=2"]},
    }


def test_dublin_core_and_open_graph_are_read() -> None:
    found = said(
        '<meta name="DC.identifier" content="doi:10.5072/ABC"/><meta name="DC.creator" content="V">'
        '<meta property="og:title" content="Hives"><meta name="DC.date" content="2024">'
        '<meta name="DC.publisher" content="Press">'
    )
    assert found == {
        "title": "Hives",
        "contrib_names": ["V"],
        "release_date": "2024",
        "doi": "10.5072/abc",
        "publisher": "Press",
    }


def test_json_ld_of_a_dataset_is_read() -> None:
    found = said(
        '<script type="application/ld+json">{"@graph": [{"@type": "WebSite"}, {"@type": '
        '["Dataset"], "@id": "https://doi.org/10.5072/ABC", "name": "Hives", '
        '"datePublished": "2024-05-06", "creator": [{"name": "V"}, "W"]}]}</script>'
    )
    assert found.pop("json_ld")[0]["name"] == "Hives"
    assert found == {
        "title": "Hives",
        "release_date": "2024-05-06",
        "doi": "10.5072/abc",
        "contrib_names": ["V"],
    }


@pytest.mark.parametrize(("second", "doi"), [("10.5072/ABC", "10.5072/abc"), ("10.5072/X", None)])
def test_several_datasets_name_the_page_only_if_they_are_the_same(
    second: str, doi: str | None
) -> None:
    nodes = [
        {"@type": kind, "name": kind, "identifier": f"https://doi.org/{one}"}
        for kind, one in (("Dataset", "10.5072/abc"), ("SoftwareSourceCode", second))
    ]
    found = said(f'<script type="application/ld+json">{json.dumps(nodes)}</script>')
    assert (found.get("doi"), len(found["json_ld"])) == (doi, 2)


def test_signposts_of_the_header_are_links() -> None:
    header = '<https://doi.org/10.5072/ABC>; rel="cite-as", </b>; rel=item; type="text/csv"'
    assert said("", link=header)["links"] == {
        "cite-as": ["https://doi.org/10.5072/ABC"],
        "item": ["https://example.org/b"],
    }


def test_comments_say_nothing() -> None:
    hidden = '<meta name="citation_doi" content="10.5072/hidden">'
    shown = '<meta name="citation_title" content="a > b">'
    assert said(f"<!-- {hidden} -->{shown}<!-- {hidden}") == {"title": "a > b"}


@pytest.mark.parametrize(
    ("declared", "kind", "coding"),
    [
        ('<meta charset="iso-8859-2">', "", "iso-8859-2"),
        ("", "text/html; charset=iso-8859-2", "iso-8859-2"),
        ('<meta charset="iso-8859-1">', "text/html;charset=ISO-8859-2", "iso-8859-2"),
        ('<meta charset="idna">', "text/html; charset=\xff", "utf-8"),
        ("", "", "iso-8859-2"),
    ],
)
def test_charsets_are_heard_or_found_as_those_of_archived_pages(
    declared: str, kind: str, coding: str
) -> None:
    body = f'{declared}<meta name="citation_title" content="Včela">'
    assert read_biblio(body.encode(coding), URL, kind)["title"] == "Včela"


@given(st.binary(max_size=300))
def test_any_bytes_are_read(body: bytes) -> None:
    assert isinstance(
        read_biblio(b"<meta " + body + b"<script type=application/ld+json>", URL), dict
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "unit",
    [
        "<meta ",
        '<meta a="',
        "<link a='b' ",
        "<!--",
        "<script ",
        "<meta a=b ",
        "<",
        "<script type=application/ld+json>",
        "<script type=application/ld+json></script",
        "<script type=application/ld+json>[</script>",
    ],
)
def test_what_is_made_to_be_slow_is_not(unit: str) -> None:
    # What grows by squares takes hours with a page of that size.
    body = (unit * ((4 << 20) // len(unit))).encode()
    assert read_biblio(body, URL) == {}
