"""Mendeley Data: the version that is asked for, folder by folder."""

from typing import Any

from builder.sources.datasets.item import Person, Related
from builder.sources.datasets.platforms.mendeley import Mendeley
from tests.builder.sources.datasets.pages import Pages, Site, cases, real
from tests.builder.sources.datasets.samples import MENDELEY, SHA256, mendeley, mendeley_file

PAGE = "https://data.mendeley.com/datasets/h0n3ybees1"
FOLDERS = f"{MENDELEY}/folders/2"


def listed(folder: str) -> str:
    return f"{MENDELEY}/files?folder_id={folder}&version=2"


def dataset(**more: Any) -> dict[str, Any]:
    """Version 2, with a file at the top and one in a folder of a folder."""
    return {
        MENDELEY: mendeley(),
        f"{MENDELEY}/snapshot/2": mendeley(),
        FOLDERS: [
            {"id": "d-1", "name": "Brno"},
            {"id": "d-2", "name": "2021", "parent_id": "d-1"},
        ],
        listed("root"): [mendeley_file("f-1", "a.csv")],
        listed("d-1"): [],
        listed("d-2"): [mendeley_file("f-2", "b.csv")],
        **more,
    }


SITE = Site(Mendeley(), PAGE, whole=dataset())
item, refused = SITE.item, SITE.refused
FORMS = [
    (f"{PAGE}/2", None),
    (PAGE, "10.17632/h0n3ybees1.2"),
    ("https://doi.org/10.17632/h0n3ybees1.2", "10.17632/h0n3ybees1.2"),
    ("https://doi.org/10.17632/h0n3ybees1", "10.17632/h0n3ybees1"),
]


def test_a_dataset_is_listed_folder_by_folder() -> None:
    found = item()
    assert (found.platform_id, found.version) == ("h0n3ybees1", "2")
    zip_ = "https://data.mendeley.com/public-api/zip/h0n3ybees1/download/2"
    assert found.web_bundle_url == zip_
    assert [(file.path, file.size, file.sha256) for file in found.files] == [
        ("a.csv", 12, SHA256),
        ("Brno/2021/b.csv", 12, SHA256),
    ]


def test_the_version_that_is_named_is_the_one_that_is_asked_for() -> None:
    for name in ((f"{PAGE}/2", None), (PAGE, "10.17632/h0n3ybees1.2")):
        api = Pages(SITE.whole)
        SITE.ask(api, *name)
        assert api.asked[0] == f"{MENDELEY}/snapshot/2"
    assert refused(SITE.whole, f"{PAGE}/9") == ("platform-scope", "wrong-version")
    other = {f"{MENDELEY}/snapshot/1": mendeley()}
    assert refused(other, f"{PAGE}/1") == ("platform-scope", "wrong-version")


def test_a_dataset_is_described() -> None:
    said = item().description
    assert said.title == "Honey"
    assert (said.abstract, said.publisher) == ("Prices of honey.", "Mendeley Data")
    assert said.creators == (
        Person(
            name="Medová, Jana", given="Jana", family="Medová", affiliations=("Brno University",)
        ),
    )
    assert (said.published, said.doi, said.version) == ("2022-03-01", "10.17632/h0n3ybees1.2", "2")
    assert said.licences[0].spdx == "CC-BY-4.0"
    assert said.related == (
        Related("10.1234/paper", "DOI", "IsSupplementTo"),
        Related("https://example.org/bees", "URL", "References"),
    )


def test_a_file_without_a_link_is_withheld_and_a_dataset_may_be_closed() -> None:
    bare = mendeley_file("f-1", "a.csv") | {"content_details": {"size": 12}}
    found = item(dataset(**{listed("root"): [bare]}))
    assert [file.path for file in found.withheld] == ["a.csv"]
    closed = item({MENDELEY: mendeley(available=False)})
    assert (closed.platform_status, closed.manifest) == ("platform-restricted", None)


IN_EACH_OTHER = [
    {"id": "d-1", "name": "a", "parent_id": "d-2"},
    {"id": "d-2", "name": "b", "parent_id": "d-1"},
]
VERY_MANY = [{"id": str(number), "name": str(number)} for number in range(1_001)]
REFUSED = cases(
    "documents status",
    [
        # A part that is not there does not mean that the dataset is gone.
        (dataset(**{FOLDERS: 404}), "incomplete-manifest"),
        (dataset(**{listed("root"): 404}), "incomplete-manifest"),
        (dataset(**{listed("d-2"): 404}), "incomplete-manifest"),
        (dataset(**{listed("d-2"): []}), "incomplete-manifest"),
        (dataset(**{FOLDERS: IN_EACH_OTHER}), "platform-error"),
        (dataset(**{FOLDERS: VERY_MANY}), "platform-error"),
        ({MENDELEY: mendeley(id="other")}, "platform-error"),
        ({MENDELEY: mendeley(version=None)}, "platform-bad-response"),
        ({MENDELEY: mendeley(), FOLDERS: {}}, "platform-bad-response"),
        ({MENDELEY: []}, "platform-bad-response"),
        ({}, "platform-404"),
    ],
)


REFUSED += cases(
    "url code", [("https://data.mendeley.com/about", "no-dataset")], status="platform-scope"
)


def test_the_shape_of_a_real_dataset_is_read() -> None:
    given = real("mendeley/dataset_shape.json")
    api = "https://data.mendeley.com/public-api/datasets/2vkm6k4cfg"
    documents = {
        api: given,
        f"{api}/folders/1": [],
        f"{api}/files?folder_id=root&version=1": given["files"],
    }
    (file,) = item(documents, "https://data.mendeley.com/datasets/2vkm6k4cfg").files
    assert (file.path, file.size, file.mimetype) == ("sample.zip", 123, "application/zip")
