"""Scenarios 6, 7 and 11: from a DOI to bytes that have their digests, over the wire.

They are played with made answers, and with Dataverse's real ones where these are at hand.
"""

import hashlib
from typing import Any

import pytest

from tests.builder.sources.datasets import samples
from tests.builder.sources.datasets.body import digest
from tests.builder.sources.datasets.deposits import register
from tests.builder.sources.datasets.pages import item_of, real
from tests.builder.sources.datasets.server import json_of, redirect, served
from tests.builder.sources.datasets.world import World

BODY = b"honey,price\n" * 1000
HARVARD = "https://dataverse.harvard.edu"
STORE = "https://store.example.org"
SPREADSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def article(*names: str, **more: Any) -> dict[str, Any]:
    md5 = digest("md5", BODY)
    told = {"size": len(BODY), "computed_md5": md5, "supplied_md5": md5, **more}
    files = [samples.figshare_file(number, name, **told) for number, name in enumerate(names)]
    return samples.figshare(files=files, size=len(BODY) * len(files))


@pytest.mark.parametrize(
    ("page", "doi"),
    [
        ("https://brno.figshare.com/articles/dataset/Honey/4711/2", "10.25573/data.4711.v2"),
        ("https://data.beekeepers.cz/articles/dataset/Honey/4711/2", "10.5072/bees.4711.v2"),
    ],
    ids=["below figshare.com", "a host of its own"],
)
def test_scenario_11_an_md5_that_was_supplied_verifies_and_a_portal_is_known(
    there: World, page: str, doi: str
) -> None:
    given = article("a.csv", computed_md5="")
    there.server.add(f"{samples.FIGSHARE}/versions/2", json_of(given | {"url_public_html": page}))
    there.server.add(
        "https://ndownloader.figshare.com/files/0", redirect(f"{STORE}/pfigshare/0?X-Amz=1")
    )
    there.server.add(f"{STORE}/pfigshare/0?X-Amz=1", served(BODY))
    register(there.server, doi, page)
    item = item_of(there.api(), f"https://doi.org/{doi}")
    assert (item.platform_name, item.platform_id, item.version) == ("figshare", "4711", "2")
    assert item.platform_domain in page
    (file,) = item.files
    assert file.extra["md5_from"] == "supplied_md5"
    assert there.downloader().download(file, 10**6, there.sink).verified == "md5"
    assert there.kept == [BODY]
    assert not there.server.asked(method="HEAD")


def dataset(*files: dict[str, Any]) -> dict[str, Any]:
    newest = {
        "datasetPersistentId": "doi:10.5072/FK2/HIVES",
        "versionNumber": 4,
        "versionMinorNumber": 1,
        "versionState": "RELEASED",
        "files": [{"label": file["filename"], "dataFile": file} for file in files],
    }
    return {"status": "OK", "data": {"publisher": "Harvard Dataverse", "latestVersion": newest}}


TABLE = {
    "id": 7,
    "persistentId": "doi:10.5072/FK2/HIVES/7",
    "filename": "hives.tab",
    "filesize": 999,
    "originalFileFormat": SPREADSHEET,
    "originalFileName": "hives.xlsx",
    "checksum": {},
}
PLAIN = {"id": 8, "persistentId": "", "filename": "a.csv", "filesize": 1, "checksum": {}}


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("made", ["7"]),
        ("harvard_RLMYMR_v2", None),
        ("harvard_TJCLKP_v3_111files", None),
        ("harvard_HOLVXA_v4.1", []),
    ],
)
def test_scenarios_6_and_7_originals_of_tables_are_fetched_and_files_by_their_numbers(
    there: World, name: str, tables: list[str] | None
) -> None:
    """True bodies are not at hand, so made ones stand for them.

    A table that is asked for without `format=original` is another, derived one.
    """
    document = dataset(TABLE, PLAIN) if name == "made" else real(f"dataverse/{name}.json")
    newest = document["data"]["latestVersion"]
    id, bodies, originals = newest["datasetPersistentId"], {}, []
    for file in newest["files"]:
        data = file["dataFile"]
        number, body = str(data["id"]), b"original of %d" % data["id"]
        bodies[number] = body
        data["md5"] = data["checksum"]["value"] = hashlib.md5(body).hexdigest()
        table = "originalFileFormat" in data
        originals += [number] * table
        data["originalFileSize" if table else "filesize"] = len(body)
        path = f"{HARVARD}/api/access/datafile/{number}"
        there.server.add(
            f"{path}?format=original", redirect(f"{STORE}/{number}.orig?X-Sign=1", 303)
        )
        there.server.add(path, redirect(f"{STORE}/{number}?X-Sign=1", 303))
        there.server.add(f"{STORE}/{number}.orig", served(body))
        there.server.add(f"{STORE}/{number}", served(b"derived\t" + body if table else body))
    there.server.add(f"{HARVARD}/api/datasets/:persistentId/?persistentId={id}", json_of(document))
    register(there.server, id[4:], f"{HARVARD}/citation?persistentId={id}")
    item = item_of(there.api(), id)
    assert len(item.files) == len(bodies)
    assert originals == tables if tables is not None else len(originals) == 1
    for file in item.files:
        number = str(file.extra["id"])
        if number in originals or len(there.kept) < 3:
            received = there.downloader().download(file, 10**9, there.sink)
            assert (received.verified, there.kept[-1]) == ("md5", bodies[number])
    assert len(there.server.asked(f"{STORE}/")) >= min(3, len(bodies))
    assert not there.server.asked(method="HEAD")
