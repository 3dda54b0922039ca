"""Each platform knows what is its own, and no other takes it for its own."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from builder.filesets.item import DatasetResource, IngestRequest
from builder.filesets.platforms.detect import LAST, PLATFORMS
from builder.filesets.platforms.probes import probe
from tests.builder.filesets.pages import Pages, Site
from tests.builder.filesets.samples import ckan

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "datasets.md"
UUID = "9f0c2b0e-5f0f-4b46-b5f2-0a8f3f2f6f11"
OWN = [
    ("https://zenodo.org/records/4711", None, "zenodo"),
    ("https://doi.org/10.5281/zenodo.4711", "10.5281/zenodo.4711", "zenodo"),
    ("https://archive.org/details/honey-1903", None, "archiveorg"),
    ("https://datadryad.org/dataset/doi:10.5061/dryad.h0n3y", None, "dryad"),
    ("https://doi.org/10.5061/dryad.h0n3y", "10.5061/dryad.h0n3y", "dryad"),
    ("https://osf.io/hny12/", None, "osf"),
    ("https://doi.org/10.17605/osf.io/hny12", "10.17605/osf.io/hny12", "osf"),
    ("https://data.mendeley.com/datasets/h0n3ybees1/2", None, "mendeley"),
    ("https://doi.org/10.17632/h0n3ybees1.2", "10.17632/h0n3ybees1.2", "mendeley"),
    ("https://doi.pangaea.de/10.1594/PANGAEA.4711", None, "pangaea"),
    ("https://doi.org/10.1594/pangaea.4711", "10.1594/pangaea.4711", "pangaea"),
    ("https://figshare.com/articles/dataset/Honey/4711/2", None, "figshare"),
    ("https://doi.org/10.6084/m9.figshare.4711", "10.6084/m9.figshare.4711", "figshare"),
    ("https://huggingface.co/datasets/bees/honey", None, "huggingface"),
    ("https://arcticdata.io/catalog/view/doi:10.18739/A2HONEY", None, "dataone"),
    ("https://doi.org/10.18739/A2HONEY", "10.18739/a2honey", "dataone"),
    ("https://www.sciencebase.gov/catalog/item/5e0a1b2c3d4e5f6a7b8c9d0e", None, "sciencebase"),
    ("https://www.openicpsr.org/openicpsr/project/4711/version/V1/view", None, "openicpsr"),
    ("https://doi.org/10.3886/E4711V1", "10.3886/e4711v1", "openicpsr"),
    ("https://github.com/bees/honey/releases/tag/v1.0", None, "github"),
    ("https://gitlab.com/bees/honey/-/releases/v1.0", None, "gitlab"),
    ("https://git.example.org/bees/honey/-/releases/v1.0", None, "gitlab"),
    (f"https://data.4tu.nl/datasets/{UUID}/1", None, "figshare"),
    (
        "https://dataverse.harvard.edu/dataset.xhtml?persistentId=doi:10.7910/DVN/HONEY1",
        "10.7910/dvn/honey1",
        "dataverse",
    ),
    ("https://demo.ckan.org/dataset/honey-prices", None, "ckan"),
]


MODULES = [
    import_module(f"tests.builder.filesets.test_{name}")
    for name in (
        "archiveorg_items",
        "ckan",
        "dataverse",
        "dryad",
        "figshare",
        "github",
        "gitlab",
        "huggingface",
        "inveniordm",
        "mendeley",
        "openicpsr",
        "osf",
        "pangaea",
        "sciencebase",
        "zenodo",
    )
]


def table(name: str) -> list[Any]:
    """Return the cases of all platforms, each with its platform's site."""
    return [
        pytest.param(module.SITE, case, id=f"{module.SITE.platform.name}-{number}")
        for module in MODULES
        for number, case in enumerate(getattr(module, name, ()))
    ]


@pytest.mark.parametrize(("site", "case"), table("REFUSED"))
def test_what_is_no_dataset_in_one_version_is_refused(site: Site, case: dict[str, Any]) -> None:
    refusal = site.refused(case.get("documents", {}), case.get("url"), case.get("doi"))
    assert refusal == (case["status"], case.get("code", ""))


@pytest.mark.parametrize(("site", "case"), table("CLOSED"))
def test_what_gives_no_files_is_told_with_its_metadata(site: Site, case: dict[str, Any]) -> None:
    item = site.item(case["documents"])
    assert (item.platform_status, item.until) == (case["status"], case.get("until"))
    assert (item.files, item.manifest or ()) == ((), item.withheld)
    assert item.description.title or item.description.creators


@pytest.mark.parametrize(("url", "doi", "name"), OWN)
def test_a_dataset_is_of_one_platform(url: str, doi: str | None, name: str) -> None:
    resource = DatasetResource(url=url, doi=doi)
    known = [one.name for one in PLATFORMS if one.match_request(IngestRequest(url), resource)]
    assert known == [name]


@pytest.mark.parametrize(
    "url",
    ["https://example.org/", "https://example.org/dataset/honey", "https://doi.org/10.1234/x"],
)
def test_a_page_of_nobody_is_of_none(url: str) -> None:
    resource = DatasetResource(url=url, doi="10.1234/x", body=b"<html>honey</html>")
    assert not [one.name for one in PLATFORMS if one.match_request(IngestRequest(url), resource)]


def test_no_two_platforms_have_one_name() -> None:
    names = {one.name for one in (*PLATFORMS, LAST)}
    assert len(names) == len(PLATFORMS) + 1


def test_the_guide_has_the_rows_of_the_platforms_in_the_order_in_which_they_are_tried() -> None:
    platforms = (*PLATFORMS, LAST)
    assert [one.facts.name for one in platforms] == [one.name for one in platforms]
    rows = [one.facts.row for one in platforms]
    lines = GUIDE.read_text("utf-8").splitlines()
    first = lines.index(rows[0])
    assert lines[first : first + len(rows) + 1] == [*rows, ""]


@pytest.mark.parametrize("root", ["", "/data/cs"])
def test_a_ckan_that_no_list_names_is_shown_by_its_api(root: str) -> None:
    url = f"https://data.example.cz{root}/dataset/honey-prices"
    api = f"https://data.example.cz{root}/api/3/action/package_show?id=honey-prices"
    assert probe(DatasetResource(url=url), Pages({api: ckan()})) == "ckan"
    assert probe(DatasetResource(url=url), Pages({api: {"success": False}})) is None
    assert probe(DatasetResource(url=url), Pages({api: {"success": True, "result": []}})) is None
    assert probe(DatasetResource(url=f"{url}/resource/r-1"), Pages({api: ckan()})) is None
