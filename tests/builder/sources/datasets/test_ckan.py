"""CKAN: files that it keeps, files that it links to, and pages that are no files."""

from typing import Any

import pytest

from builder.sources.datasets.item import FilesetPlatformItem, Person, Related
from builder.sources.datasets.platforms.ckan import Ckan
from tests.builder.sources.datasets.pages import Site, cases, real
from tests.builder.sources.datasets.samples import CKAN, MD5, SHA1, SHA256, ckan, ckan_resource

PAGE = "https://demo.ckan.org/dataset/honey-prices"
GENERATED = b'<html><head><meta name="generator" content="ckan 2.10.1" /></head>'
SITE = Site(Ckan(), PAGE, whole={CKAN: ckan()})


def item(given: Any, url: str = PAGE, api: str = CKAN) -> FilesetPlatformItem:
    return SITE.item({api: given}, url)


@pytest.mark.parametrize(
    ("url", "body", "known"),
    [
        (PAGE, None, True),
        ("https://data.example.cz/dataset/honey-prices", None, False),
        ("https://data.example.cz/dataset/honey-prices", b"<html>a shop</html>", False),
        ("https://data.example.cz/cs/dataset/honey-prices", GENERATED, True),
        ("https://data.example.cz/about", GENERATED, False),
    ],
)
def test_it_is_known_by_its_host_or_by_what_made_the_page(
    url: str, body: bytes | None, known: bool
) -> None:
    assert SITE.matches(url, body=body) is known


@pytest.mark.parametrize("root", ["https://demo.ckan.org", "https://data.example.cz/data/cs"])
def test_a_dataset_has_the_files_that_are_kept_and_is_related_to_the_pages(root: str) -> None:
    api = f"{root}/api/3/action/package_show?id=honey-prices"
    found = item(ckan(), f"{root}/dataset/honey-prices", api)
    (file,) = found.files
    assert (file.path, file.size, file.md5) == ("prices.csv", 143, MD5)
    assert found.platform_id == "00000000-0000-4000-8000-000000004711"
    said = found.description
    assert said.creators == (Person(name="Medová, Jana", given="Jana", family="Medová"),)
    assert said.title == "Prices of honey"
    assert (said.publisher, said.published) == ("City of Brno", "2018-11-01")
    assert said.related == (Related("https://example.org/bees", "URL", "References"),)
    assert (said.subjects, said.licences[0].spdx) == (("honey",), "CC-BY-4.0")


def test_without_an_author_the_organisation_made_it() -> None:
    said = item(ckan(author="")).description
    assert said.creators == (Person(name="City of Brno", organisation=True),)
    assert item(ckan(author="", organization=None)).description.publisher == "demo.ckan.org"


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({}, "prices.csv"),
        ({"url": "https://demo.ckan.org/download/___"}, "Prices.csv"),
        (
            {"url": "https://demo.ckan.org/download/___", "name": "Brno/2021 \\ May"},
            "Brno-2021 - May.csv",
        ),
        ({"url": "https://demo.ckan.org/d/", "name": "prices.CSV"}, "prices.CSV"),
        ({"url": "https://demo.ckan.org/d/", "name": None}, "r-1.csv"),
        ({"url": "https://demo.ckan.org/d/", "format": "a long format"}, "Prices"),
        ({"url": "https://demo.ckan.org/d/honey%20map.tif?x=y.z"}, "honey map.tif"),
    ],
)
def test_a_path_is_the_name_in_the_url_or_else_the_label(more: dict[str, Any], path: str) -> None:
    found = item(ckan(resources=[ckan_resource("r-1", **more)], num_resources=1))
    assert [file.path for file in found.files] == [path]


def test_files_of_one_name_lie_in_folders_of_their_ids() -> None:
    found = item(ckan(resources=[ckan_resource("r-1"), ckan_resource("r-2")]))
    assert [file.path for file in found.files] == ["r-1/prices.csv", "r-2/prices.csv"]


def test_what_is_told_of_a_linked_file_does_not_count() -> None:
    linked = ckan_resource("r-1", url_type=None, hash=MD5, url="https://example.org/prices.csv")
    (file,) = item(ckan(resources=[linked], num_resources=1)).files
    assert (file.path, file.size, file.md5) == ("prices.csv", None, None)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (MD5, "md5"),
        (SHA1, "sha1"),
        (f"sha256:{SHA256}", "sha256"),
        (SHA256 * 2, "sha512"),
        ("", None),
        ("2021-05", None),
        (None, None),
    ],
)
def test_a_digest_is_known_by_its_length(given: str | None, field: str | None) -> None:
    (file,) = item(ckan(resources=[ckan_resource("r", hash=given)], num_resources=1)).files
    found = [name for name in ("md5", "sha1", "sha256", "sha512") if getattr(file, name)]
    assert found == ([field] if field else [])


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"state": "deleted"}, "platform-gone"),
        ({"private": True}, "platform-restricted"),
        (
            {"resources": [ckan_resource("r", url_type=None, format="WMS")], "num_resources": 1},
            "metadata-only",
        ),
        ({"resources": [], "num_resources": 0}, "success"),
        ({"resources": [ckan_resource("r", state="deleted")], "num_resources": 1}, "success"),
    ],
)
def test_what_has_no_files_to_give_is_told(more: dict[str, Any], status: str) -> None:
    found = item(ckan(**more))
    assert found.platform_status == status
    assert status in ("platform-gone", "platform-restricted") or found.manifest == ()


REFUSED = cases(
    "given status code",
    [
        ({"success": False, "error": {}}, "platform-error", ""),
        ({"success": True, "result": []}, "platform-bad-response", ""),
        (ckan(id=None), "platform-bad-response", ""),
        (ckan(name="other"), "platform-error", ""),
        (ckan(num_resources=3), "incomplete-manifest", ""),
        (ckan(resources=None), "platform-bad-response", ""),
        (ckan(type="harvest"), "platform-scope", "no-dataset"),
        (ckan(state="draft"), "platform-scope", "draft"),
        (403, "platform-restricted", ""),
    ],
    make=lambda given: {CKAN: given},
)


REFUSED += cases(
    "url code",
    [
        (f"{PAGE}/resource/r-1", "file-level"),
        ("https://demo.ckan.org/organization/brno", "no-dataset"),
    ],
    status="platform-scope",
)


@pytest.mark.parametrize(
    ("name", "files", "withheld", "sizes"),
    [
        ("test_ckan_adapter_read", 57, 1, 0),  # the URL of one has words for a host
        ("test_ckan_adapter_read_data_ods", 4, 0, 14_990),
        ("test_ckan_parser", 0, 0, 0),
    ],
)
def test_real_datasets_are_read(name: str, files: int, withheld: int, sizes: int) -> None:
    given = real(f"ckan/{name}.json")
    id_ = given["result"]["id"]
    api = f"https://demo.ckan.org/api/3/action/package_show?id={id_}"
    found = item(given, f"https://demo.ckan.org/dataset/{id_}", api)
    assert len({file.path for file in found.files}) == files
    assert len(found.withheld) == withheld
    assert sum(file.size or 0 for file in found.files) == sizes
