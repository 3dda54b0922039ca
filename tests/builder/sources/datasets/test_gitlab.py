"""GitLab: releases by tag on any host, linked files, and links that are no files."""

from typing import Any

import pytest

from builder.sources.datasets.item import Related
from builder.sources.datasets.platforms.hubs.gitlab import GitLab
from tests.builder.sources.datasets.pages import Pages, Site, cases

ROOT = "https://git.bees.example"
URL = f"{ROOT}/apiary/data/honey/-/releases/v1.0"
API = f"{ROOT}/api/v4/projects/apiary%2Fdata%2Fhoney"
BY_TAG = f"{API}/releases/v1.0"
ARCHIVE = f"{ROOT}/apiary/data/honey/-/archive/v1.0/honey-v1.0"


def link(name: str, url: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "url": url, "direct_asset_url": url, "link_type": "other", **more}


def release(*links: dict[str, Any], **more: Any) -> dict[str, Any]:
    forms = ("zip", "tar.gz", "tar.bz2", "tar")
    return {
        "tag_name": "v1.0",
        "name": "First prices",
        "description": "New.",
        "released_at": "2024-03-04T10:00:00.000Z",
        "assets": {
            "sources": [{"format": form, "url": f"{ARCHIVE}.{form}"} for form in forms],
            "links": list(links),
        },
        **more,
    }


PROJECT = {
    "name": "honey",
    "path_with_namespace": "apiary/data/honey",
    "description": "What honey cost.",
    "topics": ["honey"],
    "namespace": {"name": "Apiary", "kind": "group"},
    "license": {"name": "MIT License", "html_url": "http://opensource.org/licenses/mit-license"},
}
ABOUT = f"{API}?license=true"
WHOLE = {
    BY_TAG: release(link("a.csv", f"{ROOT}/packages/7"), link("Manual", "https://d.example/m")),
    ABOUT: PROJECT,
}
SITE = Site(GitLab(), URL, whole=WHOLE)
KNOWN = [("https://gitlab.com/bees/honey/-/releases/v1.0", None)]


def test_a_release_has_linked_files_and_the_source_once_in_each_form() -> None:
    api = Pages(WHOLE)
    found = SITE.ask(api)
    assert (found.platform_domain, found.platform_id) == ("git.bees.example", "apiary/data/honey")
    assert (found.version, found.web_base_url) == ("v1.0", URL)
    assert [(f.path, f.platform_url) for f in found.files] == [
        ("a.csv", f"{ROOT}/packages/7"),
        ("honey-v1.0.zip", f"{ARCHIVE}.zip"),
        ("honey-v1.0.tar.gz", f"{ARCHIVE}.tar.gz"),
    ]
    assert api.asked == [BY_TAG, ABOUT]


def test_a_release_is_described_with_its_project() -> None:
    said = SITE.item().description
    assert said.title == "honey First prices"
    assert (said.published, said.publisher) == ("2024-03-04", "git.bees.example")
    assert [(one.name, one.organisation) for one in said.creators] == [("Apiary", True)]
    assert [one.name for one in said.licences] == ["MIT License"]
    assert said.related == (Related("https://d.example/m", "URL", "References"),)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (link("Data", "https://d.example/files/b.zip?x=1"), "b.zip"),
        (link("data/c.csv", "https://d.example/7", link_type="package"), "data/c.csv"),
        (link("README", "https://d.example/7", link_type="package"), "README"),
        (link("report", f"{ROOT}/uploads/1f/report"), "report"),
        (link("honey-amd64", f"{ROOT}/packages/generic/honey/1.0/honey-amd64"), "honey-amd64"),
        (link("For Linux", f"{ROOT}/packages/generic/honey/v1.0.2/honey"), "For Linux"),
        (link("Report", f"{ROOT}/uploads/1f/report.html"), "report.html"),
        (link("Page", "https://d.example/index.html"), None),
        (link("run.sh", "https://d.example/run", link_type="runbook"), None),
        (link("Image", "https://registry.example/a:1.0", link_type="image"), None),
    ],
)
def test_a_link_is_a_file_if_it_is_called_as_one(given: dict[str, Any], path: str | None) -> None:
    found = SITE.item(WHOLE | {BY_TAG: release(given)})
    assert [f.path for f in found.files][:-2] == ([path] if path else [])


@pytest.mark.parametrize(
    "url",
    [
        "https://gitlab.com/apiary/honey",
        "https://gitlab.com/apiary/honey/-/releases",
        "https://gitlab.com/apiary/honey/-/releases/permalink/latest",
    ],
)
def test_without_a_tag_the_newest_release_is_meant(url: str) -> None:
    api = "https://gitlab.com/api/v4/projects/apiary%2Fhoney"
    documents = {f"{api}/releases/permalink/latest": release(), f"{api}?license=true": PROJECT}
    assert SITE.item(documents, url).version == "v1.0"


REFUSED = cases(
    "url documents status code",
    [
        (f"{URL}/downloads/a.csv", {}, "platform-scope", "file-level"),
        (f"{ROOT}/a/b/-/archive/v1/b-v1.zip", {}, "platform-scope", "file-level"),
        (f"{ROOT}/a/b/-/issues/7", {}, "platform-scope", "no-dataset"),
        (f"{ROOT}/apiary", {}, "platform-scope", "no-dataset"),
        (f"{ROOT}/apiary/data/honey", {API: PROJECT}, "platform-scope", "no-dataset"),
        (URL, {API: PROJECT}, "platform-scope", "wrong-version"),
        (URL, {BY_TAG: release(tag_name="v2"), ABOUT: PROJECT}, "platform-error", ""),
        (URL, {BY_TAG: release()}, "incomplete-manifest", ""),
        (URL, {}, "platform-404", ""),
    ],
)
