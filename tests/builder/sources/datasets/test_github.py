"""GitHub: releases by tag, tags without a release, files with digests, and the source."""

from typing import Any

import pytest

from builder.sources.datasets.platforms.hubs.github import GitHub
from tests.builder.sources.datasets.pages import Pages, Site, cases, real
from tests.builder.sources.datasets.samples import SHA256

URL = "https://github.com/bees/honey/releases/tag/v1.0"
API = "https://api.github.com/repos/bees/honey"
BY_TAG = f"{API}/releases/tags/v1.0"
DOWNLOAD = "https://github.com/bees/honey/releases/download/v1.0"
SOURCE = "https://github.com/bees/honey/archive/refs/tags/v1.0"


def asset(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "state": "uploaded",
        "size": 7,
        "content_type": "text/csv",
        "digest": f"sha256:{SHA256}",
        "browser_download_url": f"{DOWNLOAD}/{name}",
        **more,
    }


def release(*assets: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "tag_name": "v1.0",
        "name": "First prices",
        "body": "What is **new**.",
        "draft": False,
        "published_at": "2024-03-04T10:00:00Z",
        "assets": list(assets),
        **more,
    }


REPOSITORY = {
    "name": "honey",
    "full_name": "bees/honey",
    "description": "What honey cost.",
    "owner": {"login": "bees", "type": "Organization"},
    "topics": ["honey"],
    "license": {"name": "MIT License", "spdx_id": "MIT"},
}
SITE = Site(GitHub(), URL, whole={BY_TAG: release(asset("a.csv")), API: REPOSITORY})


def test_a_release_has_its_files_and_the_source() -> None:
    api = Pages(SITE.whole)
    found = SITE.ask(api)
    assert (found.platform_id, found.version, found.web_base_url) == ("bees/honey", "v1.0", URL)
    assert [(f.path, f.size, f.sha256, f.platform_url) for f in found.files] == [
        ("a.csv", 7, SHA256, f"{DOWNLOAD}/a.csv"),
        ("honey-v1.0.zip", None, None, f"{SOURCE}.zip"),
        ("honey-v1.0.tar.gz", None, None, f"{SOURCE}.tar.gz"),
    ]
    assert api.asked == [BY_TAG, API]


def test_a_release_is_described_with_its_repository() -> None:
    said = SITE.item().description
    assert said.title == "honey First prices"
    assert (said.type, said.published) == ("Software", "2024-03-04")
    assert [(one.name, one.organisation) for one in said.creators] == [("bees", True)]
    assert [one.spdx for one in said.licences] == ["MIT"]
    assert (said.abstract, said.subjects) == ("What honey cost.", ("honey",))


def test_files_may_have_no_digest_be_unfinished_or_be_called_as_the_source() -> None:
    files = (
        asset("old.csv", digest=None),
        asset("half.csv", state="starter"),
        asset("honey-v1.0.zip"),
    )
    found = SITE.item({BY_TAG: release(*files), API: REPOSITORY})
    assert [(f.path, f.sha256 is not None) for f in found.files] == [
        ("old.csv", False),
        ("honey-v1.0.zip", True),
        ("source/honey-v1.0.zip", False),
        ("honey-v1.0.tar.gz", False),
    ]
    assert [f.path for f in found.withheld] == ["half.csv"]


@pytest.mark.parametrize("page", ["", ".git", "/", "/releases", "/releases/latest"])
def test_without_a_tag_the_newest_release_is_meant(page: str) -> None:
    documents = {f"{API}/releases/latest": release(tag_name="v2.0"), API: REPOSITORY}
    found = SITE.item(documents, f"https://github.com/bees/honey{page}")
    assert (found.version, len(found.files)) == ("v2.0", 2)


def test_a_tag_without_a_release_has_the_source_alone() -> None:
    documents = {f"{API}/git/ref/tags/data%2F1": {"ref": "refs/tags/data/1"}, API: REPOSITORY}
    url = "https://github.com/bees/honey/releases/tag/data/1"
    assert [f.path for f in SITE.item(documents, url).files] == [
        "honey-data-1.zip",
        "honey-data-1.tar.gz",
    ]


REFUSED = cases(
    "url documents status code",
    [
        (f"{DOWNLOAD}/a.csv", {}, "platform-scope", "file-level"),
        ("https://github.com/bees/honey/blob/main/a.csv", {}, "platform-scope", "file-level"),
        ("https://github.com/bees/honey/issues/7", {}, "platform-scope", "no-dataset"),
        ("https://github.com/bees", {}, "platform-scope", "no-dataset"),
        ("https://github.com/bees/honey", {API: REPOSITORY}, "platform-scope", "no-dataset"),
        (URL, {API: REPOSITORY}, "platform-scope", "wrong-version"),
        (URL, {BY_TAG: release(draft=True), API: REPOSITORY}, "platform-scope", "draft"),
        (URL, {BY_TAG: release(tag_name="v2"), API: REPOSITORY}, "platform-error", ""),
        (URL, {BY_TAG: release(assets=None), API: REPOSITORY}, "platform-bad-response", ""),
        (URL, {BY_TAG: release()}, "incomplete-manifest", ""),
        (URL, {}, "platform-404", ""),
    ],
)


def test_real_assets_are_read() -> None:
    listed, one = real("github/release_assets.json")
    documents = {BY_TAG: release(*listed["body"], one["body"]), API: REPOSITORY}
    found = SITE.item(documents)
    assert [(f.path, f.size) for f in found.files][:2] == [("fact", 40), ("fact", 40)]
