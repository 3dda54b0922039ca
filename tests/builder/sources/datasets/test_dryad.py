"""Dryad: a dataset by its DOI, its newest version, and files in pages that must all be there."""

from typing import Any

from builder.sources.datasets.item import Person, Related
from builder.sources.datasets.platforms.dryad import Dryad
from tests.builder.sources.datasets.pages import Site, cases
from tests.builder.sources.datasets.samples import (
    DRYAD,
    DRYAD_FILES,
    SHA256,
    dryad,
    dryad_file,
    dryad_page,
)

DOI = "10.5061/dryad.h0n3y"
PAGE = f"https://datadryad.org/dataset/doi:{DOI}"
SECOND = "https://datadryad.org/api/v2/versions/231/files?page=2"
TWO = {DRYAD: dryad(), DRYAD_FILES: dryad_page([dryad_file(1), dryad_file(2)], 2)}
SITE = Site(Dryad(), PAGE, frozenset(("datadryad.org",)), TWO)
item, refused = SITE.item, SITE.refused
FORMS = [
    (f"https://datadryad.org/stash/dataset/doi:{DOI}", None),
    ("https://datadryad.org/dataset/doi%3A10.5061%2Fdryad.h0n3y", None),
    (f"https://doi.org/{DOI}", DOI),
]


def test_a_dataset_is_asked_for_by_the_whole_doi() -> None:
    found = item()
    assert (found.platform_id, found.version, found.platform_status) == (DOI, "3", "success")
    assert [(file.path, file.size, file.sha256) for file in found.files] == [
        ("hive1.csv", 11, SHA256),
        ("hive2.csv", 12, SHA256),
    ]
    assert found.files[0].platform_url == "https://datadryad.org/api/v2/files/1/download"


def test_a_dataset_is_described() -> None:
    said = item().description
    assert (said.title, said.abstract) == ("Data from: honey", 'Honey and "bees".')
    assert said.creators == (
        Person(
            name="Medová, Jana",
            given="Jana",
            family="Medová",
            orcid="0000-0002-1825-0097",
            affiliations=("Brno University",),
        ),
    )
    assert (said.publisher, said.published, said.doi) == ("Dryad", "2020-01-02", DOI)
    assert said.licences[0].spdx == "CC0-1.0"
    assert said.related == (Related("10.1234/paper", "DOI", "IsSupplementTo"),)


def test_without_a_token_its_files_are_told_and_withheld() -> None:
    found = Site(Dryad(), PAGE).item(TWO)
    assert found.platform_status == "needs-token"
    assert [file.path for file in found.withheld] == ["hive1.csv", "hive2.csv"]
    assert found.files == ()


def test_files_in_pages_are_gathered_and_a_short_list_is_refused() -> None:
    first = dryad_page([dryad_file(1)], 2, "/api/v2/versions/231/files?page=2")
    whole = {DRYAD: dryad(), DRYAD_FILES: first, SECOND: dryad_page([dryad_file(2)], 2)}
    assert len(item(whole).files) == 2
    assert refused({**whole, SECOND: dryad_page([], 2)})[0] == "incomplete-manifest"
    short = {**whole, DRYAD_FILES: dryad_page([dryad_file(1)], 2)}
    assert refused(short)[0] == "incomplete-manifest"


def test_files_may_be_deleted_or_withheld_or_have_no_digest() -> None:
    files = [
        dryad_file(1, status="deleted"),
        dryad_file(2, _links={}),
        dryad_file(3, digest="1adGSDHSG232776e7", digestType="md5"),
        dryad_file(4, digest="0123456789abcdef0123456789abcdef", digestType="md5"),
    ]
    found = item({DRYAD: dryad(), DRYAD_FILES: dryad_page(files, 4)})
    assert [file.path for file in found.withheld] == ["hive2.csv"]
    assert [(file.path, file.md5, file.sha256) for file in found.files] == [
        ("hive3.csv", None, None),
        ("hive4.csv", "0123456789abcdef0123456789abcdef", None),
    ]


API = "https://datadryad.org/api/v2"
LIST = f"{API}/datasets/doi%3A10.5061%2Fdryad.h0n3y/versions?per_page=100"


def version(id_: int, number: int, **more: Any) -> dict[str, Any]:
    """A version as it stands alone and in the list."""
    return {
        "_links": {
            "self": {"href": f"/api/v2/versions/{id_}"},
            "stash:dataset": {"href": "/api/v2/datasets/doi%3A10.5061%2Fdryad.h0n3y"},
        },
        "title": f"Honey, version {number}",
        "versionNumber": number,
        "visibility": "public",
        **more,
    }


def versions() -> dict[str, Any]:
    """A dataset of three versions, of which the second was never public, in two pages."""
    links = dryad()["_links"] | {
        "stash:versions": {"href": LIST.partition("?")[0].removeprefix("https://datadryad.org")}
    }
    first, second = version(18, 1), version(32, 2, visibility="restricted")
    pages = [
        {
            "_links": {"next": {"href": f"{LIST}&page=2"}},
            "_embedded": {"stash:versions": [first, second]},
        },
        {"_links": {}, "_embedded": {"stash:versions": [version(231, 3)]}},
    ]
    return {
        **TWO,
        DRYAD: dryad(_links=links),
        LIST: pages[0],
        f"{LIST}&page=2": pages[1],
        f"{API}/versions/18": first,
        f"{API}/versions/18/files?per_page=100": dryad_page([dryad_file(7)], 1),
    }


def test_a_version_is_asked_for_by_its_url_and_has_its_own_files() -> None:
    found = item(versions(), f"{API}/versions/18")
    assert (found.platform_id, found.version, found.platform_status) == (DOI, "1", "success")
    assert [file.path for file in found.files] == ["hive7.csv"]
    assert (found.description.title, found.description.version) == ("Honey, version 1", "1")
    assert [licence.spdx for licence in found.description.licences] == ["CC0-1.0"]
    assert found.description.related[-1] == Related(
        f"{API}/versions/231", "URL", "IsPreviousVersionOf"
    )


def test_the_newest_version_names_the_others_that_are_public() -> None:
    older = Related(f"{API}/versions/18", "URL", "IsNewVersionOf")
    assert item(versions()).description.related[1:] == (older,)


def test_a_version_of_another_dataset_or_of_one_that_is_gone_is_refused() -> None:
    gone = versions() | {DRYAD: dryad(curationStatus="Withdrawn")}
    assert item(gone, f"{API}/versions/18").platform_status == "platform-gone"
    lost = versions() | {f"{API}/versions/18": version(18, 1, _links={})}
    assert refused(lost, f"{API}/versions/18")[0] == "platform-bad-response"
    assert refused(versions(), f"{API}/versions/99")[0] == "platform-404"


CLOSED = cases(
    "given status until",
    [
        ({"curationStatus": "Withdrawn"}, "platform-gone", None),
        (
            {"curationStatus": "Embargoed", "publicationDate": "2031-01-02"},
            "platform-embargoed",
            "2031-01-02",
        ),
        ({"curationStatus": "Embargoed", "publicationDate": None}, "platform-embargoed", None),
        ({"visibility": "restricted"}, "platform-restricted", None),
        ({"title": None, "message": "cannot be viewed"}, "platform-restricted", None),
    ],
    make=lambda given: {DRYAD: dryad(**given)},
)


REFUSED = cases(
    "url code",
    [
        ("https://datadryad.org/downloads/file_stream/42", "file-level"),
        ("https://datadryad.org/stash/about", "no-dataset"),
    ],
    status="platform-scope",
)


# It is not followed to another host.
AWAY = dryad_page([dryad_file(1)], 2, "https://example.org/api/v2/versions/231/files?page=2")
REFUSED += cases(
    "documents status",
    [
        ({DRYAD: dryad(), DRYAD_FILES: AWAY}, "platform-bad-response"),
        ({DRYAD: dryad(identifier="doi:10.5061/dryad.other")}, "platform-error"),
        ({DRYAD: dryad(_links={})}, "platform-bad-response"),
        ({DRYAD: dryad(), DRYAD_FILES: {"total": 1}}, "platform-bad-response"),
        (
            {DRYAD: dryad(), DRYAD_FILES: dryad_page([dryad_file(1)], 1) | {"total": None}},
            "platform-bad-response",
        ),
        ({}, "platform-404"),
    ],
)
