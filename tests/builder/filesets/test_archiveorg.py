"""Files in items of archive.org: put there once, told again, never written over."""

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builder.filesets.ingest import Ingest
from builder.filesets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    IngestRequest,
    Licence,
    Person,
)
from builder.filesets.protocols import Api, FilesetError
from builder.filesets.result import result
from builder.filesets.strategies.archiveorg import Items
from builder.filesets.strategies.archiveorg_client import ArchiveClient
from builder.filesets.strategies.keys import item_name, place
from builder.store.folder import FolderStore
from tests.builder.filesets.body import Body, Generated, chunks
from tests.builder.filesets.ias3 import KEYS, META, Internet, internet
from tests.builder.filesets.server import Server, served, then
from tests.builder.filesets.test_s3 import strategy
from tests.builder.filesets.world import World, fileset_settings, manifest_file, settings_of

BODIES: dict[str, Body] = {
    "data/a.csv": b"hive,kg\n1,20\n",
    "č b.txt": "Včela\n".encode(),
    "empty": b"",
    "large.bin": Generated(9 << 20),
}
HOST = "https://data.example.org/files/"


@pytest.fixture
def site(server: Server) -> Internet:
    return internet(server)


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


def item_of(
    server: Server, bodies: dict[str, Body], digests: str = "md5", **given: Any
) -> FilesetPlatformItem:
    manifest = [
        manifest_file(server.add(f"{HOST}{number}", served(body)), body, path, digests)
        for number, (path, body) in enumerate(bodies.items())
    ]
    found = FilesetPlatformItem(
        platform_name="dataverse",
        platform_domain="data.example.org",
        platform_id="doi:10.5072/FK2/HIVES",
        version="1.0",
        manifest=tuple(manifest),
        web_base_url="https://data.example.org/set/1",
        description=Description(
            title="Váhy úlů",
            creators=(Person(name="Včela, Jana"), Person(name="Roj, Petr")),
            subjects=("bees",),
            doi="10.5072/fk2/hives",
            licences=(Licence("CC0", "CC0-1.0", "https://example.org/cc0"),),
        ),
    )
    return replace(found, **given)


def asked(
    site: Internet, there: World, store: FolderStore, name: str = "archiveorg-fileset", **more: Any
) -> Items:
    environment = more.pop("keys", KEYS)
    archive = client(there, environment)
    go_on = more.pop("go_on", lambda: None)
    settings = fileset_settings(**more)
    scratch = store.root.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    return Items(name, store, there.downloader(), settings, archive, scratch, go_on=go_on)


def client(there: World, keys: Mapping[str, str] = KEYS) -> ArchiveClient:
    return ArchiveClient.of(keys, replace(there.api(), tries=3), 60.0)


def whole(body: Body) -> bytes:
    return b"".join(chunks(body))


def refused(run: Items, item: FilesetPlatformItem) -> FilesetError:
    with pytest.raises(FilesetError) as raised:
        run.process(item)
    return raised.value


def test_each_file_is_put_and_the_record_comes_last(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    item = item_of(server, BODIES)
    run = asked(site, there, store)
    assert run.check_existing(item) is None
    found = run.process(item)
    assert (found.ingest_strategy, found.status) == ("archiveorg-fileset", "success")
    name = item_name(item)
    assert site.items == {name: {path: whole(body) for path, body in BODIES.items()}}
    for file in found.manifest:
        assert (file.status, file.key, file.offset) == ("verified", None, None)
        assert file.sha256 == hashlib.sha256(whole(BODIES[file.path])).hexdigest()
        assert file.terminal_url == file.platform_url
    assert list(store.keys("filesets/")) == [place(item) + "fileset.json"]
    assert not list((store.root.parent / "scratch").iterdir())


def test_an_item_tells_what_it_is(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    item = item_of(server, {"a": b"1"}, archiveorg_item_meta={"collection": ["bees"]})
    asked(site, there, store).process(item)
    (told,) = site.metadata.values()
    assert told == {
        "mediatype": ["data"],
        "title": ["Váhy úlů"],
        "creator": ["Včela, Jana", "Roj, Petr"],
        "subject": ["bees"],
        "licenseurl": ["https://example.org/cc0"],
        "external-identifier": ["urn:doi:10.5072/fk2/hives"],
        "originalurl": ["https://data.example.org/set/1"],
        "version": ["1.0"],
        "collection": ["bees"],
    }


def test_what_another_strategy_keeps_is_kept(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    item = item_of(server, {"a": b"1", "b": b"2"})
    found = strategy(store, there).process(item)
    again = asked(site, there, store).check_existing(item)
    assert again == replace(found, status="success-existing")
    assert not site.log


def test_a_run_that_broke_off_is_gone_on_with(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    item = item_of(server, {"a": b"1", "b": b"2"})
    run = asked(site, there, store)
    found = run.process(item)
    store.remove(place(item) + "fileset.json")
    del site.items[item_name(item)]["b"]
    server.forget()
    site.log.clear()
    again = run.process(item)
    assert [(f.path, f.status) for f in again.manifest] == [("a", "exists"), ("b", "verified")]
    assert [a.url for a in server.asked(HOST)] == [f"{HOST}1"]
    assert [path.rpartition("/")[2] for path in site.puts()] == ["b"]
    assert [f.md5 for f in again.manifest] == [f.md5 for f in found.manifest]


@pytest.mark.parametrize("digests", ["md5", ""])
def test_another_file_of_that_name_is_not_written_over(
    server: Server, there: World, site: Internet, store: FolderStore, digests: str
) -> None:
    item = item_of(server, {"a": b"1"}, digests=digests)
    site.items[item_name(item)] = {"a": b"!"}
    error = refused(asked(site, there, store), item)
    assert error.status == "mismatch-existing"
    assert [f.status for f in error.manifest] == ["mismatch-existing"]
    assert not site.puts()


def test_a_file_without_a_digest_that_is_there_is_not_put_again(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    item = item_of(server, {"a": b"1"}, digests="")
    site.items[item_name(item)] = {"a": b"1"}
    found = asked(site, there, store).process(item)
    assert [f.status for f in found.manifest] == ["unverified"]
    assert not site.puts()


def test_what_archive_org_works_on_counts_as_there(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    item = item_of(server, {"a": b"1", "b": b"2"})
    site.slow = True
    run = asked(site, there, store)
    found = run.process(item)
    assert found.status == "success"
    assert run.check_existing(item) == replace(found, status="success-existing")


def test_a_bundle_is_one_zip_of_all(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    item = item_of(server, BODIES)
    found = asked(site, there, store, "archiveorg-fileset-bundled").process(item)
    assert (found.status, found.bundle_archiveorg_path) == ("success", "bundle.zip")
    kept = site.items[item_name(item)]
    assert list(kept) == ["bundle.zip"]
    body = kept["bundle.zip"]
    assert found.bundle_file_meta is not None
    assert found.bundle_file_meta.sha256hex == hashlib.sha256(body).hexdigest()
    with zipfile.ZipFile(io.BytesIO(body)) as bundle:
        assert bundle.testzip() is None
        assert {n: bundle.read(n) for n in bundle.namelist()} == {
            path: whole(given) for path, given in BODIES.items()
        }
    for file in found.manifest:
        assert file.key is None
        assert file.offset is not None
        wanted = whole(BODIES[file.path])
        assert body[file.offset : file.offset + len(wanted)] == wanted


def test_a_bundle_that_is_there_and_not_recorded_is_not_put_again(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    item = item_of(server, {"a": b"1", "b": b"2"})
    run = asked(site, there, store, "archiveorg-fileset-bundled")
    found = run.process(item)
    store.remove(place(item) + "fileset.json")
    site.log.clear()
    again = run.process(item)
    assert again.bundle_file_meta == found.bundle_file_meta
    assert not site.puts()


def test_a_large_member_that_breaks_off_begins_the_bundle_anew(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    body = Generated(10 << 20)
    item = item_of(server, {"a": b"1", "b": body})
    broken = served(body, cut=9 << 20, ranges=False, etag=None, modified=None)
    server.add(f"{HOST}1", then(broken, served(body, ranges=False)))
    found = asked(site, there, store, "archiveorg-fileset-bundled").process(item)
    assert found.status == "success"
    with zipfile.ZipFile(io.BytesIO(site.items[item_name(item)]["bundle.zip"])) as bundle:
        assert bundle.read("b") == whole(body)


@pytest.mark.parametrize(
    ("refusals", "puts"), [([503], 2), ([503, 500], 3), ([503, 503, 503], 3), ([403], 1)]
)
def test_refusals_that_pass_are_tried_again(
    server: Server, there: World, site: Internet, store: FolderStore, refusals: list[int], puts: int
) -> None:
    item = item_of(server, {"a": b"1"})
    site.refusals = list(refusals)
    run = asked(site, there, store)
    if puts > len(refusals):
        assert run.process(item).status == "success"
    else:
        error = refused(run, item)
        assert error.status == "error-store-upload"
        assert "archive.org" in error.detail
        assert list(store.keys("filesets/")) == []
    assert len(site.puts()) == puts


@pytest.mark.parametrize("unread", [[500], [500, 500, 500]])
def test_metadata_that_is_not_had_is_asked_for_again(
    server: Server, there: World, site: Internet, store: FolderStore, unread: list[int]
) -> None:
    item = item_of(server, {"a": b"1"})
    run = asked(site, there, store)
    run.process(item)
    site.unread = list(unread)
    if len(unread) < 3:
        assert run.check_existing(item) is not None
    else:
        with pytest.raises(FilesetError) as raised:
            run.check_existing(item)
        assert raised.value.status == "error-store-verify"


def test_what_is_put_and_comes_out_other_is_told(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    site.spoils = True
    error = refused(asked(site, there, store), item_of(server, {"a": b"12"}))
    assert error.status == "error-store-verify"
    assert list(store.keys("filesets/")) == []


@pytest.mark.parametrize("keys", [{}, {"IA_ACCESS_KEY": "a"}, {"IA_SECRET_KEY": "b"}])
def test_without_keys_nothing_is_fetched(
    server: Server, there: World, site: Internet, store: FolderStore, keys: dict[str, str]
) -> None:
    run = asked(site, there, store, keys=keys)
    error = refused(run, item_of(server, {"a": b"1"}))
    assert error.status == "not-implemented"
    assert "IA_ACCESS_KEY" in error.detail
    assert not server.asked(HOST)
    assert not site.log


def test_wrong_keys_are_refused(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    wrong = {"IA_ACCESS_KEY": "access", "IA_SECRET_KEY": "wrong"}
    error = refused(asked(site, there, store, keys=wrong), item_of(server, BODIES))
    assert error.status == "error-store-upload"
    assert "archive.org: HTTP status 403: no: AccessDenied" in error.detail
    assert "wrong" not in error.detail
    assert len(site.puts()) == 1


def test_keys_are_sent_to_the_s3_interface_alone(there: World) -> None:
    credentials = client(there).api.client.credentials
    assert credentials("https://s3.us.archive.org/a/b") == {"Authorization": "LOW access:secret"}
    for url in ("http://s3.us.archive.org/a/b", "https://s3.us.archive.org.example/a", META):
        assert credentials(url) == {}


def hosted(site: Internet) -> FilesetPlatformItem:
    """Return a dataset that archive.org hosts itself."""
    site.items["hives"] = {"a": b"1", "b": b"22"}
    manifest = [
        FilesetManifestFile(
            path=path,
            size=len(body),
            md5=hashlib.md5(body).hexdigest(),
            platform_url=f"https://archive.org/download/hives/{path}",
        )
        for path, body in site.items["hives"].items()
    ]
    return FilesetPlatformItem(
        platform_name="archiveorg",
        platform_domain="archive.org",
        platform_id="hives",
        archiveorg_item_name="hives",
        manifest=tuple(manifest),
    )


def test_what_archive_org_hosts_is_there_already(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    item = hosted(site)
    run = asked(site, there, store, keys={})
    found = run.process(item)
    assert (found.status, [f.status for f in found.manifest]) == ("success", ["exists"] * 2)
    assert found.manifest[1].sha1 == hashlib.sha1(b"22").hexdigest()
    assert run.check_existing(item) == replace(found, status="success-existing")
    assert not site.puts()
    assert not server.asked(HOST)


@pytest.mark.parametrize("change", ["gone", "other"])
def test_what_archive_org_hosts_and_changes_meanwhile_is_told(
    there: World, site: Internet, store: FolderStore, change: str
) -> None:
    item = hosted(site)
    if change == "gone":
        del site.items["hives"]["a"]
    else:
        site.items["hives"]["a"] = b"3"
    assert refused(asked(site, there, store), item).status == "changed-during-ingest"


@pytest.mark.parametrize("bundle", ["never", "always"])
def test_a_request_tells_the_item_that_has_its_files(
    server: Server, there: World, site: Internet, store: FolderStore, bundle: str
) -> None:
    item = item_of(server, {"a": b"1", "b": b"2"})
    api = f"{HOST}api"
    settings = settings_of({"fileset.strategy": {"backend": "archiveorg", "bundle": bundle}})

    class Platform:
        name = "dataverse"

        def match_request(self, request: IngestRequest, resource: DatasetResource) -> bool:
            return True

        def process_request(
            self, request: IngestRequest, resource: DatasetResource, api: Api
        ) -> FilesetPlatformItem:
            return item

    ingest = Ingest(
        detect=lambda request, _: (DatasetResource(url=request.base_url), Platform()),
        api=there.ways.api,
        strategy=lambda name, until, go_on: asked(site, there, store, name),
        settings=settings,
        clock=lambda: datetime(2026, 11, 22, tzinfo=UTC),
        seconds=600,
    )
    told = result(ingest.process(IngestRequest(api)))
    (name,) = site.items
    assert (told["status"], told["archiveorg_item_name"]) == ("success", name)
    if bundle == "always":
        assert told["fileset_bundle"]["archiveorg_bundle_path"] == "bundle.zip"
        assert told["fileset_bundle"]["file_meta"]["size_bytes"] == len(
            site.items[name]["bundle.zip"]
        )
    other = settings.having(
        "fileset.strategy", {"backend": "archiveorg", "bundle": bundle, "item_prefix": "lib-"}
    )
    for later in (ingest, replace(ingest, settings=other)):
        again = result(later.process(IngestRequest(api)))
        assert (again["status"], again["archiveorg_item_name"]) == ("success-existing", name)


SANDCRAWLER = {"item_names": "sandcrawler"}


@pytest.mark.parametrize(
    ("platform", "host", "id_", "version", "name"),
    [
        (
            "dataverse",
            "dataverse.harvard.edu",
            "doi:10.7910/DVN/HIVES1",
            "2.1",
            "dataverse.harvard.edu-HIVES1-v2.1",
        ),
        ("figshare", "brno.figshare.com", "4711", "3", "brno.figshare.com-4711-v3"),
        ("zenodo", "zenodo.org", "21", "23", "zenodo.org-23"),
        ("dryad", "datadryad.org", "10.5061/dryad.h0n3y", "2", "datadryad.org-dryad.h0n3y-v2"),
        ("osf", "osf.io", "hny12", None, "osf.io-hny12"),
    ],
)
def test_items_may_be_called_as_sandcrawler_calls_them(
    server: Server, platform: str, host: str, id_: str, version: str | None, name: str
) -> None:
    item = item_of(
        server,
        {"a": b"1"},
        platform_name=platform,
        platform_domain=host,
        platform_id=id_,
        version=version,
    )
    assert item_name(item, {"item_prefix": "", **SANDCRAWLER}) == name
    assert item_name(item, {"item_prefix": "lib-", **SANDCRAWLER}) == f"lib-{name}"
    assert item_name(item, {"item_prefix": "lib-", "item_names": "digest"}).startswith(
        f"lib-{host}-"
    )


def test_items_are_made_in_the_configured_collection_with_the_configured_name(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    given = {"collection": "bees", "item_prefix": "lib-", **SANDCRAWLER}
    found = asked(site, there, store, **given).process(item_of(server, {"a": b"1"}))
    assert site.metadata["lib-data.example.org-HIVES-v1.0"]["collection"] == ["bees"]
    assert found.archiveorg_item_name == "lib-data.example.org-HIVES-v1.0"


def test_an_item_of_an_earlier_name_is_found_again(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    item = item_of(server, {"a": b"1", "b": b"2"})
    found = asked(site, there, store).process(item)
    site.log.clear()
    run = asked(site, there, store, item_prefix="lib-")
    assert run.check_existing(item) == replace(found, status="success-existing")
    del site.items[item_name(item)]["b"]
    assert run.process(item).archiveorg_item_name == item_name(item)
    assert [path.split("/")[1] for path in site.puts()] == [item_name(item)]


def test_names_without_a_digest_never_mix_two_manifests(
    server: Server, there: World, site: Internet, store: FolderStore
) -> None:
    run = asked(site, there, store, **SANDCRAWLER)
    run.process(item_of(server, {"a": b"1", "b": b"2"}))
    site.log.clear()
    error = refused(run, item_of(server, {"b": b"2", "c": b"3"}))
    assert (error.status, "other files, such as a" in error.detail) == ("mismatch-existing", True)
    assert not site.puts()


def test_names_of_items_are_what_archive_org_takes(server: Server) -> None:
    item = item_of(server, {"a": b"1"})
    name = item_name(item)
    assert name.startswith("data.example.org-doi-10.5072-FK2-HIVES-1.0-")
    others = [
        replace(item, version="2.0"),
        replace(item, platform_id="doi:10.5072/FK2-HIVES"),
        replace(item, manifest=(replace(item.files[0], md5="0" * 32),)),
        replace(item, platform_id="č" * 300),
        replace(item, platform_id="x" * 300),
    ]
    names = {item_name(other) for other in others} | {name}
    assert len(names) == 6
    for one in names:
        assert 5 <= len(one) <= 80
        assert one.isascii()
        assert set(one) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-")
        assert one[0].isalnum()
