"""DataONE: packages by id, DOI or view, in pages of an index, and what is no package."""

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from builder.sources.datasets.item import REPLICAS, FilesetPlatformItem
from builder.sources.datasets.platforms.landing import parse_name
from builder.sources.datasets.platforms.repositories.dataone import DataOne
from builder.sources.datasets.protocols import ApiAnswer, FilesetError
from tests.builder.sources.datasets.pages import Pages, Site, asked, real
from tests.builder.sources.datasets.samples import MD5, SHA256

PID = "doi:10.18739/A2HONEY"
URL = f"https://arcticdata.io/catalog/view/{PID}"
QUERY = "https://cn.dataone.org/cn/v2/query/solr/"
RESOLVE = "https://cn.dataone.org/cn/v2/resolve"
META = "https://cn.dataone.org/cn/v2/meta/doi%3A10.18739%2FA2HONEY"


def one(name: str, kind: str = "DATA", **more: Any) -> dict[str, Any]:
    return {
        "identifier": name,
        "formatType": kind,
        "formatId": "text/csv",
        "fileName": f"{name.rpartition(':')[2]}.csv",
        "size": 7,
        "checksum": SHA256.upper(),
        "checksumAlgorithm": "SHA-256",
        "dataUrl": f"{RESOLVE}/{name.replace(':', '%3A')}",
        "resourceMap": ["map:1"],
        "dateUploaded": "2024-03-04T10:00:00Z",
        **more,
    }


METADATA = one(
    PID,
    "METADATA",
    fileName="science_metadata.xml",
    formatId="eml://ecoinformatics.org/eml-2.1.1",
    title="Honey of the Arctic",
    abstract="What honey cost.",
    origin=["Medová, Jana", "Beekeepers"],
    keywords=["honey"],
    datasource="urn:node:ARCTIC",
    obsoletes="doi:10.18739/A2OLD",
    obsoletedBy="urn:uuid:2",
)
OBJECTS = [METADATA, one("urn:uuid:a"), one("urn:uuid:b", checksumAlgorithm="MD5", checksum=MD5)]


@dataclass
class Index(Pages):
    """An index that answers queries of the form `field:"value" OR field:"value"`, in pages."""

    page_size: int = 1000
    hidden: int = 0

    def answer(self, url: str, **more: Any) -> ApiAnswer:
        if not url.startswith(QUERY):
            return super().answer(url, **more)
        given = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        wanted = re.findall(r'(\w+):"((?:[^"\\]|\\.)*)"', given["q"])
        found = [
            doc
            for doc in self.documents["objects"]
            if any(value in _values(doc, field) for field, value in wanted)
        ]
        start = int(given["start"])
        shown = found[start : start + min(int(given["rows"]), self.page_size)]
        total = len(found) + self.hidden
        self.documents = {
            **self.documents,
            url: {"response": {"numFound": total, "start": start, "docs": shown}},
        }
        return super().answer(url, **more)


def _values(doc: dict[str, Any], field: str) -> list[Any]:
    found = doc.get("identifier" if field == "id" else field)
    return found if isinstance(found, list) else [found]


def whole() -> dict[str, Any]:
    """Return the answers about the package by the URLs that are asked."""
    index = Index({"objects": OBJECTS})
    asked(DataOne(), URL, index)
    return {url: index.documents[url] for url in index.asked}


SITE = Site(DataOne(), URL, whole=whole())
KNOWN = [(f"https://doi.org/{PID[4:]}", PID[4:].lower())]


def of(url: str = URL, *objects: dict[str, Any], **more: Any) -> FilesetPlatformItem:
    doi = more.pop("doi", None)
    documents = more.pop("documents", {})
    index = Index({"objects": list(objects or OBJECTS), **documents}, **more)
    return asked(DataOne(), url, index, doi)


def refused(*given: Any, **more: Any) -> tuple[str, str]:
    with pytest.raises(FilesetError) as caught:
        of(*given, **more)
    return caught.value.status, caught.value.code


def test_a_package_has_all_its_objects_with_their_digests() -> None:
    found = of()
    assert (found.platform_domain, found.platform_id) == ("search.dataone.org", PID)
    assert found.web_base_url == f"https://search.dataone.org/view/{PID}"
    assert [(f.path, f.sha256, f.md5, f.mimetype) for f in found.files] == [
        ("science_metadata.xml", SHA256, None, None),
        ("a.csv", SHA256, None, "text/csv"),
        ("b.csv", None, MD5, "text/csv"),
    ]
    assert found.files[1].platform_url == f"{RESOLVE}/urn%3Auuid%3Aa"


def test_a_package_is_described_by_its_metadata() -> None:
    said = of().description
    assert said.title == "Honey of the Arctic"
    assert (said.doi, said.publisher) == ("10.18739/a2honey", "Arctic Data Center")
    assert [one.name for one in said.creators] == ["Medová, Jana", "Beekeepers"]
    assert [(one.identifier, one.relation) for one in said.related] == [
        ("10.18739/a2old", "IsNewVersionOf"),
        ("https://search.dataone.org/view/urn:uuid:2", "IsPreviousVersionOf"),
    ]


@pytest.mark.parametrize(
    ("url", "doi"),
    [
        (f"https://arcticdata.io/catalog/#view/{PID}", None),
        (f"https://search.dataone.org/view/{PID.replace('/', '%2F')}", None),
        (f"https://knb.ecoinformatics.org/view/{PID}/", None),
        (f"{RESOLVE}/{PID}", None),
        (f"https://arcticdata.io/metacat/d1/mn/v2/object/{PID}", None),
        ("https://search.dataone.org/view/map:1", None),
        (f"https://doi.org/{PID[4:]}", PID[4:].lower()),
    ],
)
def test_a_package_is_found_by_each_of_its_names(url: str, doi: str | None) -> None:
    assert parse_name(url).url == url
    assert of(url, *OBJECTS, one("map:1", "RESOURCE"), doi=doi).platform_id == PID


def test_objects_in_pages_are_gathered_and_a_short_list_is_refused() -> None:
    many = [METADATA, *(one(f"urn:uuid:{number}") for number in range(7))]
    assert len(of(URL, *many, page_size=3).files) == 8
    assert refused(URL, *many, page_size=3, hidden=1) == ("incomplete-manifest", "")


def test_a_series_means_its_newest_version_that_was_not_replaced() -> None:
    series = {"seriesId": "urn:uuid:s", "obsoletedBy": None}
    old = {**METADATA, **series, "dateUploaded": "2023-01-01T00:00:00Z"}
    replaced = {
        **METADATA,
        **series,
        "identifier": "x",
        "obsoletedBy": "y",
        "dateUploaded": "2025-01-01T00:00:00Z",
    }
    found = of("https://search.dataone.org/view/urn:uuid:s", replaced, old)
    assert (found.platform_id, found.version) == ("urn:uuid:s", PID)


def test_of_several_packages_the_newest_is_taken() -> None:
    twice = [{**doc, "resourceMap": ["map:1", "map:2"]} for doc in OBJECTS]
    more = one("urn:uuid:c", resourceMap=["map:2"])
    maps = [
        one("map:1", "RESOURCE", obsoletedBy="map:2", resourceMap=[]),
        one("map:2", "RESOURCE", resourceMap=[]),
    ]
    assert len(of(URL, *twice, more, *maps).files) == 4


def test_packages_within_a_package_are_related() -> None:
    inner = one("urn:uuid:inner", "RESOURCE")
    found = of(URL, *OBJECTS, inner)
    assert len(found.files) == 3
    assert found.description.related[-1].relation == "HasPart"
    assert refused(URL, METADATA, inner) == ("platform-scope", "collection")


def test_objects_of_one_name_are_put_apart() -> None:
    same = [one("urn:uuid:1", fileName="t.csv"), one("doi:10.5072/2", fileName="t.csv")]
    assert [f.path for f in of(URL, METADATA, *same).files][1:] == ["1/t.csv", "2/t.csv"]


@pytest.mark.parametrize(
    ("objects", "documents", "status", "code"),
    [
        ([one(PID)], {}, "platform-scope", "file-level"),
        ([{**METADATA, "resourceMap": None}], {}, "empty-manifest", ""),
        ([one("other")], {}, "platform-404", ""),
        ([one("other")], {META: b"<archived>false</archived>"}, "platform-404", ""),
        ([one("other")], {META: b"<x><archived> true</archived></x>"}, "platform-gone", ""),
    ],
)
def test_what_is_no_package_is_refused(
    objects: list[dict[str, Any]], documents: dict[str, Any], status: str, code: str
) -> None:
    assert refused(URL, *objects, documents=documents) == (status, code)


def test_another_page_of_a_member_is_no_dataset() -> None:
    assert refused("https://arcticdata.io/about") == ("platform-scope", "no-dataset")


def test_a_real_package_is_read() -> None:
    exchanges = real("dataone/solr_package_D6862DM8.json")
    bodies = [json.loads(one["body"]) for one in exchanges if "/query/solr/" in one["uri"]]
    package = max((body["response"]["docs"] for body in bodies), key=len)
    objects = [{**doc, "resourceMap": ["resource_map_doi:10.5065/D6862DM8"]} for doc in package]
    found = of("https://arcticdata.io/catalog/#view/doi:10.5065/D6862DM8", *objects)
    assert (len(found.files), found.description.doi) == (17, "10.5065/d6862dm8")
    assert all(file.sha256 and file.size for file in found.files)


def test_replicas_are_those_of_members_that_the_list_of_nodes_has() -> None:
    nodes = "".join(
        f"<node replicate='true'>\n<identifier>urn:node:{name}</identifier><name>x</name>"
        f"<baseURL>https://{name.lower()}.example/mn/</baseURL></node>"
        for name in ("ARCTIC", "KNB")
    )
    answer = ApiAnswer(url="", status=200, body=f"<nodes>{nodes}</nodes>".encode())
    places = {"datasource": "urn:node:ARCTIC", "replicaMN": ["urn:node:GONE", "urn:node:KNB"]}
    objects = [METADATA, one("urn:uuid:a", **places)]
    found = of(URL, *objects, documents={"https://cn.dataone.org/cn/v2/node": answer})
    assert [file.extra.get(REPLICAS) for file in found.files] == [
        ["https://arctic.example/mn/v2/object/doi%3A10.18739%2FA2HONEY"],
        [f"https://{name}.example/mn/v2/object/urn%3Auuid%3Aa" for name in ("arctic", "knb")],
    ]
    unlisted = of(URL, *objects, documents={"https://cn.dataone.org/cn/v2/node": 500})
    assert REPLICAS not in unlisted.files[1].extra
