"""Scenarios 4, 6 and 7 as far as manifests go: from a DOI to bytes that have their digests.

Each is played with made answers, and with the platforms' real ones where these are at hand.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from builder.filesets.item import FilesetPlatformItem
from builder.filesets.protocols import FilesetError
from tests.builder.filesets.pages import REAL, real
from tests.builder.filesets.server import Server, html, json_of, redirect, served, status, text
from tests.builder.filesets.test_platform_scenarios import item_of, registered
from tests.builder.filesets.world import World

ZENODO = "https://zenodo.org"
HARVARD = "https://dataverse.harvard.edu"
STORE = "https://store.example.org"
SPREADSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def fetched(there: World, item: FilesetPlatformItem) -> dict[str, str]:
    """Return the SHA-256 of each file, by path, all of them verified by their MD5."""
    found = {}
    for file in item.files:
        received = there.downloader().download(file, 10**9, there.sink)
        assert received.verified == "md5"
        found[file.path] = received.sha256
    return found


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def zenodo(server: Server, record: dict[str, Any], bodies: dict[str, bytes]) -> str:
    """Serve a record of the legacy shape with its files, and return its DOI."""
    id = record["id"]
    server.add(f"{ZENODO}/api/records/{id}", json_of(record))
    for file in record["files"]:
        server.add(file["links"]["self"], served(bodies[file["key"]]))
    registered(server, record["doi"], f"{ZENODO}/record/{id}")
    return str(record["doi"])


def made(bodies: dict[str, bytes]) -> dict[str, Any]:
    bucket = f"{ZENODO}/api/files/0b"
    return {
        "id": 21,
        "conceptrecid": "20",
        "doi": "10.5281/zenodo.21",
        "metadata": {"title": "Hives", "access_right": "open"},
        "files": [
            {
                "key": name,
                "size": len(body),
                "links": {"self": f"{bucket}/{name}"},
                "checksum": f"md5:{hashlib.md5(body).hexdigest()}",
            }
            for name, body in bodies.items()
        ],
    }


def true_record() -> tuple[dict[str, Any], dict[str, bytes]]:
    record = real("zenodo/legacy_record_7078725.json")
    folder = REAL / "zenodo" / "bodies" / "7078725"
    return record, {file.name: file.read_bytes() for file in folder.iterdir()}


def reshaped(record: dict[str, Any], shape: str) -> dict[str, Any]:
    """Return a legacy record as Zenodo answered in autumn 2023, or answers today."""
    base = f"{ZENODO}/api/records/{record['id']}/files"
    files = []
    for file in record["files"]:
        own = f"{base}/{file['key']}"
        if shape == "autumn":
            bare = file["checksum"].removeprefix("md5:")
            links = {"self": own, "download": f"{own}/content"}
            given = {"filename": file["key"], "filesize": file["size"], "checksum": bare}
        else:
            links = {"self": f"{own}/content"}
            given = {name: file[name] for name in ("key", "size", "checksum")}
        files.append(given | {"links": links})
    return record | {"files": files}


@pytest.mark.parametrize("true", [False, True], ids=["made", "real"])
def test_scenario_4_all_shapes_of_a_record_are_one_manifest(
    server: Server, there: World, true: bool
) -> None:
    bodies = {"a.csv": b"hive,kg\n1,20\n", "c.xls": bytes(range(256))}
    record, bodies = true_record() if true else (made(bodies), bodies)
    zenodo(server, record, bodies)
    url = f"{ZENODO}/records/{record['id']}"
    told = []
    for shape in ("legacy", "autumn", "today"):
        given = record if shape == "legacy" else reshaped(record, shape)
        server.add(f"{ZENODO}/api/records/{record['id']}", json_of(given))
        item = item_of(there, url)
        told.append([(file.path, file.size, file.md5) for file in item.files])
        for file in item.files:
            server.add(file.platform_url or "", served(bodies[file.path]))
        assert fetched(there, item) == {name: sha256(body) for name, body in bodies.items()}
    assert told[0] == told[1] == told[2]


def dataverse(server: Server, document: dict[str, Any], bodies: dict[int, bytes]) -> str:
    """Serve a dataset; files lead to a store that refuses HEAD. Return its persistent id.

    A table that is asked for without `format=original` is another, derived one.
    """
    newest = document["data"]["latestVersion"]
    id = str(newest["datasetPersistentId"])
    server.add(f"{HARVARD}/api/datasets/:persistentId/?persistentId={id}", json_of(document))
    registered(server, id[4:], f"{HARVARD}/citation?persistentId={id}")
    for number, body in bodies.items():
        path = f"{HARVARD}/api/access/datafile/{number}"
        server.add(f"{path}?format=original", redirect(f"{STORE}/{number}.orig?X-Sign=1", 303))
        server.add(path, redirect(f"{STORE}/{number}?X-Sign=1", 303))
        server.add(f"{STORE}/{number}.orig", served(body))
        server.add(f"{STORE}/{number}", served(b"derived\t" + body))
    return id


def with_bodies(document: dict[str, Any]) -> dict[int, bytes]:
    """Have a real dataset's originals be made ones, for true ones are not at hand."""
    bodies = {}
    for file in document["data"]["latestVersion"]["files"]:
        data = file["dataFile"]
        body = b"original of %d" % data["id"]
        bodies[data["id"]] = body
        data["md5"] = data["checksum"]["value"] = hashlib.md5(body).hexdigest()
        data["originalFileSize" if "originalFileFormat" in data else "filesize"] = len(body)
    return bodies


def dataset(*files: dict[str, Any]) -> dict[str, Any]:
    newest = {
        "datasetPersistentId": "doi:10.5072/FK2/HIVES",
        "versionNumber": 4,
        "versionMinorNumber": 1,
        "versionState": "RELEASED",
        "files": [{"label": file["filename"], "dataFile": file} for file in files],
    }
    return {"status": "OK", "data": {"publisher": "Harvard Dataverse", "latestVersion": newest}}


def table(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "persistentId": f"doi:10.5072/FK2/HIVES/{number}",
        "filename": "hives.tab",
        "filesize": 999,
        "originalFileFormat": SPREADSHEET,
        "originalFileName": "hives.xlsx",
        "checksum": {},
    }


@pytest.mark.parametrize("name", ["made", "harvard_RLMYMR_v2", "harvard_TJCLKP_v3_111files"])
def test_scenario_6_the_original_of_a_table_is_fetched(
    server: Server, there: World, name: str
) -> None:
    document = dataset(table(7)) if name == "made" else real(f"dataverse/{name}.json")
    bodies = with_bodies(document)
    files = document["data"]["latestVersion"]["files"]
    tables = [f["dataFile"]["id"] for f in files if "originalFileFormat" in f["dataFile"]]
    others = [number for number in bodies if number not in tables][:3]
    id = dataverse(server, document, bodies)
    item = item_of(there, id)
    wanted = {str(number) for number in (*tables, *others)}
    some = [file for file in item.files if file.extra["id"] in wanted]
    for file in some:
        if int(file.extra["id"]) in others:  # which the fake store gives as it is
            server.add(f"{STORE}/{file.extra['id']}", served(bodies[int(file.extra["id"])]))
        received = there.downloader().download(file, 10**9, there.sink)
        assert received.sha256 == sha256(bodies[int(file.extra["id"])])
        assert received.verified == "md5"
    assert len(tables) == 1
    assert len(item.files) == len(files)
    assert server.asked(f"{STORE}/{tables[0]}.orig")
    assert not server.asked(method="HEAD")


def test_scenario_6_the_derived_table_would_not_pass(server: Server, there: World) -> None:
    """That the derived table is refused shows that the original's digest is what is compared."""
    document = dataset(table(7))
    bodies = with_bodies(document)
    dataverse(server, document, bodies)
    server.add(f"{STORE}/7.orig", served(b"derived\t" + bodies[7]))
    file = item_of(there, "doi:10.5072/FK2/HIVES").files[0]
    with pytest.raises(FilesetError) as raised:
        there.downloader().download(file, 10**9, there.sink)
    assert raised.value.status.startswith(("mismatch-", "over-limit"))


@pytest.mark.parametrize("name", ["made", "harvard_HOLVXA_v4.1"])
def test_scenario_7_files_without_ids_are_fetched_by_their_numbers(
    server: Server, there: World, name: str
) -> None:
    plain = {"id": 8, "persistentId": "", "filename": "a.csv", "filesize": 1, "checksum": {}}
    document = dataset(plain) if name == "made" else real(f"dataverse/{name}.json")
    bodies = with_bodies(document)
    id = dataverse(server, document, bodies)
    for number, body in bodies.items():
        server.add(f"{STORE}/{number}", served(body))
    item = item_of(there, id)
    assert item.version == "4.1"
    assert sorted(fetched(there, item).values()) == sorted(map(sha256, bodies.values()))
    start = f"{HARVARD}/api/access/datafile/"
    assert {f.platform_url for f in item.files} == {f"{start}{number}" for number in bodies}


def test_a_tombstone_is_read_over_the_wire(server: Server, there: World) -> None:
    stone = json.dumps({"status": 410, "tombstone": {"note": "withdrawn by its author"}})
    server.add(f"{ZENODO}/api/records/21", text(stone, "application/json", 410))
    item = item_of(there, f"{ZENODO}/records/21")
    assert (item.platform_status, item.detail) == ("platform-gone", "withdrawn by its author")


def test_a_concept_is_redirected_to_and_refused(server: Server, there: World) -> None:
    server.add(f"{ZENODO}/api/records/20", redirect(f"{ZENODO}/api/records/21", 301))
    server.add(f"{ZENODO}/api/records/21", json_of(made({"a": b"1"})))
    with pytest.raises(FilesetError) as raised:
        item_of(there, f"{ZENODO}/records/20")
    assert (raised.value.status, raised.value.code) == ("platform-scope", "work-level")


def test_a_landing_page_leads_to_a_probe_over_the_wire(server: Server, there: World) -> None:
    page = '<html><head><meta name="citation_doi" content="10.5072/FK2/HIVES"></head></html>'
    server.add("https://catalogue.example.org/7", redirect("https://new.example.org/view/7"))
    server.add("https://new.example.org/view/7", html(page))
    server.add("https://new.example.org/robots.txt", status(404))
    server.add("https://catalogue.example.org/robots.txt", status(404))
    server.add(
        "https://new.example.org/api/info/version",
        json_of({"status": "OK", "data": {"version": "6.2"}}),
    )
    document = dataset({"id": 8, "filename": "a.csv", "filesize": 1, "checksum": {}})
    url = "https://new.example.org/api/datasets/:persistentId/?persistentId=doi:10.5072/FK2/HIVES"
    server.add(url, json_of(document))
    item = item_of(there, "https://catalogue.example.org/7")
    assert (item.platform_name, item.platform_domain) == ("dataverse", "new.example.org")
    assert Path(item.files[0].path).name == "a.csv"
