"""ScienceBase: items with files and facets, addresses that answer with a page, and trees."""

from typing import Any

from builder.sources.datasets.platforms.repositories.sciencebase import ScienceBase
from tests.builder.sources.datasets.pages import Pages, Site, cases
from tests.builder.sources.datasets.samples import MD5

ID = "5e0a1b2c3d4e5f6a7b8c9d0e"
URL = f"https://www.sciencebase.gov/catalog/item/{ID}"
API = f"{URL}?format=json"
GET = f"https://www.sciencebase.gov/catalog/file/get/{ID}"


def file(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "contentType": "text/csv",
        "size": 7,
        "checksum": {"type": "MD5", "value": MD5},
        "pathOnDisk": "__disk__ab/cd",
        "url": f"{GET}?f=__disk__ab%2Fcd",
        "downloadUri": f"{GET}?f=__disk__ab%2Fcd",
        **more,
    }


def item(*files: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": ID,
        "title": "Honey of the prairie",
        "body": "<p>What honey cost.</p>",
        "parentId": "5e0a1b2c3d4e5f6a7b8c9d0f",
        "hasChildren": False,
        "files": list(files),
        "rights": "Public domain",
        "contacts": [
            {"type": "Point of Contact", "name": "Desk"},
            {
                "type": "Author",
                "name": "Jana Medová",
                "firstName": "Jana",
                "lastName": "Medová",
                "contactType": "person",
                "orcId": "0000-0002-1825-0097",
            },
            {"type": "Originator", "name": "Bee Survey", "contactType": "organization"},
        ],
        "dates": [
            {"type": "Start", "dateString": "1999"},
            {"type": "Publication", "dateString": "2024-03-04"},
        ],
        "tags": [{"type": "Theme", "name": "honey"}],
        "identifiers": [{"type": "DOI", "key": "doi:10.5066/HONEY"}],
        "webLinks": [{"type": "webLink", "uri": "https://example.org/bees"}],
        **more,
    }


SITE = Site(ScienceBase(), URL, whole={API: item(file("a.csv"))})


def test_an_item_has_its_files_and_those_of_its_facets() -> None:
    facet = {"name": "Map/1", "files": [file("a.shp"), file("a.dbf")]}
    documents = {API: item(file("a.csv"), file("half", url=None, downloadUri=None), facets=[facet])}
    api = Pages(documents)
    found = SITE.ask(api)
    assert (found.platform_id, found.web_base_url, api.asked) == (ID, URL, [API])
    assert [(f.path, f.size, f.md5) for f in found.files] == [
        ("a.csv", 7, MD5),
        ("Map-1/a.shp", 7, MD5),
        ("Map-1/a.dbf", 7, MD5),
    ]
    assert [f.path for f in found.withheld] == ["half"]


def test_an_item_is_described() -> None:
    said = SITE.item().description
    assert said.title == "Honey of the prairie"
    assert (said.doi, said.published) == ("10.5066/honey", "2024-03-04")
    assert [(one.name, one.organisation) for one in said.creators] == [
        ("Medová, Jana", False),
        ("Bee Survey", True),
    ]
    assert [one.relation for one in said.related] == ["IsPartOf", "References"]


def test_a_published_copy_on_s3_is_asked_for_first() -> None:
    on_s3 = {
        "pathOnDisk": "__s3__x",
        "publishedS3Uri": "https://bees.s3.us-west-2.example/4f/a.zip",
    }
    (found,) = SITE.item({API: item(file("a b.zip", **on_s3))}).files
    assert found.platform_url == on_s3["publishedS3Uri"]


def test_a_file_on_s3_is_asked_for_by_its_name() -> None:
    on_s3 = {"pathOnDisk": "__s3__x", "url": f"{GET}?f=__s3__x"}
    (found,) = SITE.item({API: item(file("a b.zip", **on_s3))}).files
    assert found.platform_url == f"{GET}?name=a%20b.zip"


REFUSED = cases(
    "url documents status code",
    [
        (f"{GET}?f=x", {}, "platform-scope", "file-level"),
        ("https://www.sciencebase.gov/about", {}, "platform-scope", "no-dataset"),
        (URL, {API: item(hasChildren=True)}, "platform-scope", "collection"),
        (URL, {API: item(id="x")}, "platform-error", ""),
        (URL, {API: item(files="x")}, "platform-bad-response", ""),
        (URL, {}, "platform-404", ""),
    ],
)
