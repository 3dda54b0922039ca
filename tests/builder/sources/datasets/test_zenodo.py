"""Zenodo: the four shapes of its records, and what is refused."""

from typing import Any

import pytest

from builder.sources.datasets.item import (
    FilesetManifestFile,
    FilesetPlatformItem,
    Licence,
    Person,
    Related,
)
from builder.sources.datasets.platforms.invenio import Zenodo
from tests.builder.sources.datasets.pages import Site, cases, gone, real
from tests.builder.sources.datasets.samples import JANA

API = "https://zenodo.org/api/records/"
MD5 = {"a b.csv": "0" * 31 + "1", "deep/č.txt": "0" * 31 + "2"}


def metadata(**more: Any) -> dict[str, Any]:
    return {
        "title": "Weights of <i>hives</i>",
        "access_right": "open",
        "publication_date": "2024-05-06",
        "description": "<p>Ten hives &amp; a scale.</p>",
        "creators": [
            {"name": "Včela, Jana", "affiliation": "Apiary", "orcid": "0000-0002-1825-0097"},
            {"name": "Hive Group", "affiliation": None},
        ],
        "contributors": [{"name": "Roj, Petr", "type": "DataCollector"}],
        "keywords": ["bees", "weight"],
        "license": {"id": "cc-by-4.0"},
        "resource_type": {"type": "dataset"},
        "version": "1.2",
        "related_identifiers": [
            {"identifier": "10.5072/paper", "relation": "isSupplementTo", "scheme": "doi"},
            {"identifier": "https://example.org/x", "relation": "isSmelledBy", "scheme": "url"},
        ],
        **more,
    }


def record(files: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": 21,
        "conceptrecid": "20",
        "conceptdoi": "10.5281/zenodo.20",
        "doi": "10.5281/zenodo.21",
        "links": {"self_html": "https://zenodo.org/records/21"},
        "metadata": metadata(),
        "files": files,
        **more,
    }


def legacy() -> Any:
    bucket = "https://zenodo.org/api/files/0b-1c"
    return [
        {
            "key": "a b.csv",
            "size": 7,
            "checksum": f"md5:{MD5['a b.csv']}",
            "links": {"self": f"{bucket}/a%20b.csv"},
        },
        {
            "key": "deep/č.txt",
            "size": 8,
            "checksum": f"md5:{MD5['deep/č.txt']}",
            "links": {"self": f"{bucket}/deep/%C4%8D.txt"},
        },
    ]


def autumn() -> Any:
    return [
        {
            "id": "x",
            "filename": name,
            "filesize": 7 + n,
            "checksum": MD5[name],
            "links": {"self": f"{API}21/files/{path}", "download": f"{API}21/files/{path}/content"},
        }
        for n, (name, path) in enumerate(zip(MD5, ("a%20b.csv", "deep/%C4%8D.txt"), strict=True))
    ]


def today() -> Any:
    return [
        {
            "key": name,
            "size": 7 + n,
            "checksum": f"md5:{MD5[name]}",
            "links": {"self": f"{API}21/files/{path}/content"},
        }
        for n, (name, path) in enumerate(zip(MD5, ("a%20b.csv", "deep/%C4%8D.txt"), strict=True))
    ]


def native() -> dict[str, Any]:
    entries = {
        name: {"key": name, "size": 7 + n, "checksum": f"md5:{MD5[name]}", "mimetype": "text/plain"}
        for n, name in enumerate(MD5)
    }
    return {
        "id": "21",
        "parent": {"id": "20"},
        "is_published": True,
        "access": {"record": "public", "files": "public", "embargo": {"active": False}},
        "metadata": {"title": "Weights of hives"},
        "files": {"enabled": True, "count": 2, "total_bytes": 15, "entries": entries},
        "links": {"self_html": "https://zenodo.org/records/21"},
    }


def essence(file: FilesetManifestFile) -> tuple[str, int | None, str | None]:
    return file.path, file.size, file.md5


def site(given: Any, tokens: frozenset[str] = frozenset()) -> Site:
    return Site(Zenodo(), "https://zenodo.org/records/21", tokens, {f"{API}21": given})


def item_of(given: Any) -> FilesetPlatformItem:
    return site(given).item()


SITE = site(record(today()))
SHAPES = {
    "legacy": site(record(legacy())),
    "autumn-2023": site(record(autumn())),
    "today": SITE,
    "native": site(native()),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_gives_the_same_manifest(shape: str) -> None:
    """Scenario 4: whichever of its four forms Zenodo answers with."""
    item = SHAPES[shape].item()
    assert item.platform_status == "success"
    assert (item.platform_domain, item.platform_id, item.version) == ("zenodo.org", "20", "21")
    assert list(map(essence, item.files)) == [
        ("a b.csv", 7, MD5["a b.csv"]),
        ("deep/č.txt", 8, MD5["deep/č.txt"]),
    ]
    assert item.web_base_url == "https://zenodo.org/records/21"
    assert item.description.publisher == "Zenodo"
    assert item.description.title == "Weights of hives"


def test_bytes_are_behind_the_link_that_does_not_lead_to_metadata() -> None:
    made = [[file.platform_url for file in shape.item().files] for shape in SHAPES.values()]
    content = [f"{API}21/files/a%20b.csv/content", f"{API}21/files/deep/%C4%8D.txt/content"]
    assert made[0] == [
        "https://zenodo.org/api/files/0b-1c/a%20b.csv",
        "https://zenodo.org/api/files/0b-1c/deep/%C4%8D.txt",
    ]
    assert made[1:] == [content] * 3


def test_a_description_has_all_that_datacite_asks_for() -> None:
    said = SITE.item().description
    assert said.creators == (JANA, Person(name="Hive Group"))
    assert [(p.name, p.role) for p in said.contributors] == [("Roj, Petr", "DataCollector")]
    assert said.abstract == "Ten hives & a scale."
    assert said.subjects == ("bees", "weight")
    assert said.licences == (Licence("cc-by-4.0", "CC-BY-4.0", None),)
    assert (said.published, said.version, said.type) == ("2024-05-06", "1.2", "Dataset")
    assert said.doi == "10.5281/zenodo.21"
    assert said.related == (
        Related("10.5072/paper", "DOI", "IsSupplementTo"),
        Related("10.5281/zenodo.20", "DOI", "IsVersionOf"),
    )


FORMS = [
    ("https://zenodo.org/record/21", None),
    ("https://www.zenodo.org/record/21#files", None),
    ("http://zenodo.org/api/records/21", None),
    ("https://zenodo.org/doi/10.5281/zenodo.21", None),
    ("https://zenodo.org/badge/DOI/10.5281/zenodo.21.svg", None),
    ("https://zenodo.org/records/21?preview=1", None),
    ("https://doi.org/10.5281/zenodo.21", "10.5281/zenodo.21"),
]
REFUSED = cases(
    "url given status code",
    [
        ("https://zenodo.org/records/20", record(today()), "platform-scope", "work-level"),
        ("https://zenodo.org/records/19", record(today()), "platform-scope", "wrong-version"),
        ("https://zenodo.org/records/21", record([], submitted=False), "platform-scope", "draft"),
        ("https://zenodo.org/deposit/21", None, "platform-scope", "draft"),
        ("https://zenodo.org/uploads/21", None, "platform-scope", "draft"),
        ("https://zenodo.org/communities/bees", None, "platform-scope", "collection"),
        ("https://zenodo.org/records/21/files/a.csv", None, "platform-scope", "file-level"),
        ("https://zenodo.org/records/21", 404, "platform-404", ""),
        ("https://zenodo.org/about", None, "platform-404", ""),
        ("https://zenodo.org/records/21", 403, "platform-restricted", ""),
        ("https://zenodo.org/records/21", {"hits": []}, "platform-bad-response", ""),
        ("https://zenodo.org/records/21", [], "platform-bad-response", ""),
        ("https://zenodo.org/records/21", record({"a": 1}), "platform-error", ""),
        ("https://zenodo.org/records/21", record([{"size": 1}]), "platform-bad-response", ""),
    ],
    make=lambda given: {f"{API}{id_}": given for id_ in (19, 20, 21)},
)


EMBARGOED = {"access_right": "embargoed", "embargo_date": "2030-01-02"}
CLOSED = cases(
    "given status until",
    [
        (EMBARGOED, "platform-embargoed", "2030-01-02"),
        ({"access_right": "restricted"}, "platform-restricted", None),
        ({"access_right": "closed"}, "platform-restricted", None),
        ({}, "empty-manifest", None),
    ],
    make=lambda given: {f"{API}21": record([], metadata=metadata(**given))},
)


def test_files_under_embargo_are_withheld_where_they_are_listed() -> None:
    answer = record(today(), metadata=metadata(**EMBARGOED))
    item = item_of(answer)
    assert (item.platform_status, len(item.withheld), item.files) == ("platform-embargoed", 2, ())
    assert item.web_bundle_url is None


def test_restricted_files_that_a_token_opens_are_given() -> None:
    answer = record(today(), metadata=metadata(access_right="restricted"))
    item = item_of(answer)
    assert (item.platform_status, item.files) == ("platform-restricted", ())
    item = site(answer, frozenset({"zenodo.org"})).item()
    assert (item.platform_status, len(item.files)) == ("success", 2)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"tombstone": {"note": "Wrong bees", "removal_date": "2025-01-01"}}, "Wrong bees"),
        ({"tombstone": {"removal_reason": {"id": "spam"}}, "message": "Record deleted"}, "spam"),
        ({"message": "PID has been deleted."}, "PID has been deleted."),
    ],
)
def test_a_tombstone_tells_why(told: dict[str, Any], why: str) -> None:
    item = item_of(gone({"status": 410, **told}))
    assert (item.platform_status, item.version, item.detail) == ("platform-gone", "21", why)
    assert item.platform_id is None  # the id of all versions is not told, and may be in use


def test_a_digest_of_an_unknown_kind_is_kept_and_not_taken_for_md5() -> None:
    files = [
        {"key": "a", "size": 1, "checksum": "adler32:00620062"},
        {"key": "b", "size": 1, "checksum": "sha256:" + "ab" * 32},
        {"key": "c", "size": None},
    ]
    item = item_of(record(files))
    a, b, c = item.files
    assert (a.md5, a.extra) == (None, {"checksum": "adler32:00620062"})
    assert (b.md5, b.sha256, b.extra) == (None, "ab" * 32, {})
    assert (c.md5, c.size) == (None, None)


@pytest.mark.parametrize(
    ("name", "count", "total", "first"),
    [
        ("legacy_record_7078725", 7, 20_932, "capitals.csv"),
        ("legacy_record_7078760", 3, None, None),
        ("legacy_record_3459420", 12, None, None),
        ("legacy_record_5015459_15files", 15, None, "line1_CTD_BOT.txt"),
        ("post2023_record_5173799", 1, 805_940, "lexibank/utoaztecan-v1.1.zip"),
        ("post2023_record_7085903", 5, 390_616, "plant_data.tsv"),
        ("derived_no_size_no_checksum", 2, None, "1664237.DEM.SDTS.TAR.GZ"),
    ],
)
def test_real_records(name: str, count: int, total: int | None, first: str | None) -> None:
    document = real(f"zenodo/{name}.json")
    id = str(document["id"])
    item = SITE.item({API + id: document}, f"https://zenodo.org/record/{id}")
    assert item.platform_status == "success"
    assert (item.version, item.platform_id) == (id, document["conceptrecid"])
    assert len(item.files) == count
    assert first in (None, item.files[0].path)
    if total is not None:
        assert sum(file.size or 0 for file in item.files) == total
    given = name != "derived_no_size_no_checksum"
    assert all((file.md5 is not None) == given for file in item.files)
    assert all((f.platform_url or "").startswith("https://zenodo.org/api/") for f in item.files)
    said = item.description
    assert all((said.title, said.creators, said.published, said.licences, said.abstract))
    assert said.doi == document["doi"].lower()


def test_the_place_among_the_versions_is_told_alike_by_both_forms() -> None:
    relations = {"version": [{"index": 2, "is_last": False}]}
    older = record(today(), metadata=metadata(relations=relations))
    newer = native() | {"versions": {"index": 3, "is_latest": True}}
    for document in (older, newer):
        assert item_of(document).index == 3
    assert SITE.item().index is None
