"""Scenarios 11 and 25, and each platform once: from a request to bytes that are verified."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builder.filesets.item import FilesetPlatformItem, IngestRequest
from builder.filesets.platforms.detect import detect
from tests.builder.filesets import samples
from tests.builder.filesets.body import digest
from tests.builder.filesets.server import Server, html, json_of, redirect, served
from tests.builder.filesets.world import World, world

BODY = b"honey,price\n" * 1000
REAL = Path(__file__).parents[3].parent / "shared" / "data" / "filesets"
STORE = "https://s3-eu-west-1.amazonaws.com"


def item_of(there: World, text: str) -> FilesetPlatformItem:
    api = there.api()
    request = IngestRequest(text)
    resource, helper = detect(request, api, lambda: datetime(2026, 11, 22, tzinfo=UTC))
    return helper.process_request(request, resource, api)


def registered(server: Server, doi: str, url: str) -> str:
    value = {"index": 1, "type": "URL", "data": {"format": "string", "value": url}}
    server.add(f"https://doi.org/api/handles/{doi}", json_of({"values": [value]}))
    return f"https://doi.org/{doi}"


def verified(there: World, item: FilesetPlatformItem) -> list[str | None]:
    """Fetch all files, which have the same bytes, and return what each was verified by."""
    found = []
    for file in item.files:
        received = there.downloader().download(file, 10**6, there.sink)
        assert (received.size, received.md5) == (len(BODY), digest("md5", BODY))
        found.append(received.verified)
    return found


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
    server: Server, there: World, page: str, doi: str
) -> None:
    given = article("a.csv", computed_md5="")
    server.add(f"{samples.FIGSHARE}/versions/2", json_of(given | {"url_public_html": page}))
    server.add("https://ndownloader.figshare.com/files/0", redirect(f"{STORE}/pfigshare/0?X-Amz=1"))
    server.add(f"{STORE}/pfigshare/0?X-Amz=1", served(BODY))
    item = item_of(there, registered(server, doi, page))
    assert (item.platform_name, item.platform_id, item.version) == ("figshare", "4711", "2")
    assert item.platform_domain in page
    assert [file.extra["md5_from"] for file in item.files] == ["supplied_md5"]
    assert verified(there, item) == ["md5"]
    assert not server.asked(method="HEAD")


def test_scenario_11_a_portal_of_any_form_is_known_by_its_page(
    server: Server, there: World
) -> None:
    page = "https://data.beekeepers.cz/articles/media/Honey/4711"
    server.add(
        page, html("<html><script src='https://static.figshare.com/app.js'></script></html>")
    )
    server.add(samples.FIGSHARE, json_of(article("a.csv") | {"url_public_html": page}))
    assert item_of(there, page).platform_name == "figshare"


def archiveorg(server: Server, name: str, given: Any) -> str:
    server.add(f"https://archive.org/metadata/{name}", json_of(given))
    return f"https://archive.org/details/{name}"


def test_scenario_25_an_item_has_what_was_put_into_it(server: Server, there: World) -> None:
    given = samples.archiveorg()
    for file in given["files"][:2]:
        file |= {"size": str(len(BODY))}
        file |= {name: digest(name, BODY) for name in ("md5", "sha1", "crc32")}
        url = f"https://archive.org/download/honey-1903/{file['name'].replace(' ', '%20')}"
        server.add(url, redirect(f"https://ia601302.us.archive.org/{len(file['name'])}"))
        server.add(f"https://ia601302.us.archive.org/{len(file['name'])}", served(BODY))
    item = item_of(there, archiveorg(server, "honey-1903", given))
    assert [file.path for file in item.files] == ["honey/1903.csv", "scan 1.tif"]
    assert verified(there, item) == ["sha1", "sha1"]


def test_a_dataset_of_dryad(server: Server, tmp_path: Path) -> None:
    there = world(server, tmp_path, fileset__tokens={"datadryad.org": "honey"})
    file = samples.dryad_file(1, size=len(BODY), digest=digest("sha256", BODY))
    server.add(samples.DRYAD, json_of(samples.dryad()))
    server.add(samples.DRYAD_FILES, json_of(samples.dryad_page([file], 1)))
    server.add("https://datadryad.org/api/v2/files/1/download", redirect(f"{STORE}/dryad/1"))
    server.add(f"{STORE}/dryad/1", served(BODY))
    page = "https://datadryad.org/dataset/doi:10.5061/dryad.h0n3y"
    item = item_of(there, registered(server, "10.5061/dryad.h0n3y", page))
    assert verified(there, item) == ["sha256"]
    shown = {one.host for one in server.asked() if "authorization" in one.headers}
    assert shown == {"datadryad.org"}


def test_a_project_of_osf(server: Server, there: World) -> None:
    api = "https://api.osf.io/v2"
    told = {"hashes": {"md5": digest("md5", BODY), "sha256": digest("sha256", BODY)}}
    file = samples.osf_entry("f1", "/a.csv", size=len(BODY), extra=told)
    provider = samples.osf_entry("osfstorage", "/")
    sized = "?page%5Bsize%5D=100"
    answers = {
        f"{api}/guids/hny12/": samples.osf(),
        f"{samples.OSF}?embed=contributors&embed=license&embed=identifiers": samples.osf(),
        f"{samples.OSF}files/{sized}": samples.osf_page([provider], 1),
        f"{samples.OSF}files/osfstorage/osfstorage/{sized}": samples.osf_page([file], 1),
    }
    for url, given in answers.items():
        server.add(url, json_of(given))
    server.add("https://osf.io/download/f1/", served(BODY))
    assert verified(there, item_of(there, "https://osf.io/hny12/")) == ["sha256"]


def test_a_dataset_of_mendeley(server: Server, there: World) -> None:
    file = samples.mendeley_file("f-1", "a.csv")
    file["content_details"] |= {"size": len(BODY), "sha256_hash": digest("sha256", BODY)}
    answers = {
        f"{samples.MENDELEY}/snapshot/2": samples.mendeley(files=[{"id": "f-1"}]),
        f"{samples.MENDELEY}/folders/2": [],
        f"{samples.MENDELEY}/files?folder_id=root&version=2": [file],
    }
    for url, given in answers.items():
        server.add(url, json_of(given))
    server.add(file["content_details"]["download_url"], served(BODY))
    page = "https://data.mendeley.com/datasets/h0n3ybees1/2"
    item = item_of(there, registered(server, "10.17632/h0n3ybees1.2", page))
    assert verified(there, item) == ["sha256"]


def test_a_table_of_pangaea(server: Server, there: World) -> None:
    server.add(f"{samples.PANGAEA}?format=metadata_jsonld", json_of(samples.pangaea()))
    server.add(f"{samples.PANGAEA}?format=textfile", served(BODY, "text/tab-separated-values"))
    url = registered(server, "10.1594/pangaea.4711", samples.PANGAEA)
    assert verified(there, item_of(there, url)) == [None]


def test_a_dataset_of_a_ckan_that_no_list_names(server: Server, there: World) -> None:
    root = "https://data.brno.example"
    url = f"{root}/dataset/d/resource/r-1/download/prices.csv"
    resource = samples.ckan_resource("r-1", url=url, size=len(BODY), hash=digest("md5", BODY))
    given = samples.ckan(resources=[resource], num_resources=1)
    server.add(f"{root}/api/3/action/package_show?id=honey-prices", json_of(given))
    server.add(url, served(BODY, "text/csv"))
    item = item_of(there, f"{root}/dataset/honey-prices")
    assert (item.platform_name, item.platform_domain) == ("ckan", "data.brno.example")
    assert verified(there, item) == ["md5"]
