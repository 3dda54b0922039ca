"""Runs of an obi store as bags, judged by the reference implementation."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bagit
import pytest

from builder.commands.cli import main
from builder.errors import UsageError
from builder.exports.bagit.contents import bag_of_run
from builder.exports.obi_source import open_obi
from builder.exports.staging import AddedFolders, add_folders
from builder.obi import key
from builder.obi.run import history
from builder.store.folder import FolderStore
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Writer
from tests.builder.obi.kept import FIRST, Kept, fourth
from tests.builder.obi.test_ocfl import content
from tests.builder.obi.test_ocfl import exported as to_ocfl
from tests.builder.obi.test_warc import exported as to_warc

SENDER = {
    "Bagging-Date": "2026-11-21",
    "Source-Organization": "Archive of\nÚstí",
    "Contact-Email": "a@example.org",
}


def exported(store: Writer, target: Path, *only: int) -> AddedFolders:
    with open_obi(store, 1024, 2) as (runs, connection):
        some = [run for run in runs if not only or run.tist in only]
        bags = [bag_of_run(store, connection, run, SENDER) for run in some]
        return add_folders(bags, target, lambda n: None)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", [to_ocfl, to_warc, exported], ids=["ocfl", "warc", "bagit"])
def test_from_a_bucket_comes_the_same(
    kept: Kept, tmp_path: Path, make_bucket: Callable[..., Writer], way: Callable[..., object]
) -> None:
    """Whichever form the obi store is exported in."""
    bucket = make_bucket()
    for name in kept.store.keys("obi/"):
        bucket.create(name, kept.store.read(name))
    assert history(bucket) == history(kept.store)
    for store, target in ((kept.store, "of-folder"), (bucket, "of-bucket")):
        way(store, tmp_path / target)
    assert content(tmp_path / "of-folder") == content(tmp_path / "of-bucket") != {}


def test_each_run_is_a_valid_bag_and_all_bags_are_the_obi_store(kept: Kept, tmp_path: Path) -> None:
    """Scenario 20: what lies in the bags is what lies in the store, key by key."""
    target = tmp_path / "bags"
    assert exported(kept.store, target).folders == len(kept.tists)
    found: dict[str, bytes] = {}
    for tist in kept.tists:
        made = bagit.Bag(str(target / f"run-{tist}"))
        made.validate()
        assert made.version_info == (1, 0)
        assert set(made.algorithms) == {"sha256", "sha512"}
        payload = content(target / f"run-{tist}" / "data")
        assert not any("%" in name for name in payload)
        found |= {name.replace("=", "%"): data for name, data in payload.items()}
    assert found == {name: kept.store.read(name) for name in kept.store.keys("obi/")}


def test_a_bag_tells_what_it_is(kept: Kept, tmp_path: Path) -> None:
    done = exported(kept.store, tmp_path / "bags", FIRST + 100)
    assert [path.name for path in (tmp_path / "bags").iterdir()] == [f"run-{FIRST + 100}"]
    info = bagit.Bag(str(tmp_path / "bags" / f"run-{FIRST + 100}")).info
    assert info["Source-Organization"] == "Archive of Ústí"
    assert info["Bagging-Date"] == "2026-11-21"
    assert info["External-Identifier"] == str(FIRST + 100)
    assert info["Payload-Oxum"] == f"{done.bytes}.{done.files}"
    assert f"`sheaf ingest` over of {FIRST + 100}, 2012-11-09T17:" in info["External-Description"]
    assert done.files == 4 + 7 + 1  # the run's own, its versions, and a redirect


def test_again_it_makes_the_bags_that_came(kept: Kept, tmp_path: Path) -> None:
    target = tmp_path / "bags"
    exported(kept.store, target)
    before = content(target)
    fourth(kept)
    assert exported(kept.store, target).folders == 1
    after = content(target)
    assert {name: after[name] for name in before} == before
    assert exported(kept.store, target) == AddedFolders(0, 0, 0, 6)


def test_a_bag_of_another_store_is_not_taken_for_ours(tmp_path: Path) -> None:
    """Both replayed the same day, so their bags have one name."""
    stores = [Kept(FolderStore(tmp_path / name)) for name in ("one", "other")]
    for number, kept in enumerate(stores):
        kept.run(FIRST, {"RePEc:aaa:ssssss:1": b"Title: %d\n" % number})
    exported(stores[0].store, tmp_path / "bags")
    assert exported(stores[0].store, tmp_path / "bags").there == 1
    with pytest.raises(UsageError, match="is not the same bag"):
        exported(stores[1].store, tmp_path / "bags")


@pytest.mark.parametrize("damage", ["altered", "missing", "log"])
def test_a_bag_of_what_is_damaged_is_not_made(kept: Kept, tmp_path: Path, damage: str) -> None:
    prefix = key.run(FIRST + 200)
    keys = [k for k in kept.store.keys("obi/") if k.startswith(key.ROOT + key.folder(FIRST + 200))]
    if damage == "missing":
        kept.store.remove(keys[0])
    else:
        place = prefix + "documents.parquet" if damage == "log" else keys[0]
        path = tmp_path / "store" / place
        path.write_bytes(path.read_bytes() + b"!")
    with pytest.raises(MissingObject if damage == "missing" else DamagedStore):
        exported(kept.store, tmp_path / "bags")
    assert [path.name for path in (tmp_path / "bags").iterdir()] == [f"run-{FIRST + 100}"]
    assert not list(tmp_path.glob(".bags*"))


def test_the_command_writes_adds_and_says_so(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["export", "bagit", "--store", "store", "bags"]
    assert main([*command, "--json", "--run", str(FIRST + 100)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["bags"], told["files"], told["there"]) == (1, 12, 0)
    assert main(command) == 0
    assert f"{tmp_path}/bags: 4 bags added with 31 files (" in capsys.readouterr().out
    for folder in (tmp_path / "bags").iterdir():
        bagit.Bag(str(folder)).validate()
    assert main([*command, "--run", "1"]) == 2
    assert "--run 1: the store has no such committed run" in capsys.readouterr().err
