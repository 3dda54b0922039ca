"""Dataverse: originals, numbers of files, versions, and what it does not give."""

from datetime import UTC, datetime
from typing import Any

import pytest

from builder.sources.datasets.item import Licence, Person, Related
from builder.sources.datasets.platforms.dataverse import Dataverse
from tests.builder.sources.datasets.pages import Pages, Site, cases, real
from tests.builder.sources.datasets.samples import JANA

BASE = "https://dataverse.example.org"
ID = "doi:10.5072/FK2/HIVES"
URL = f"{BASE}/dataset.xhtml?persistentId={ID}"
API = f"{BASE}/api/datasets/:persistentId/?persistentId={ID}"
OLD = f"{BASE}/api/datasets/:persistentId/versions/1.0?persistentId={ID}"
FILE = f"{BASE}/api/files/:persistentId/?persistentId={ID}/AAAAAA&returnDatasetVersion=true"
PLATFORM = Dataverse(lambda: datetime(2026, 11, 22, 10, tzinfo=UTC))


def file(number: int, label: str, **data: Any) -> dict[str, Any]:
    outer = {k: data.pop(k) for k in ("restricted", "directoryLabel") if k in data}
    given = {
        "id": number,
        "filename": label,
        "filesize": 3,
        "contentType": "text/plain",
        "md5": "0b" * 16,
        "checksum": {"type": "MD5", "value": "0b" * 16},
    }
    return {"label": label, "restricted": False, "dataFile": given | data} | outer


def field(name: str, value: Any) -> dict[str, Any]:
    return {"typeName": name, "value": value}


def compound(**values: str) -> dict[str, Any]:
    return {name: field(name, value) for name, value in values.items()}


def version(
    *files: dict[str, Any], number: tuple[int, int] = (2, 1), **more: Any
) -> dict[str, Any]:
    citation = [
        field("title", "Weights of hives"),
        field(
            "author",
            [
                compound(
                    authorName="Včela, Jana",
                    authorAffiliation="Apiary",
                    authorIdentifierScheme="ORCID",
                    authorIdentifier="0000-0002-1825-0097",
                ),
                compound(
                    authorName="Hive Group",
                    authorIdentifierScheme="ROR",
                    authorIdentifier="https://ror.org/03yrm5c26",
                ),
            ],
        ),
        field(
            "contributor",
            [
                compound(contributorType="Data Collector", contributorName="Roj, P."),
                compound(contributorType="Funder", contributorName="Fund"),
            ],
        ),
        field(
            "dsDescription",
            [
                compound(dsDescriptionValue="<p>Ten hives.</p>"),
                compound(dsDescriptionValue="One scale."),
            ],
        ),
        field("subject", ["Agricultural Sciences"]),
        field("keyword", [compound(keywordValue="bees")]),
        field("publication", [compound(publicationIDType="doi", publicationIDNumber="10.5072/P")]),
    ]
    return {
        "id": 9,
        "datasetPersistentId": ID,
        "versionNumber": number[0],
        "versionMinorNumber": number[1],
        "versionState": "RELEASED",
        "releaseTime": "2024-05-06T07:08:09Z",
        "license": {"name": "CC0 1.0", "uri": "http://creativecommons.org/publicdomain/zero/1.0"},
        "metadataBlocks": {"citation": {"fields": citation}},
        "files": list(files),
        **more,
    }


def dataset(newest: dict[str, Any] | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": 3,
        "protocol": "doi",
        "authority": "10.5072",
        "identifier": "FK2/HIVES",
        "persistentUrl": "https://doi.org/10.5072/FK2/HIVES",
        "publisher": "Example Dataverse",
        "publicationDate": "2023-01-02",
    }
    return {"status": "OK", "data": data | ({"latestVersion": newest} if newest else {})}


TABLE = file(
    11,
    "data.tab",
    filesize=40,
    originalFileFormat="text/tsv",
    originalFileSize=33,
    originalFileName="data.tsv",
    contentType="text/tab-separated-values",
    directoryLabel="in/raw",
)


def of(*files: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the answers about a dataset of these files in its newest version."""
    return {API: dataset(version(*files, **more))}


SITE = Site(PLATFORM, URL, whole=of(TABLE, file(12, "read me.txt")))
NUMBERED = of(TABLE) | {OLD: {"data": version(TABLE, number=(1, 0))}}
SHAPES = {"version": Site(PLATFORM, f"{URL}&version=1.0", whole=NUMBERED)}


def test_the_original_of_a_table_is_asked_for_by_its_number() -> None:
    api = Pages(SITE.whole)
    item = SITE.ask(api)
    assert api.asked == [API]
    table, text = item.files
    assert (table.path, table.size, table.md5) == ("in/raw/data.tsv", 33, "0b" * 16)
    assert table.platform_url == f"{BASE}/api/access/datafile/11?format=original"
    assert (table.mimetype, table.extra["derived"]) == ("text/tsv", "data.tab")
    assert (text.path, text.size) == ("read me.txt", 3)
    assert text.platform_url == f"{BASE}/api/access/datafile/12"
    assert item.platform_id == ID
    assert (item.version, item.platform_domain) == ("2.1", "dataverse.example.org")
    assert item.web_base_url == f"{URL}&version=2.1"
    assert item.web_bundle_url == (
        f"{BASE}/api/access/dataset/:persistentId/versions/2.1?persistentId={ID}&format=original"
    )


def test_an_original_without_a_name_has_that_of_its_format() -> None:
    stata = file(1, "a.tab", originalFileFormat="application/x-stata-13", originalFileSize=4)
    other = file(2, "b.tab", originalFileFormat="application/x-unheard-of")
    found = SITE.item(of(stata, other)).files
    assert [(f.path, f.size) for f in found] == [("a.dta", 4), ("b.tab", None)]


def test_the_digest_is_of_the_kind_that_is_said() -> None:
    given = file(1, "a", checksum={"type": "SHA-512", "value": "E" * 128}, md5=None)
    (found,) = SITE.item(of(given)).files
    assert (found.sha512, found.md5) == ("e" * 128, None)


def test_a_description_has_all_that_datacite_asks_for() -> None:
    said = SITE.item().description
    assert said.creators == (JANA, Person(name="Hive Group", organisation=True))
    assert [(p.name, p.role) for p in said.contributors] == [("Roj, P.", "DataCollector")]
    assert (said.publisher, said.published) == ("Example Dataverse", "2024-05-06")
    assert (said.title, said.abstract) == ("Weights of hives", "Ten hives.\n\nOne scale.")
    assert said.subjects == ("Agricultural Sciences", "bees")
    zero = "http://creativecommons.org/publicdomain/zero/1.0"
    assert said.licences == (Licence("CC0 1.0", "CC0-1.0", zero),)
    assert said.related == (Related("10.5072/p", "DOI", "IsSupplementTo"),)
    assert (said.doi, said.url) == ("10.5072/fk2/hives", "https://doi.org/10.5072/FK2/HIVES")


@pytest.mark.parametrize(
    ("given", "licences"),
    [
        ({"license": "CC0"}, (Licence("CC0", "CC0-1.0"),)),
        ({"license": "NONE", "termsOfUse": "<b>Cite</b> us"}, (Licence("Cite us"),)),
        ({"license": "NONE"}, ()),
        ({"license": {"name": "Bees 1", "uri": "ftp://x"}}, (Licence("Bees 1"),)),
    ],
)
def test_licences_of_each_age_are_read(
    given: dict[str, Any], licences: tuple[Licence, ...]
) -> None:
    item = SITE.item(of(TABLE, **given))
    assert item.description.licences == licences


EMBARGO = {"embargo": {"dateAvailable": "2026-11-23"}}
LATER = {"embargo": {"dateAvailable": "2027-01-01"}}
PAST = {"embargo": {"dateAvailable": "2026-11-22"}}
RETAINED = {"retention": {"dateUnavailable": "2026-11-22"}}


@pytest.mark.parametrize(
    ("files", "status", "withheld", "until"),
    [
        ([file(1, "a"), file(2, "b", restricted=True)], "success", ["b"], None),
        ([file(1, "a"), file(2, "b", **EMBARGO)], "success", ["b"], "2026-11-23"),
        (
            [file(1, "a", **EMBARGO), file(2, "b", **LATER)],
            "platform-embargoed",
            ["a", "b"],
            "2026-11-23",
        ),
        ([file(1, "a", restricted=True)], "platform-restricted", ["a"], None),
        ([file(1, "a", **RETAINED)], "platform-restricted", ["a"], None),
        ([file(1, "a", **PAST)], "success", [], None),
        ([], "empty-manifest", [], None),
    ],
)
def test_files_that_are_not_given_are_told(
    files: list[dict[str, Any]], status: str, withheld: list[str], until: str | None
) -> None:
    item = SITE.item(of(*files))
    assert (item.platform_status, item.until) == (status, until)
    assert [f.path for f in item.withheld] == withheld
    assert item.description.title == "Weights of hives"


def test_a_version_that_was_asked_for_is_the_one_that_comes() -> None:
    older = version(file(5, "old.csv"), number=(1, 0))
    documents = of(TABLE) | {OLD: {"status": "OK", "data": older}}
    item = SITE.item(documents, f"{URL}&version=1.0")
    assert (item.version, [f.path for f in item.files]) == ("1.0", ["old.csv"])
    assert item.platform_id == ID
    assert item.description.publisher == "Example Dataverse"


@pytest.mark.parametrize("asked_for", ["2.1", "2", ":latest", ":latest-published"])
def test_the_newest_version_needs_no_second_question(asked_for: str) -> None:
    api = Pages(SITE.whole)
    assert SITE.ask(api, f"{URL}&version={asked_for}").version == "2.1"
    assert api.asked == [API]


@pytest.mark.parametrize("newest", [None, version(TABLE, versionState="DEACCESSIONED")])
@pytest.mark.parametrize("asked_for", ["", "&version=1.0"])
def test_a_deaccessioned_dataset_is_gone(newest: dict[str, Any] | None, asked_for: str) -> None:
    if newest is not None and asked_for:
        newest = newest | {"versionNumber": 1, "versionMinorNumber": 0}
    item = SITE.item({API: dataset(newest)}, URL + asked_for)
    assert (item.platform_status, item.platform_id, item.manifest) == ("platform-gone", ID, ())
    assert item.detail == "it was deaccessioned"


@pytest.mark.parametrize("page", ["dataset.xhtml", "file.xhtml", "citation"])
def test_a_file_is_refused_and_its_dataset_named(page: str) -> None:
    found = {"label": "a.csv", "datasetVersion": {"datasetPersistentId": ID}}
    url = f"{BASE}/{page}?persistentId={ID}/AAAAAA"
    documents = {FILE: {"status": "OK", "data": found}}
    assert SITE.refused(documents, url) == ("platform-scope", "file-level")
    with pytest.raises(Exception, match=f"a.csv is one file of the dataset {ID}"):
        SITE.item(documents, url)


SEVENTH = {f"{BASE}/api/files/7/?returnDatasetVersion=true": {"data": {"label": "a"}}}
REFUSED = cases(
    "url documents status",
    [
        (URL, {}, "platform-404"),
        (URL, {API: 401}, "platform-restricted"),
        (URL, {API: []}, "platform-bad-response"),
        (URL, {API: {"status": "OK"}}, "platform-bad-response"),
        (
            URL,
            {API: {"data": {"latestVersion": version(TABLE) | {"files": {}}}}},
            "platform-bad-response",
        ),
        (URL, of({"label": "a", "dataFile": {}}), "platform-bad-response"),
        ("https://dataverse.harvard.edu/", {}, "platform-404"),
    ],
)
REFUSED += cases(
    "url documents code",
    [
        (URL, of(TABLE, versionState="DRAFT"), "draft"),
        ("https://dataverse.harvard.edu/dataverse/bees", {}, "collection"),
        # Another version is no answer.
        (f"{URL}&version=1.0", of(TABLE) | {OLD: 404}, "wrong-version"),
        (
            f"{URL}&version=1.0",
            of(TABLE) | {OLD: {"data": version(number=(1, 1))}},
            "wrong-version",
        ),
        (f"{URL}&version=first", of(TABLE), "wrong-version"),
        (f"{URL}&version=DRAFT", of(TABLE), "draft"),
        (f"{URL}&version=:draft", of(TABLE), "draft"),
        # A file without a persistent id is named by its number.
        (f"{BASE}/file.xhtml?fileId=7&version=1.0", SEVENTH, "file-level"),
        (f"{BASE}/api/access/datafile/7", SEVENTH, "file-level"),
    ],
    status="platform-scope",
)


FORMS = [
    (f"{BASE}/citation?persistentId={ID}", None),
    (f"{BASE}/dataset.xhtml?persistentId=doi%3A10.5072%2FFK2%2FHIVES", None),
    (f"{BASE}/dataset.xhtml?persistentId=https://doi.org/10.5072/FK2/HIVES", None),
    (f"{BASE}/spa/datasets?persistentId={ID}", None),
    (f"{BASE}/api/datasets/:persistentId/?persistentId={ID}", None),
    (f"{BASE}/api/datasets/:persistentId/versions/2.1?persistentId={ID}", None),
    (f"{BASE}/api/datasets/:persistentId/versions/2.1/metadata?persistentId={ID}", None),
]
KNOWN = [("https://dataverse.nl/somewhere", "10.34894/abcdef")]


@pytest.mark.parametrize(
    ("root", "id"),
    [
        ("", "hdl:20.500.1/ABC"),
        ("", "perma:X12345"),
        ("", "doi:10.5072/FK2/ABCDE"),
        ("/dvn", "doi:10.5072/FK2/ABCDE"),
    ],
)
def test_persistent_ids_of_each_kind_are_asked_for(root: str, id: str) -> None:
    url = f"{BASE}{root}/dataset.xhtml?persistentId={id}"
    where = f"{BASE}{root}/api/datasets/:persistentId/?persistentId={id}"
    assert SITE.matches(url)
    assert len(SITE.item({where: dataset(version(TABLE))}, url).files) == 1


@pytest.mark.parametrize(
    ("protocol", "separator", "id"),
    [("perma", "", "perma:DANSA1"), ("doi", None, "doi:DANS/A1"), ("doi", "/", "doi:DANS/A1")],
)
def test_an_empty_separator_of_a_persistent_id_is_kept(
    protocol: str, separator: str | None, id: str
) -> None:
    parts = {"protocol": protocol, "authority": "DANS", "identifier": "A1"}
    given = dataset(version(TABLE, datasetPersistentId=None))
    given["data"] |= parts | ({} if separator is None else {"separator": separator})
    assert SITE.item({API: given}).platform_id == id


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/dataset.xhtml?persistentId=12",
        "https://example.org/x?persistentId=doi:10.5072/A",
        "https://example.org/file.xhtml?fileId=7",
    ],
)
def test_other_urls_are_not_taken_for_dataverses(url: str) -> None:
    assert not SITE.matches(url)


def test_a_doi_at_a_host_that_is_listed_is_enough() -> None:
    where = "https://dataverse.nl/api/datasets/:persistentId/?persistentId=doi:10.34894/ABCDEF"
    assert SITE.item({where: dataset(version(TABLE))}, *KNOWN[0]).version == "2.1"


@pytest.mark.parametrize(
    ("name", "number", "count", "original"),
    [
        ("harvard_RLMYMR_v2", "2.0", 2, "Karnataka_DD&FS_Data-1.xlsx"),
        ("harvard_TJCLKP_v3_111files", "3.0", 111, "2019-02-25.tsv"),
        ("harvard_HOLVXA_v4.1", "4.1", 3, None),
    ],
)
def test_real_datasets(name: str, number: str, count: int, original: str | None) -> None:
    document = real(f"dataverse/{name}.json")
    id = document["data"]["latestVersion"]["datasetPersistentId"]
    base = "https://dataverse.harvard.edu"
    url = f"{base}/dataset.xhtml?persistentId={id}"
    api = f"{base}/api/datasets/:persistentId/?persistentId={id}"
    item = SITE.item({api: document}, url)
    assert (item.platform_status, item.version, item.platform_id) == ("success", number, id)
    assert len(item.files) == count
    assert all(file.md5 and file.size for file in item.files)
    asked_as = [f.path for f in item.files if "?format=original" in (f.platform_url or "")]
    assert asked_as == ([original] if original else [])
    start = f"{base}/api/access/datafile/"
    ids = [(f.platform_url or "").removeprefix(start).partition("?")[0] for f in item.files]
    assert all(id.isdigit() for id in ids)
    said = item.description
    assert all((said.title, said.creators, said.published, said.abstract))
    assert (said.publisher, said.doi) == ("Harvard Dataverse", id[4:].lower())


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("gdcc_cars", ["code/compute.py", "doc/README.md", "data/stata13-auto.dta"]),
        ("gdcc_max", ["data.tsv", "doc/README.md"]),
        ("gdcc_minimal", []),
    ],
)
def test_real_versions(name: str, paths: list[str]) -> None:
    document = real(f"dataverse/{name}.json")
    newest = document.pop("datasetVersion")
    id = newest["datasetPersistentId"]
    api = f"{BASE}/api/datasets/:persistentId/?persistentId={id}"
    answer = {"status": "OK", "data": document | {"latestVersion": newest}}
    item = SITE.item({api: answer}, f"{BASE}/dataset.xhtml?persistentId={id}")
    assert sorted(file.path for file in item.files) == sorted(paths)
    assert item.platform_status == ("success" if paths else "empty-manifest")
    assert [one.spdx for one in item.description.licences] == ["CC0-1.0"]
