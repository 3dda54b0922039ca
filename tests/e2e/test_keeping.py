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
    home.publish_pages(home.folder / "one.warc.gz", PAGES)
    withdrawn = home("withdraw", "--set", "domain:cz:knihovna:blog", "--reason", "asked for")
    assert withdrawn.code == 0, withdrawn.err
    return home


def flip(home: Home) -> str:
    """Damage a data file of the newest snapshot; return its key."""
    catalogue = Catalogue(FolderReader(home.folder / "store"))
    key = next(catalogue.files(catalogue.manifest(2), "records")).key
    path = home.folder / "store" / key
    data = path.read_bytes()
    path.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
    return key


def test_damage_is_told_with_what_to_do(published: Home) -> None:
    key = flip(published)
    result = published("verify")
    assert result.code == 1
    assert f"damage: {key}: " in result.out
    assert "(file-digest)" in result.out
    assert "restore it" in result.out
    (found, *_) = published("verify", "--json", "--newest").json["findings"]
    assert (found["kind"], found["code"], found["object"]) == ("damage", "file-digest", key)
    assert found["problem"]
    assert found["remedy"]


def test_what_is_only_noted_is_no_failure(published: Home) -> None:
    scratch = published.folder / "store" / ".tmp"
    scratch.mkdir(exist_ok=True)
    (scratch / "x").write_bytes(b"x")
    result = published("verify")
    assert result.code == 0
    assert "2 snapshots checked" in result.out
    assert "note: .tmp/x: " in result.out
    assert "0 damaged, 1 noted" in result.out


def test_a_sample_and_its_seed(published: Home) -> None:
    result = published("verify", "--sample", "10")
    assert result.code == 0
    seed = result.out.partition("--seed ")[2].split()[0]
    whole = published("verify", "--json").json
    assert (whole["snapshots"], whole["sample"], whole["damage"]) == ([1, 2], None, 0)
    assert whole["read"] == whole["files"] > 0
    document = published("verify", "--json", "--sample", "10", "--seed", seed).json
    assert document["sample"] == {"percent": 10, "seed": int(seed)}
    assert 0 < document["read"] < document["files"]


def test_a_copy_serves_like_the_store(published: Home, tmp_path: Path) -> None:
    from tests.e2e.harvester import harvest

    published("ingest", warc(tmp_path / "two.warc.gz", {"http://novy.cz/": b"x"}))
    copy = tmp_path / "copy"
    result = published("copy", copy)
    assert result.code == 0, result.err
    assert "has 2 snapshots up to 2" in result.out
    again = published("copy", "--json", copy).json
    assert (again["objects"], again["bytes"], again["snapshots"]) == (0, 0, [1, 2])
    assert again["there"] > 0
    assert sheaf("verify", "--store", copy).code == 0
    with published.served() as url:
        before = harvest(url).records
    shutil.rmtree(published.folder / "store")
    shutil.copytree(copy, published.folder / "store")
    with published.served() as url:
        assert harvest(url).records == before == 3
    assert published("publish").code == 0  # an empty intake: it was not copied


def test_an_export_that_is_refused(published: Home, tmp_path: Path) -> None:
    assert "STORE" in published("copy").err
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "notes.txt").write_text("mine")
    for to, said in (
        (taken, "has notes.txt"),
        (published.folder / "store", "the store itself"),
        ("ftp://elsewhere/store", "not ftp://"),
    ):
        result = published("copy", to)
        assert result.code == 2
        assert said in one_line(result.err)
    flip(published)
    result = published("copy", tmp_path / "copy")
    assert result.code == 2
    assert "does not match its digest" in one_line(result.err)


def test_status_tells_what_is_kept_and_deleted(published: Home) -> None:
    out = published("status").out
    assert "items      2 present, 1 deleted" in out
    assert "kept       2 of 20" in out
    assert "retired" not in out
    document = published("status", "--json").json
    assert document["snapshot"]["deleted"] == 1
    assert [one["snapshot"] for one in document["kept"]] == [1, 2]
    assert document["kept"][1]["effective"] == document["snapshot"]["effective"]
    assert document["retired"] == []
    assert published("reinstate", "--set", "domain:cz:knihovna:blog").code == 0
    assert "items      3 present, 0 deleted" in published("status").out


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
    published: Home, tmp_path: Path
) -> None:
    restored(published)
    store = published.folder / "store"
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
        result = published(*command)
        assert (result.code, result.out) == (2, ""), command
        assert (
            "current.json: it names 1 as the newest, but 2 was published: an old copy was "
            "restored: `sheaf verify` shows the correct content"
        ) in one_line(result.err)
    document = published("verify", "--json").json
    (found,) = [one for one in document["findings"] if one["kind"] == "damage"]
    assert found["code"] == "pointer-behind"
    (store / layout.POINTER).write_text(found["problem"].partition("must be ")[2])
    (note,) = published("verify", "--json").json["findings"]
    assert (note["kind"], note["code"]) == ("note", "settled-missing")
    assert published("verify", "--repair").code == 0
    assert published("verify").out.rstrip().endswith("no problems found")
    assert published("status", "--json").json["snapshot"]["deleted"] == 1


LOST = "current.json: there are snapshots up to 2, but no pointer: `sheaf verify`"


def spoil(home: Home, key: str, text: str | None) -> None:
    """Write an object of the store anew, or remove it."""
    path = home.folder / "store" / key
    path.unlink()
    if text is not None:
        path.write_text(text)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("harm", "said", "code"),
    [
        (restored, "old copy was restored", "pointer-repaired"),
        (lambda home: spoil(home, layout.POINTER, None), LOST, "pointer-repaired"),
        (lambda home: spoil(home, layout.POINTER, "{"), "is damaged", "pointer-repaired"),
        (
            lambda home: spoil(home, layout.WITNESS, None),
            "snapshots/newest.json: it ",
            "witness-repaired",
        ),
        (
            lambda home: spoil(home, layout.WITNESS, "{"),
            "snapshots/newest.json: it ",
            "witness-repaired",
        ),
    ],
    ids=["old", "lost", "damaged", "witness-lost", "witness-damaged"],
)
def test_verify_repairs_pointer_and_witness(
    published: Home, harm: Callable[[Home], None], said: str, code: str
) -> None:
    name = published("status", "--json").json["id"]
    harm(published)
    for command in (["status"], ["status", "--json"], ["query", "SELECT 1"], ["serve"]):
        result = published(*command)
        assert (result.code, result.out) == (2, "")
        assert said in one_line(result.err)
    result = published("verify", "--repair", "--json")
    assert result.code == 0, result.out
    assert [one["code"] for one in result.json["findings"]] == [code]
    status = published("status", "--json").json
    assert (status["snapshot"]["deleted"], status["id"]) == (1, name)
    assert published("verify").out.rstrip().endswith("no problems found")


def test_verify_repairs_no_pointer_where_its_snapshot_is_lost(published: Home) -> None:
    shutil.rmtree(published.folder / "store" / "snapshots" / "2")
    spoil(published, layout.POINTER, None)
    assert published("verify", "--repair").code == 1
    assert not (published.folder / "store" / layout.POINTER).exists()


def test_a_function_that_starts_on_an_old_pointer_answers_503(
    published: Home, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[str] = []
    environment = {"SHEAF_STORE_URI": str(published.folder / "store")}
    whole = Instance(environment, published.folder, lines.append, assembly.of_lambda)
    assert whole(http("verb=Identify"))["statusCode"] == 200
    restored(published)
    old = Instance(environment, published.folder, lines.append, assembly.of_lambda)
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
    home.publish_pages(tmp_path / "one.warc.gz", PAGES)
    assert home("status", "--json").json["id"] == name
    copy = tmp_path / "copy"
    assert home("copy", copy).code == 0
    assert sheaf("status", "--json", "--store", copy).json["id"] == name
    assert name in home("status").out
    assert make_home(tmp_path / "other")("status", "--json").json["id"] != name


def test_status_tells_what_was_retired(published: Home, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert published("copy", "--newest", copy).code == 0
    out = sheaf("status", "--store", copy).out
    assert "retired    1" in out
    assert sheaf("status", "--json", "--store", copy).json["retired"] == [[1, 1]]
    for number in range(5):
        published.publish_pages(tmp_path / f"{number}.warc.gz", {f"http://a{number}.cz/": b"x"})
    assert "and 2 earlier ones" in published("status").out
