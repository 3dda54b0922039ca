"""Files in items of archive.org: put there once, told again, never written over.

What holds of every strategy is tried by test_strategies.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builder.sources.datasets.ingest import Ingest
from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    IngestRequest,
    Licence,
    Person,
)
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.result import result
from builder.sources.datasets.strategies.archiveorg import Items
from builder.sources.datasets.strategies.keys import item_name, place
from builder.store.folder import FolderStore
from tests.builder.sources.datasets import fakes, test_s3
from tests.builder.sources.datasets.body import Body, Generated
from tests.builder.sources.datasets.ias3 import KEYS, META, Internet, internet
from tests.builder.sources.datasets.pages import Pages
from tests.builder.sources.datasets.server import Server
from tests.builder.sources.datasets.test_s3 import HOST, strategy
from tests.builder.sources.datasets.world import World, settings_of, world

BODIES: dict[str, Body] = {
    "data/a.csv": b"hive,kg\n1,20\n",
    "č b.txt": "Včela\n".encode(),
    "empty": b"",
    "large.bin": Generated(9 << 20),
}
SMALL: dict[str, Body] = {"a": b"1", "b": b"2"}
BUNDLED = "archiveorg-fileset-bundled"
SANDCRAWLER = {"item_names": "sandcrawler"}


@dataclass
class Archive:
    """archive.org, a platform and a store, and the strategy between them."""

    there: World
    site: Internet
    store: FolderStore

    def item(
        self, bodies: dict[str, Body] = SMALL, digests: str = "md5", **given: Any
    ) -> FilesetPlatformItem:
        """Return a dataset of those files, each served."""
        found = test_s3.item_of(
            self.there.server,
            bodies,
            digests,
            platform_name="dataverse",
            platform_domain="data.example.org",
            platform_id="doi:10.5072/FK2/HIVES",
            version="1.0",
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

    def run(
        self, name: str = "archiveorg-fileset", keys: Mapping[str, str] = KEYS, **settings: Any
    ) -> Items:
        """Return the strategy, configured."""
        found: Items = self.there.strategy(name, self.store, environment=keys, **settings)
        return found

    def refuse(self, item: FilesetPlatformItem, run: Items | None = None) -> FilesetError:
        with pytest.raises(FilesetError) as raised:
            (run or self.run()).process(item)
        return raised.value


@pytest.fixture
def archive(server: Server, tmp_path: Path) -> Archive:
    there = world(server, tmp_path, http__tries=3)
    return Archive(there, internet(server), FolderStore(tmp_path / "store"))


def test_an_item_tells_what_it_is(archive: Archive) -> None:
    archive.run().process(archive.item(archiveorg_item_meta={"collection": ["bees"]}))
    (told,) = archive.site.metadata.values()
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


def test_what_another_strategy_keeps_is_kept(archive: Archive) -> None:
    item = archive.item()
    found = strategy(archive.store, archive.there).process(item)
    assert archive.run().check_existing(item) == replace(found, status="success-existing")
    assert not archive.site.log


def test_a_run_that_broke_off_is_gone_on_with(archive: Archive) -> None:
    item, run = archive.item(), archive.run()
    found = run.process(item)
    archive.store.remove(place(item) + "fileset.json")
    del archive.site.items[item_name(item)]["b"]
    archive.there.server.forget()
    archive.site.log.clear()
    again = run.process(item)
    assert [(f.path, f.status) for f in again.manifest] == [("a", "exists"), ("b", "verified")]
    assert [a.url for a in archive.there.server.asked(HOST)] == [f"{HOST}1"]
    assert [path.rpartition("/")[2] for path in archive.site.puts()] == ["b"]
    assert [f.md5 for f in again.manifest] == [f.md5 for f in found.manifest]


@pytest.mark.parametrize("digests", ["md5", ""])
def test_another_file_of_that_name_is_not_written_over(archive: Archive, digests: str) -> None:
    item = archive.item({"a": b"1"}, digests)
    archive.site.items[item_name(item)] = {"a": b"!"}
    error = archive.refuse(item)
    assert error.status == "mismatch-existing"
    assert [f.status for f in error.manifest] == ["mismatch-existing"]
    assert not archive.site.puts()
    assert bool(archive.there.server.asked(HOST)) == (not digests)  # a digest tells at once


def test_a_file_without_a_digest_that_is_there_is_not_put_again(archive: Archive) -> None:
    item = archive.item({"a": b"1"}, digests="")
    archive.site.items[item_name(item)] = {"a": b"1"}
    assert [f.status for f in archive.run().process(item).manifest] == ["unverified"]
    assert not archive.site.puts()


def test_what_archive_org_works_on_counts_as_there(archive: Archive) -> None:
    item, run = archive.item(), archive.run()
    archive.site.slow = True
    found = run.process(item)
    assert found.status == "success"
    assert run.check_existing(item) == replace(found, status="success-existing")


def test_a_bundle_is_one_zip_of_all(archive: Archive) -> None:
    item, run = archive.item(BODIES), archive.run(BUNDLED)
    found = run.process(item)
    assert (found.status, found.bundle_archiveorg_path) == ("success", "bundle.zip")
    kept = archive.site.items[item_name(item)]
    assert list(kept) == ["bundle.zip"]
    body = kept["bundle.zip"]
    assert found.bundle_file_meta.sha256hex == hashlib.sha256(body).hexdigest()
    assert {file.key for file in found.manifest} == {None}
    archive.store.remove(place(item) + "fileset.json")
    archive.site.log.clear()
    assert run.process(item).bundle_file_meta == found.bundle_file_meta
    assert not archive.site.puts()  # it is there, though nothing recorded it


@pytest.mark.parametrize(
    ("refusals", "puts"), [([503], 2), ([503, 500], 3), ([503, 503, 503], 3), ([403], 1)]
)
def test_refusals_that_pass_are_tried_again(
    archive: Archive, refusals: list[int], puts: int
) -> None:
    item = archive.item({"a": b"1"})
    archive.site.refusals = list(refusals)
    if puts > len(refusals):
        assert archive.run().process(item).status == "success"
    else:
        error = archive.refuse(item)
        assert error.status == "error-store-upload"
        assert "archive.org" in error.detail
        assert list(archive.store.keys("filesets/")) == []
    assert len(archive.site.puts()) == puts


@pytest.mark.parametrize("unread", [[500], [500, 500, 500]])
def test_metadata_that_is_not_had_is_asked_for_again(archive: Archive, unread: list[int]) -> None:
    item, run = archive.item(), archive.run()
    run.process(item)
    archive.site.unread = list(unread)
    if len(unread) < 3:
        assert run.check_existing(item) is not None
    else:
        with pytest.raises(FilesetError, match="error-store-verify"):
            run.check_existing(item)


def test_what_is_put_and_comes_out_other_is_told(archive: Archive) -> None:
    archive.site.spoils = True
    assert archive.refuse(archive.item({"a": b"12"})).status == "error-store-verify"
    assert list(archive.store.keys("filesets/")) == []


@pytest.mark.parametrize("keys", [{}, {"IA_ACCESS_KEY": "a"}, {"IA_SECRET_KEY": "b"}])
def test_without_keys_nothing_is_fetched(archive: Archive, keys: dict[str, str]) -> None:
    error = archive.refuse(archive.item(), archive.run(keys=keys))
    assert error.status == "not-implemented"
    assert "IA_ACCESS_KEY" in error.detail
    assert not archive.there.server.asked(HOST)
    assert not archive.site.log


def test_wrong_keys_are_refused(archive: Archive) -> None:
    wrong = {"IA_ACCESS_KEY": "access", "IA_SECRET_KEY": "wrong"}
    error = archive.refuse(archive.item(BODIES), archive.run(keys=wrong))
    assert error.status == "error-store-upload"
    assert "archive.org: HTTP status 403: no: AccessDenied" in error.detail
    assert "wrong" not in error.detail
    assert len(archive.site.puts()) == 1


def test_keys_are_sent_to_the_s3_interface_alone(archive: Archive) -> None:
    credentials = archive.run().archive_org.api.client.credentials
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


def test_what_archive_org_hosts_is_there_already(archive: Archive) -> None:
    item, run = hosted(archive.site), archive.run(keys={})
    found = run.process(item)
    assert (found.status, [f.status for f in found.manifest]) == ("success", ["exists"] * 2)
    assert found.manifest[1].sha1 == hashlib.sha1(b"22").hexdigest()
    assert run.check_existing(item) == replace(found, status="success-existing")
    assert not archive.site.puts()
    assert not archive.there.server.asked("https://archive.org/download/")


@pytest.mark.parametrize("now", [{"b": b"22"}, {"a": b"3", "b": b"22"}], ids=["gone", "other"])
def test_what_archive_org_hosts_and_changes_meanwhile_is_told(
    archive: Archive, now: dict[str, bytes]
) -> None:
    item = hosted(archive.site)
    archive.site.items["hives"] = now
    assert archive.refuse(item).status == "changed-during-ingest"


@pytest.mark.parametrize("bundle", ["never", "always"])
def test_a_request_tells_the_item_that_has_its_files(archive: Archive, bundle: str) -> None:
    platform = fakes.Platform({f"{HOST}api": [archive.item()]})
    settings = settings_of({"fileset.strategy": {"backend": "archiveorg", "bundle": bundle}})
    ingest = Ingest(
        detect=lambda request, _: (DatasetResource(url=request.base_url), platform),
        api=lambda until: Pages(fakes.DOCUMENTS),
        archive=lambda item, name, until, go_on: (
            archive.run(name).check_existing(item) or archive.run(name).process(item)
        ),
        settings=settings,
        clock=lambda: datetime(2026, 11, 22, tzinfo=UTC),
        seconds=600,
    )
    told = result(ingest.process(IngestRequest(f"{HOST}api")))
    (name,) = archive.site.items
    assert (told["status"], told["archiveorg_item_name"]) == ("success", name)
    if bundle == "always":
        size = len(archive.site.items[name]["bundle.zip"])
        assert told["fileset_bundle"]["archiveorg_bundle_path"] == "bundle.zip"
        assert told["fileset_bundle"]["file_meta"]["size_bytes"] == size
    other = settings.having(
        "fileset.strategy", {"backend": "archiveorg", "bundle": bundle, "item_prefix": "lib-"}
    )
    for later in (ingest, replace(ingest, settings=other)):
        again = result(later.process(IngestRequest(f"{HOST}api")))
        assert (again["status"], again["archiveorg_item_name"]) == ("success-existing", name)


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
    archive: Archive, platform: str, host: str, id_: str, version: str | None, name: str
) -> None:
    named = {"platform_name": platform, "platform_domain": host, "platform_id": id_}
    item = archive.item(version=version, **named)
    assert item_name(item, {"item_prefix": "", **SANDCRAWLER}) == name
    assert item_name(item, {"item_prefix": "lib-", **SANDCRAWLER}) == f"lib-{name}"
    by_digest = item_name(item, {"item_prefix": "lib-", "item_names": "digest"})
    assert by_digest.startswith(f"lib-{host}-")


def test_items_are_made_in_the_configured_collection_with_the_configured_name(
    archive: Archive,
) -> None:
    run = archive.run(collection="bees", item_prefix="lib-", **SANDCRAWLER)
    found = run.process(archive.item())
    assert found.archiveorg_item_name == "lib-data.example.org-HIVES-v1.0"
    assert archive.site.metadata[found.archiveorg_item_name]["collection"] == ["bees"]


def test_an_item_of_an_earlier_name_is_found_again(archive: Archive) -> None:
    item = archive.item()
    found = archive.run().process(item)
    archive.site.log.clear()
    run = archive.run(item_prefix="lib-")
    assert run.check_existing(item) == replace(found, status="success-existing")
    del archive.site.items[item_name(item)]["b"]
    assert run.process(item).archiveorg_item_name == item_name(item)
    assert [path.split("/")[1] for path in archive.site.puts()] == [item_name(item)]


def test_names_without_a_digest_never_mix_two_manifests(archive: Archive) -> None:
    run = archive.run(**SANDCRAWLER)
    run.process(archive.item())
    archive.site.log.clear()
    error = archive.refuse(archive.item({"b": b"2", "c": b"3"}), run)
    assert (error.status, "other files, such as a" in error.detail) == ("mismatch-existing", True)
    assert not archive.site.puts()


def test_names_of_items_are_what_archive_org_takes(archive: Archive) -> None:
    item = archive.item({"a": b"1"})
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
