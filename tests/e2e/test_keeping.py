"""Checking and copying a store as a person does it, and what status tells."""

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from functions.http.lambda_instance import Instance
from functions.site import assembly
from functions.snapshot import instant, layout
from functions.store.catalog import Catalogue
from functions.store.store_reader import FolderReader
from tests.e2e.conftest import Home, make_home, sheaf, warc
from tests.e2e.test_commands import PAGES, one_line
from tests.functions.oai.gateways import http

pytestmark = pytest.mark.shared(3)


@pytest.fixture(scope="module")
def original(lasting_home: Home) -> Home:
    """A store with two snapshots, and a withdrawn item."""
    home = lasting_home
    # The tables of a copied folder name the place of the original, which `sheaf verify` notes.
    home("ingest", warc(home.folder / "one.warc.gz", PAGES))
    assert home("publish").code == 0
    withdrawn = home("withdraw", "--set", "domain:cz:knihovna:blog", "--reason", "asked for")
    assert withdrawn.code == 0, withdrawn.err
    return home


@pytest.fixture
def kept(original: Home, tmp_path: Path) -> Home:
    """A copy of that store for one test alone."""
    return Home(Path(shutil.copytree(original.folder, tmp_path / "home")))


def flip(home: Home) -> str:
    """Damage a data file of the newest snapshot; return its key."""
    catalogue = Catalogue(FolderReader(home.folder / "store"))
    key = next(catalogue.files(catalogue.manifest(2), "records")).key
    path = home.folder / "store" / key
    data = path.read_bytes()
    path.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
    return key


def test_damage_is_told_with_what_to_do(kept: Home) -> None:
    key = flip(kept)
    result = kept("verify")
    assert result.code == 1
    assert f"damage: {key}: " in result.out
    assert "(file-digest)" in result.out
    assert "restore it" in result.out
    (found, *_) = kept("verify", "--json", "--newest").json["findings"]
    assert (found["kind"], found["code"], found["object"]) == ("damage", "file-digest", key)
    assert found["problem"]
    assert found["remedy"]


def test_what_is_only_noted_is_no_failure(kept: Home) -> None:
    scratch = kept.folder / "store" / ".tmp"
    scratch.mkdir(exist_ok=True)
    (scratch / "x").write_bytes(b"x")
    result = kept("verify")
    assert result.code == 0
    assert "2 snapshots checked" in result.out
    assert "note: .tmp/x: " in result.out
    assert "0 damaged, 1 noted" in result.out


def test_a_sample_and_its_seed(kept: Home) -> None:
    result = kept("verify", "--sample", "10")
    assert result.code == 0
    seed = result.out.partition("--seed ")[2].split()[0]
    whole = kept("verify", "--json").json
    assert (whole["snapshots"], whole["sample"], whole["damage"]) == ([1, 2], None, 0)
    assert whole["read"] == whole["files"] > 0
    document = kept("verify", "--json", "--sample", "10", "--seed", seed).json
    assert document["sample"] == {"percent": 10, "seed": int(seed)}
    assert 0 < document["read"] < document["files"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sample", "0"), "--sample 0: expected a number above 0 and up to 100"),
        (("--sample", "nan"), "--sample nan: expected"),
        (("--sample", "101"), "--sample 101: expected"),
        (("--seed", "7"), "--sample PERCENT"),
    ],
)
def test_samples_that_are_none(kept: Home, arguments: tuple[str, ...], said: str) -> None:
    result = kept("verify", *arguments)
    assert result.code == 2
    assert said in one_line(result.err)


def test_a_copy_serves_like_the_store(kept: Home, tmp_path: Path) -> None:
    from tests.e2e.harvester import harvest

    kept("ingest", warc(tmp_path / "two.warc.gz", {"http://novy.cz/": b"x"}))
    copy = tmp_path / "copy"
    result = kept("copy", copy)
    assert result.code == 0, result.err
    assert "has 2 snapshots up to 2" in result.out
    again = kept("copy", "--json", copy).json
    assert (again["objects"], again["bytes"], again["snapshots"]) == (0, 0, [1, 2])
    assert again["there"] > 0
    assert sheaf("verify", "--store", copy).code == 0
    with kept.served() as url:
        before = harvest(url).records
    shutil.rmtree(kept.folder / "store")
    shutil.copytree(copy, kept.folder / "store")
    with kept.served() as url:
        assert harvest(url).records == before == 3
    assert kept("publish").code == 0  # an empty intake: it was not copied


def test_an_export_that_is_refused(kept: Home, tmp_path: Path) -> None:
    assert "STORE" in kept("copy").err
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "notes.txt").write_text("mine")
    for to, said in (
        (taken, "has notes.txt"),
        (kept.folder / "store", "the store itself"),
        ("ftp://elsewhere/store", "not ftp://"),
    ):
        result = kept("copy", to)
        assert result.code == 2
        assert said in one_line(result.err)
    flip(kept)
    result = kept("copy", tmp_path / "copy")
    assert result.code == 2
    assert "does not match its digest" in one_line(result.err)


def test_status_tells_what_is_kept_and_deleted(kept: Home) -> None:
    out = kept("status").out
    assert "items      2 present, 1 deleted" in out
    assert "kept       2 of 20" in out
    assert "retired" not in out
    document = kept("status", "--json").json
    assert document["snapshot"]["deleted"] == 1
    assert [one["snapshot"] for one in document["kept"]] == [1, 2]
    assert document["kept"][1]["effective"] == document["snapshot"]["effective"]
    assert document["retired"] == []
    assert kept("reinstate", "--set", "domain:cz:knihovna:blog").code == 0
    assert "items      3 present, 0 deleted" in kept("status").out


def test_a_store_that_lost_its_pointer_is_not_taken_for_a_new_one(kept: Home) -> None:
    (kept.folder / "store" / layout.POINTER).unlink()
    for command in (["status"], ["status", "--json"], ["query", "SELECT 1"], ["serve"]):
        result = kept(*command)
        assert (result.code, result.out) == (2, "")
        assert (
            "current.json: there are snapshots up to 2, but no pointer: `sheaf verify`"
            in one_line(result.err)
        )


def restored(home: Home) -> None:
    """Put an old pointer back, and remove what stands beside the snapshots."""
    pointer = home.folder / "store" / layout.POINTER
    document = json.loads(pointer.read_text())
    first = Catalogue(FolderReader(home.folder / "store")).manifest(1).effective
    document["snapshots"] = [{"snapshot": 1, "effective": instant.to_text(first)}]
    del document["sha256"]
    pointer.write_text(json.dumps(document))
    for number in (1, 2):
        (home.folder / "store" / layout.settled_key(number)).unlink()


def test_every_command_refuses_an_old_pointer_until_it_is_repaired(
    kept: Home, tmp_path: Path
) -> None:
    restored(kept)
    store = kept.folder / "store"
    item = ("--set", "mime:text:html")
    for command in (
        ["status"],
        ["status", "--json"],
        ["query", "SELECT 1"],
        ["serve"],
        ["publish"],
        ["withdraw", *item, "--reason", "x"],
        ["withdraw", *item, "--reason", "x", "--dry-run"],
        ["reinstate", *item],
        ["expire", "--keep", "1"],
        ["copy", tmp_path / "copy"],
        ["export", "cdxj", tmp_path / "all.cdxj"],
        ["restore", store, tmp_path / "site"],
    ):
        result = kept(*command)
        assert (result.code, result.out) == (2, ""), command
        assert (
            "current.json: it names 1 as the newest, but 2 was published: an old copy was "
            "restored: `sheaf verify` shows the correct content"
        ) in one_line(result.err)
    document = kept("verify", "--json").json
    (found,) = [one for one in document["findings"] if one["kind"] == "damage"]
    assert found["code"] == "pointer-behind"
    (store / layout.POINTER).write_text(found["problem"].partition("must be ")[2])
    (note,) = kept("verify", "--json").json["findings"]
    assert (note["kind"], note["code"]) == ("note", "settled-missing")
    assert kept("verify", "--repair").code == 0
    assert kept("verify").out.rstrip().endswith("no problems found")
    assert kept("status", "--json").json["snapshot"]["deleted"] == 1


def spoil(home: Home, key: str, text: str | None) -> None:
    """Write an object of the store anew, or remove it."""
    path = home.folder / "store" / key
    path.unlink()
    if text is not None:
        path.write_text(text)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (restored, "pointer-repaired"),
        (lambda home: spoil(home, layout.POINTER, None), "pointer-repaired"),
        (lambda home: spoil(home, layout.POINTER, "{"), "pointer-repaired"),
        (lambda home: spoil(home, layout.WITNESS, None), "witness-repaired"),
        (lambda home: spoil(home, layout.WITNESS, "{"), "witness-repaired"),
    ],
    ids=["old", "lost", "damaged", "witness-lost", "witness-damaged"],
)
def test_verify_repairs_pointer_and_witness(
    kept: Home, harm: Callable[[Home], None], code: str
) -> None:
    name = kept("status", "--json").json["id"]
    harm(kept)
    assert kept("status").code == 2
    result = kept("verify", "--repair", "--json")
    assert result.code == 0, result.out
    assert [one["code"] for one in result.json["findings"]] == [code]
    status = kept("status", "--json").json
    assert (status["snapshot"]["deleted"], status["id"]) == (1, name)
    assert kept("verify").out.rstrip().endswith("no problems found")


def test_verify_repairs_no_pointer_where_its_snapshot_is_lost(kept: Home) -> None:
    shutil.rmtree(kept.folder / "store" / "snapshots" / "2")
    spoil(kept, layout.POINTER, None)
    assert kept("verify", "--repair").code == 1
    assert not (kept.folder / "store" / layout.POINTER).exists()


def test_a_function_that_starts_on_an_old_pointer_answers_503(
    kept: Home, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[str] = []
    environment = {"SHEAF_STORE_URI": str(kept.folder / "store")}
    whole = Instance(environment, kept.folder, lines.append, assembly.of_lambda)
    assert whole(http("verb=Identify"))["statusCode"] == 200
    restored(kept)
    old = Instance(environment, kept.folder, lines.append, assembly.of_lambda)
    assert old(http("verb=Identify"))["statusCode"] == 503
    assert "`sheaf verify` shows the correct content" in caplog.text
    # The one that runs keeps what it has seen.
    snapshots = {json.loads(line).get("snapshot") for line in lines}
    time.sleep(2.1)  # serve.pointer_seconds
    assert whole(http("verb=Identify"))["statusCode"] == 200
    assert json.loads(lines[-1])["snapshot"] == 2
    assert snapshots == {2, None}


def test_init_gives_the_store_its_id_and_keeps_one_that_is_there(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    name = home("status", "--json").json["id"]
    assert re.fullmatch("[0-9a-f]{32}", name)
    assert home("verify").code == 2  # nothing is published yet
    home.config.unlink()
    assert make_home(home.folder)("status", "--json").json["id"] == name
    home("ingest", warc(tmp_path / "one.warc.gz", PAGES))
    assert home("publish").code == 0
    assert home("status", "--json").json["id"] == name
    copy = tmp_path / "copy"
    assert home("copy", copy).code == 0
    assert sheaf("status", "--json", "--store", copy).json["id"] == name
    assert name in home("status").out
    assert make_home(tmp_path / "other")("status", "--json").json["id"] != name


def test_status_tells_what_was_retired(kept: Home, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert kept("copy", "--newest", copy).code == 0
    out = sheaf("status", "--store", copy).out
    assert "retired    1" in out
    assert sheaf("status", "--json", "--store", copy).json["retired"] == [[1, 1]]
    for number in range(5):
        kept("ingest", warc(tmp_path / f"{number}.warc.gz", {f"http://a{number}.cz/": b"x"}))
        assert kept("publish").code == 0
    assert "and 2 earlier ones" in kept("status").out
