"""JSON-LD of pages: where datasets are found, scripts that are broken, and references."""

import json
from typing import Any

import pytest

from builder.sources.datasets.item import Related
from builder.sources.datasets.platforms.pages.head import read_datasets
from builder.sources.datasets.platforms.pages.schema_org import (
    creators,
    describe,
    file_path,
    list_files,
)

PAGE = "https://example.org/set/1"
HIVES = {"@type": "Dataset", "@id": "#hives", "name": "Hives"}


def script(*documents: Any) -> str:
    kind = '<script type="application/ld+json">'
    return "".join(
        f"{kind}{one if isinstance(one, str) else json.dumps(one)}</script>" for one in documents
    )


@pytest.mark.parametrize(
    "document",
    [
        HIVES,
        [{"@type": "WebSite"}, [HIVES]],
        {"@graph": [{"@type": "Person"}, HIVES]},
        {"@type": "WebPage", "mainEntity": HIVES},
        {"@type": "DataCatalog", "dataset": [HIVES]},
        {"@type": "ItemList", "itemListElement": [{"@type": "ListItem", "item": HIVES}]},
        {**HIVES, "@type": ["schema:Dataset", "x"]},
        {**HIVES, "@type": "http://schema.org/Dataset", "hasPart": {**HIVES, "name": "A part"}},
    ],
)
def test_a_dataset_is_found_in_each_form(document: Any) -> None:
    assert [one["name"] for one in read_datasets(script(document, document))] == ["Hives"]


@pytest.mark.parametrize(
    "written",
    [
        '{"@type": "Dataset", "name": "Hives",}',
        '{"@type": "Dataset", "name": "Hives", "keywords": ["a",\n]}',
        '{"@type": "Dataset", "name": "Hives", "description": "two\nlines"}',
        '//<![CDATA[\n{"@type": "Dataset", "name": "Hives"}\n//]]>',
        '{"@type": "Dataset", "name": "Hives"};',
    ],
)
def test_scripts_with_common_faults_are_repaired(written: str) -> None:
    assert [one["name"] for one in read_datasets(script("{", written, "nonsense"))] == ["Hives"]


@pytest.mark.parametrize(
    "document",
    [
        {"@type": "Article", "citation": HIVES},
        {"@type": "Organization"},
        {"@type": 1},
        "[" * 5000,
        {"a": {"mainEntity": HIVES}},
    ],
)
def test_other_documents_describe_no_dataset(document: Any) -> None:
    assert read_datasets(script(document)) == []


def test_references_to_other_nodes_of_the_page_are_followed() -> None:
    graph = [
        {
            **HIVES,
            "creator": {"@id": "_:b1"},
            "distribution": [{"@id": "a.csv"}, {"@id": "nowhere"}],
        },
        {"@id": "_:b1", "@type": "Person", "name": "Jana"},
        {"@id": "a.csv", "contentUrl": "a.csv", "contentSize": "12 B"},
    ]
    (found,) = read_datasets(script({"@graph": graph}))
    assert [one.name for one in creators(found)] == ["Jana"]
    (file,) = list_files(found, PAGE)
    assert file.path == "a.csv"
    assert (file.size, file.platform_url) == (12, "https://example.org/set/a.csv")


def test_a_small_page_becomes_no_huge_description() -> None:
    many = [{**HIVES, "@id": f"#{n}", "distribution": [{"@id": "#a"}] * 100} for n in range(300)]
    page = script({"@graph": [*many, {"@id": "#a", "contentUrl": "a.csv", "x": "x" * 100_000}]})
    found = read_datasets(page)
    assert len(found) == 300
    assert len(json.dumps(found)) < 3 * (4 << 20)
    assert [file.path for file in list_files(found[0], PAGE)] == ["a.csv"]


def test_files_have_what_the_distribution_says() -> None:
    sha256, md5 = "AB" * 32, "cd" * 16
    dataset = {
        "distribution": [
            {
                "contentUrl": "/f/1",
                "name": "data/a.csv",
                "contentSize": "1024",
                "sha256": sha256,
                "encodingFormat": ["CSV", "text/csv;header=present"],
            },
            {
                "contentUrl": ["/f/b.zip", "/f/b.zip"],
                "contentSize": "1.5 MB",
                "md5": md5,
                "sha256": "?",
            },
            {"contentUrl": PAGE, "encodingFormat": "text/html"},
            {"name": "member.csv", "containedIn": "b.zip"},
            {"url": "https://other.example.net/c/content"},
            "/d.nc",
        ]
    }
    found = [
        (file.path, file.platform_url, file.size, file.sha256, file.md5, file.mimetype)
        for file in list_files(dataset, PAGE)
    ]
    assert found == [
        ("data/a.csv", "https://example.org/f/1", 1024, sha256.lower(), None, "text/csv"),
        ("b.zip", "https://example.org/f/b.zip", None, None, md5, None),
        ("content", "https://other.example.net/c/content", None, None, None, None),
        ("d.nc", "https://example.org/d.nc", None, None, None, None),
    ]


@pytest.mark.parametrize(
    ("url", "label", "path"),
    [
        ("https://e.org/files/a%20b.csv/content", None, "a b.csv"),
        ("https://e.org/a.csv?download=1", "Download the table", "a.csv"),
        ("https://e.org/bitstream/7", "Tables / 2024", "Tables - 2024"),
        ("https://e.org/bitstream/7", "x.csv", "x.csv"),
        ("https://e.org/", None, "index"),
    ],
)
def test_a_file_is_named_by_what_looks_like_a_name(url: str, label: Any, path: str) -> None:
    assert file_path(url, label) == path


def test_a_description_is_read_whatever_the_types_of_its_values() -> None:
    found = describe(
        {
            "@type": "Dataset",
            "name": ["Hives", "Úly"],
            "identifier": {"@type": "PropertyValue", "value": "doi:10.5072/ABC"},
            "creator": [
                {
                    "@type": "Person",
                    "name": "Jana Medová",
                    "givenName": "Jana",
                    "familyName": "Medová",
                    "sameAs": ["https://orcid.org/0000-0002-1825-0097"],
                    "affiliation": [{"name": "Brno"}, "Brno"],
                },
                {"@type": "Organization", "name": "Beekeepers"},
                "Včelař, Jan",
            ],
            "keywords": "bees, honey",
            "inLanguage": {"@type": "Language", "alternateName": "cs"},
            "license": [
                {"@type": "CreativeWork", "url": "https://creativecommons.org/licenses/by/4.0/"}
            ],
            "version": 2,
            "publisher": [{"name": "Press"}],
            "dateCreated": "2024-05",
            "description": ["<p>One</p>", "two"],
            "isBasedOn": "https://doi.org/10.5072/base",
        }
    )
    assert (found.title, found.doi, found.version) == ("Hives", "10.5072/abc", "2")
    assert [
        (one.name, one.orcid, one.affiliations, one.organisation) for one in found.creators
    ] == [
        ("Medová, Jana", "0000-0002-1825-0097", ("Brno",), False),
        ("Beekeepers", None, (), True),
        ("Včelař, Jan", None, (), False),
    ]
    assert (found.subjects, found.language) == (("bees", "honey"), "cs")
    assert [one.spdx for one in found.licences] == ["CC-BY-4.0"]
    assert (found.publisher, found.published, found.abstract) == ("Press", "2024-05", "One\ntwo")
    assert found.related == (Related("10.5072/base", "DOI", "IsDerivedFrom"),)
