"""OSF: projects and registrations, through folders and pages to all of their files."""

from typing import Any

import pytest

from builder.sources.datasets.item import Person
from builder.sources.datasets.platforms.osf import Osf
from builder.sources.datasets.protocols import FilesetError
from tests.builder.sources.datasets.pages import Site, cases, real
from tests.builder.sources.datasets.samples import MD5, OSF, SHA256, osf, osf_entry, osf_page

API = "https://api.osf.io/v2"
GUID = f"{API}/guids/hny12/"
NODE = f"{OSF}?embed=contributors&embed=license&embed=identifiers"
SIZED = "?page%5Bsize%5D=100"
PROVIDERS = f"{OSF}files/{SIZED}"
ROOT = f"{OSF}files/osfstorage/"
PAGE = "https://osf.io/hny12/"


def provider(name: str, url: str) -> dict[str, Any]:
    return {
        "attributes": {"kind": "folder", "name": name, "provider": name},
        "relationships": {"files": {"links": {"related": {"href": url}}}},
    }


def project(**more: Any) -> dict[str, Any]:
    """A project with one file, one folder of one file, and what `more` says in its place."""
    folder = osf_entry("dir1", "/dir1/")
    return {
        GUID: osf(),
        NODE: osf(),
        PROVIDERS: osf_page([provider("osfstorage", ROOT)], 1),
        f"{ROOT}{SIZED}": osf_page([osf_entry("f1", "/a.txt"), folder], 2),
        f"{ROOT}dir1/{SIZED}": osf_page([osf_entry("f2", "/dir1/b.txt")], 1),
        **more,
    }


SITE = Site(Osf(), PAGE, whole=project())
item, refused = SITE.item, SITE.refused
FORMS = [
    ("https://osf.io/HNY12", None),
    ("https://osf.io/hny12/files/osfstorage", None),
    ("https://osf.io/registries/osf/hny12", None),
    ("https://doi.org/10.17605/osf.io/hny12", "10.17605/osf.io/hny12"),
]


def test_a_project_is_walked_to_its_last_file() -> None:
    found = item()
    assert [(file.path, file.size, file.md5, file.sha256) for file in found.files] == [
        ("a.txt", 7, MD5, SHA256),
        ("dir1/b.txt", 7, MD5, SHA256),
    ]
    assert found.files[0].platform_url == "https://osf.io/download/f1/"
    assert (found.platform_domain, found.platform_id, found.version) == ("osf.io", "hny12", None)
    assert found.web_bundle_url == (
        "https://files.osf.io/v1/resources/hny12/providers/osfstorage/?zip="
    )


def test_a_project_is_described() -> None:
    said = item().description
    assert (said.title, said.abstract, said.publisher) == ("Honey & bees", "What bees do.", "OSF")
    assert said.creators == (
        Person(name="Medová, Jana", given="Jana", family="Medová", orcid="0000-0002-1825-0097"),
        Person(name="Jan Včelař"),
    )
    assert (said.published, said.doi) == ("2019-08-10", "10.17605/osf.io/hny12")
    assert said.licences[0].spdx == "CC0-1.0"


def test_other_providers_have_folders_of_their_own_and_no_bundle() -> None:
    github = f"{OSF}files/github/"
    bare = osf_entry("f3", "/a.txt", provider="github", extra={"hashes": {}}, size=None)
    found = item(
        project(
            **{
                PROVIDERS: osf_page([provider("osfstorage", ROOT), provider("github", github)], 2),
                f"{github}{SIZED}": osf_page([bare], None),
            }
        )
    )
    assert sorted(file.path for file in found.files) == ["a.txt", "dir1/b.txt", "github/a.txt"]
    assert found.web_bundle_url is None


def test_files_of_components_are_below_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    def node(guid: str, **more: Any) -> dict[str, Any]:
        children = f"{API}/nodes/{guid}/children/"
        return {
            "id": guid,
            "attributes": {"public": True, **more},
            "relationships": {"children": {"links": {"related": {"href": children}}}},
        }

    def files(guid: str, *entries: Any) -> dict[str, Any]:
        return {f"{API}/nodes/{guid}/files/{SIZED}": osf_page([*entries], len(entries))}

    def children(guid: str, *nodes: Any) -> dict[str, Any]:
        return {f"{API}/nodes/{guid}/children/{SIZED}": osf_page([*nodes], len(nodes))}

    whole = osf()
    whole["data"]["relationships"] = node("hny12")["relationships"]
    documents = project(
        **{NODE: whole},
        **children("hny12", node("bees1"), node("secr1", public=False)),
        **children("bees1", node("wax01")),
        **children("wax01"),
        **files("bees1", osf_entry("f3", "/a.txt")),
        **files("wax01", osf_entry("f4", "/dir/c.txt")),
    )
    found = item(documents)
    assert [file.path for file in found.files] == [
        *("a.txt", "dir1/b.txt"),
        *("bees1/a.txt", "wax01/dir/c.txt"),
    ]
    assert [file.extra.get("component") for file in found.files] == [None, None, "bees1", "wax01"]
    assert found.web_bundle_url is None
    documents[f"{API}/nodes/wax01/children/{SIZED}"] = osf_page([node("hny12")], 1)
    with pytest.raises(FilesetError, match="platform-error: the component hny12 is listed twice"):
        item(documents)
    monkeypatch.setattr("builder.sources.datasets.platforms.osf._DEPTH", 3)
    with pytest.raises(FilesetError, match="platform-error: it has more than 3 components"):
        item({**documents, **children("wax01", node("wax02"))})


def test_folders_in_pages_are_gathered_and_a_short_one_is_refused() -> None:
    second = f"{ROOT}?page=2"
    whole = project(
        **{
            f"{ROOT}{SIZED}": osf_page([osf_entry("f1", "/a.txt")], 2, second),
            second: osf_page([osf_entry("f2", "/b.txt")], 2),
        }
    )
    assert [file.path for file in item(whole).files] == ["a.txt", "b.txt"]
    assert refused({**whole, second: osf_page([], 2)})[0] == "incomplete-manifest"
    away = osf_page([osf_entry("f1", "/a.txt")], 2, "https://example.org/?page=2")
    assert refused({**whole, f"{ROOT}{SIZED}": away})[0] == "platform-bad-response"


CLOSED = cases(
    "given status until",
    [
        ({"withdrawn": True}, "platform-gone", None),
        (
            {"embargoed": True, "embargo_end_date": "2031-01-02T00:00:00"},
            "platform-embargoed",
            "2031-01-02",
        ),
        ({"embargoed": True}, "platform-embargoed", None),
        ({"public": False}, "platform-restricted", None),
    ],
    make=lambda given: {GUID: osf(), NODE: osf(**given)},
)


REFUSED = cases(
    "given code",
    [
        ("files", "file-level"),
        ("preprints", "no-dataset"),
        ("users", "no-dataset"),
        (None, "no-dataset"),
    ],
    status="platform-scope",
    make=lambda given: {GUID: {"data": {"type": given}}},
)


REFUSED += cases(
    "url code",
    [
        ("https://osf.io/preprints/psyarxiv/hny12", "no-dataset"),
        ("https://osf.io/", "no-dataset"),
        ("https://osf.io/search", "no-dataset"),
        (f"{PAGE}files/osfstorage/69967bb9d957f4745b0caad9", "file-level"),
    ],
    status="platform-scope",
)


def leading(related: dict[str, Any]) -> dict[str, Any]:
    """Return a project with a folder whose content is said to be there."""
    folder = osf_entry("dir1", "/dir1/") | {"relationships": related}
    return project(**{f"{ROOT}{SIZED}": osf_page([folder], 1)})


# A part that is not there does not mean that the project is gone.
REFUSED += cases(
    "documents status",
    [
        *(
            (project(**{part: code}), "incomplete-manifest")
            for part in (NODE, PROVIDERS, f"{ROOT}dir1/{SIZED}")
            for code in (404, 410)
        ),
        ({GUID: 404}, "platform-404"),
        ({GUID: 410}, "platform-gone"),
        ({GUID: osf(), NODE: {"data": {**osf()["data"], "id": "other"}}}, "platform-error"),
        (leading({}), "platform-error"),
        (leading({"files": {"links": {"related": {"href": ROOT}}}}), "platform-error"),
    ],
)


def test_real_pages_of_files_are_read() -> None:
    (first, *_) = real("osf/ls_files_all_pages.json", {"api.test.osf.io": "api.osf.io"})
    first["links"]["next"] = None
    folders, files = [], []
    for one in first["data"]:
        (files if one["attributes"]["kind"] == "file" else folders).append(one)
    first["links"]["meta"]["total"] = len(first["data"])
    inside = {
        one["relationships"]["files"]["links"]["related"]["href"] + SIZED: osf_page([], 0)
        for one in folders
    }
    found = item(project(**{f"{ROOT}{SIZED}": first, **inside}))
    assert sorted(file.path for file in found.files) == sorted(
        one["attributes"]["materialized_path"][1:] for one in files
    )
    assert folders
    assert all(file.md5 and file.sha256 and file.size for file in found.files)
