"""Datasets out of the store: what each strategy archived is restored, exported and served whole."""

import hashlib
import io
import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import bagit
import pytest

from builder.commands.cli import main
from builder.exports.ocfl.inventory import place
from functions.content import assembly
from functions.reading.duck_repository import DuckRepository
from tests.builder.conftest import World as Published
from tests.builder.obi.kept import three_in
from tests.builder.obi.test_ocfl import content, held, valid
from tests.builder.sources.datasets import command as commands
from tests.builder.sources.datasets import platform
from tests.builder.sources.datasets.body import zipped
from tests.builder.sources.datasets.command import Command
from tests.builder.sources.datasets.deposits import ZENODO, deposit, page, record
from tests.builder.sources.datasets.outcomes import item, outcome
from tests.builder.sources.datasets.published import publish
from tests.builder.sources.datasets.server import Server, json_of, served, serving, status
from tests.builder.sources.datasets.world import world
from tests.clock import CLOCK
from tests.functions.oai.client import answer, configured, event

pytestmark = pytest.mark.shared(2)

TOOLS = Path(__file__).parents[3] / ".venv-crate" / "bin"
NAME = "oai:archive.example.org:dataset,zenodo,zenodo.org,10"
DOI = "doi:10.5281/zenodo.11"
FILES: Mapping[str, bytes] = {
    "a.csv": b"weight\n1\n",
    "data/aux.csv": b"price\n" + b"31\n" * 70_000,
    "data/100% a=b#1.csv": b"share\n1\n",
    "empty": b"",
}
STRATEGIES = {
    **platform.STRATEGIES,
    "web-fileset-bundled": '{ backend = "web", bundle = "always" }',
    "s3-fileset-bundled of the platform": (
        '{ backend = "s3", bundle = "always", platform_bundle = true }'
    ),
}


@pytest.fixture
def command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Command]:
    with serving() as server:
        yield commands.made(world(server, tmp_path), tmp_path, capsys, monkeypatch)


def with_bundle(server: Server, files: Mapping[str, bytes], **metadata: Any) -> str:
    """Have the server know a deposit whose files can be had as one compressed zip, too."""
    archive = served(zipped(files), "application/zip")
    server.add(f"{ZENODO}/api/records/11/files-archive", archive)
    return deposit(server, 11, files, **metadata)


def crate(folder: Path) -> dict[str, Any]:
    """Return the entities of a crate by their ids; each file is as its entity says."""
    document = json.loads((folder / "ro-crate-metadata.json").read_bytes())
    assert document["@context"] == "https://w3id.org/ro/crate/1.2/context"
    found = {one["@id"]: one for one in document["@graph"]}
    assert len(found) == len(document["@graph"])
    assert [*found][2].startswith("data/")  # as before: a crate's bytes do not change
    root = found["./"]
    assert {"name", "description", "datePublished", "license"} <= root.keys()
    for name in ("author", "license", "publisher", "sdPublisher", "identifier", "hasPart"):
        given = root.get(name, [])
        for reference in given if isinstance(given, list) else [given]:
            assert isinstance(reference, str) or reference["@id"] in found
    for part in root["hasPart"] if isinstance(root["hasPart"], list) else [root["hasPart"]]:
        one = found[part["@id"]]
        data = (folder / unquote(part["@id"])).read_bytes()
        assert one["contentSize"] == str(len(data))
        assert one["sha256"] == hashlib.sha256(data).hexdigest()
    return found


def names(entities: Mapping[str, Any], folder: Path) -> dict[str, bytes]:
    """Return the files of a dataset in a crate, by the names that people know."""
    return {
        one["name"]: (folder / unquote(id_)).read_bytes()
        for id_, one in entities.items()
        if id_.startswith("data/")
    }


def serve(command: Command, query: str, headers: Mapping[str, str] = {}) -> dict[str, Any]:
    """Return the answer of /content about the dataset."""
    settings = configured(content_serve=True, repository_namespace="archive.example.org")
    uri = str(command.folder / "store")
    CLOCK.sleep(60)
    with closing(DuckRepository(command.store)) as repository:
        made = assembly.application(repository, uri, command.folder, settings, {}, CLOCK.now)
        asked = event(query, path=f"/content/{NAME}")
        reply = answer(made, {**asked, "headers": {**asked.get("headers", {}), **headers}})
        return {
            **reply,
            "body": b"".join(
                [reply["body"]] if isinstance(reply["body"], bytes) else reply["body"]
            ),
        }


@pytest.mark.sampled(2)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_a_strategy_archived_comes_out_everywhere(command: Command, strategy: str) -> None:
    command.configure(fileset__strategy=STRATEGIES[strategy])
    (told,) = command.results(with_bundle(command.server, FILES))
    assert (told["status"], told["ingest_strategy"]) == ("success", strategy.partition(" ")[0])
    kept = {file["extra"].get("raw_path", file["path"]): file for file in told["manifest"]}
    foreign = "bundled" in strategy and strategy != "s3-fileset-bundled"
    command("publish")

    out = command.folder / "out"
    command("restore", DOI, str(out / "restored"))
    assert content(out / "restored") == FILES
    assert "4 were there" in command("restore", DOI, str(out / "restored"))[0]

    command("export", "rocrate", str(out / "crates"))
    (folder,) = (out / "crates").iterdir()
    entities = crate(folder)
    assert names(entities, folder) == FILES
    assert {"@id": "https://doi.org/10.5281/zenodo.11"} in entities["./"]["identifier"]
    assert entities["./"]["license"] == {"@id": "https://spdx.org/licenses/CC-BY-4.0"}
    sent = [path for path in content(folder) if path.startswith("metadata/platform-")]
    assert len(sent) == 1

    command("export", "bagit", str(out / "bags"))
    (folder,) = (out / "bags").iterdir()
    bag = bagit.Bag(str(folder))
    bag.validate()
    assert bag.info["External-Identifier"] == DOI
    assert {"metadata/fileset.json", "ro-crate-metadata.json", *sent} <= {*bag.tagfile_entries()}
    assert names(crate(folder), folder) == FILES

    command("export", "ocfl", str(out / "root"))
    assert valid(out / "root") == 1
    assert names(crate(out / "root" / place(NAME) / "v1/content"), folder) == FILES

    for path, data in FILES.items():
        answer = serve(command, f"file={quote(path, safe='')}")
        assert (answer["statusCode"], answer["body"]) == (200, data)
        last = path.rpartition("/")[2]
        assert f"filename*=UTF-8''{quote(last)}" in answer["headers"]["Content-Disposition"] or (
            f'filename="{last}"' in answer["headers"]["Content-Disposition"]
        )
    answer = serve(command, "file=data/aux.csv", {"range": "bytes=200000-200009"})
    assert (answer["statusCode"], answer["body"]) == (206, FILES["data/aux.csv"][200000:200010])
    if "bundled" in strategy:
        made = zipfile.ZipFile(io.BytesIO(serve(command, "")["body"]))
        assert {one: made.read(one) for one in made.namelist()} == (
            FILES if foreign else {told["path"]: FILES[name] for name, told in kept.items()}
        )


def version(server: Server, number: int, files: Mapping[str, bytes], **more: Any) -> str:
    """Have the server know a version of the dataset 10, of which number 11 is the first."""
    index = {"relations": {"version": [{"index": number - 11}]}, "version": f"1.{number}"}
    told = record(number, files, **index, **more)
    told |= {"conceptrecid": "10", "conceptdoi": "10.5281/zenodo.10"}
    deposit(server, number, files)
    server.add(f"{ZENODO}/api/records/{number}", json_of(told))
    return page(number)


@pytest.mark.skipif(not TOOLS.is_dir(), reason="`make clients` installs ro-crate-py")
def test_other_tools_read_a_crate_and_find_it_valid(command: Command) -> None:
    command.results(with_bundle(command.server, FILES))
    command("publish")
    command("export", "rocrate", str(command.folder / "crates"))
    (folder,) = (command.folder / "crates").iterdir()
    reader = [str(TOOLS / "python"), str(Path(__file__).with_name("with_rocrate.py")), str(folder)]
    told = json.loads(subprocess.run(reader, capture_output=True, check=True).stdout)
    assert told["name"] == "Hives of the year 11"
    for name, data in FILES.items():
        sha256, path = told["files"][name]
        assert sha256 == hashlib.sha256(data).hexdigest()
        assert Path(path).read_bytes() == data
    validator = [str(TOOLS / "rocrate-validator"), "-y", "validate", "-p", "ro-crate-1.2"]
    options = ["--no-paging", "--skip-availability-check", str(folder)]
    done = subprocess.run([*validator, *options], capture_output=True, text=True, check=False)
    if "URLError" in done.stdout + done.stderr:
        pytest.skip("the validator cannot fetch the context of RO-Crate here")
    assert done.returncode == 0, done.stdout


@pytest.mark.thorough
def test_versions_stay_in_an_object_whatever_becomes_of_the_dataset(command: Command) -> None:
    """Also an older version that is archived later, and one that the platform removed."""
    shared = {"same.csv": b"weight\n" * 1000}
    versions = {n: {**shared, "a.csv": b"%d\n" % n} for n in (12, 11, 13)}
    out = command.folder / "out"
    for n, files in versions.items():
        command.results(version(command.server, n, files))
        command("publish")
        command("export", "ocfl", str(out / "root"))
    assert [
        {name.removeprefix("data/"): data for name, data in one.items() if name[:5] == "data/"}
        for one in held(out / "root", NAME)
    ] == list(versions.values())
    command.server.add(f"{ZENODO}/api/records/13", status(410))
    (told,) = command.results(page(13))
    assert told["status"] == "platform-gone"
    command("publish")
    assert "0 objects and 0 versions added" in command("export", "ocfl", str(out / "root"))[0]
    assert valid(out / "root") == 1
    assert len(list((out / "root").rglob("same.csv"))) == 1  # later versions refer to it

    for name, more, number in (
        ("10.5281/zenodo.10", (), 13),
        ("doi:10.5281/zenodo.10", ("--version", "11"), 11),
        ("https://doi.org/10.5281/zenodo.12", (), 12),
        ("10.5281/ZENODO.12", ("--version", "1.11"), 11),
        (f"{NAME},13", (), 13),
    ):
        folder = out / f"restored-{number}-{len(more)}-{name[:4]}"
        command("restore", name, str(folder), *more)
        assert content(folder) == versions[number]
    _, err = command("restore", "10.5281/zenodo.10", str(out / "none"), "--version", "2", code=2)
    assert err.count("\n") == 1
    assert "has no version 2 here; listed are 11, 12, 13" in err


def test_one_dataset_or_a_set_is_chosen_and_a_second_run_adds_what_is_new(command: Command) -> None:
    out = command.folder / "out"
    assert "nothing is published" in command("export", "rocrate", str(out), code=2)[1]
    command.results(version(command.server, 11, {"a.csv": b"1"}))
    command("publish")  # so that this version is listed first
    command.results(version(command.server, 12, {"a.csv": b"2", "b%.csv": b"3", "b=.csv": b"4"}))
    command.results(deposit(command.server, 21, {"a.csv": b"5"}))
    command("publish")
    for count, chosen in (
        (1, ["--dataset", "10.5281/zenodo.11"]),
        (2, ["--dataset", "10.5281/zenodo.10"]),
        (2, ["--dataset", f"{NAME},12", "--dataset", "10.5281/zenodo.21"]),
        (2, ["--set", "strategy:s3-file"]),
        (3, ["--set", "platform"]),
        (3, []),
    ):
        folder = out / str(len(list(out.iterdir()))) if out.exists() else out / "0"
        command("export", "rocrate", str(folder), *chosen)
        assert len(list(folder.iterdir())) == count
        for one in folder.iterdir():
            assert crate(one)["./"]["hasPart"]
    told, _ = command("export", "rocrate", str(folder), "--json")
    assert json.loads(told) | {"store": ""} == {
        "store": "",
        "rocrate": str(folder),
        "folders": 0,
        "files": 0,
        "bytes": 0,
        "there": 3,
    }
    found = [names(crate(one), one) for one in folder.iterdir()]
    assert {"a.csv": b"2", "b%.csv": b"3", "b=.csv": b"4"} in found

    command("export", "bagit", str(out / "bags"), "--set", "platform:zenodo")
    for one in (out / "bags").iterdir():
        bagit.Bag(str(one)).validate()
        assert not [path for path in content(one) if "%" in path]
    _, err = command("export", "bagit", str(out / "bags"), "--set", "platform:osf", code=2)
    assert "--set platform:osf: there is no such set" in err
    _, err = command("export", "bagit", str(out / "bags"), "--dataset", "10.5/x", code=2)
    assert "no dataset is listed as 10.5/x" in err
    _, err = command("export", "bagit", str(out / "bags"), "--run", "1", "--set", "a", code=2)
    assert "leave out --set and --dataset" in err


def test_files_at_archive_org_are_left_out_and_a_crate_has_their_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    published = Published(tmp_path / "store")
    published.clock.now = datetime(2026, 11, 22, 10, tzinfo=UTC)
    there = outcome(item("c d.csv", "e.csv", archiveorg_item_name="data-42"))
    assert there.archived is not None
    files = tuple(replace(file, key=None) for file in there.archived.manifest)
    kept = replace(there.archived, ingest_strategy="archiveorg-fileset", manifest=files)
    publish(published, replace(there, archived=kept))

    def run(*command: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main([*command, "--store", "store"])
        return code, capsys.readouterr().out

    code, told = run("export", "rocrate", "crates")
    assert (code, "2 files of datasets at archive.org left out" in told) == (1, True)
    (folder,) = (tmp_path / "crates").iterdir()
    document = json.loads((folder / "ro-crate-metadata.json").read_bytes())
    found = {one["name"]: one["@id"] for one in document["@graph"] if one["@type"] == "File"}
    assert found == {
        "c d.csv": "https://archive.org/download/data-42/c%20d.csv",
        "e.csv": "https://archive.org/download/data-42/e.csv",
    }
    for name in ("bagit", "ocfl"):
        code, told = run("export", name, name)
        assert (code, told.partition(": ")[2][:2]) == (1, "0 ")


def test_damage_ends_an_export_and_leaves_nothing_half(command: Command) -> None:
    command.results(deposit(command.server, 11, {"a.csv": b"weight\n", "b.csv": b"price\n"}))
    command("publish")
    (key,) = [key for key in command.store.keys("filesets/") if key.endswith("/b.csv")]
    (command.folder / "store" / key).write_bytes(b"prize\n")
    for name in ("rocrate", "bagit", "ocfl"):
        out = command.folder / name
        _, err = command("export", name, str(out), code=2)
        assert "b.csv" in err
        assert err.count("\n") == 1
        assert not [path for path in out.rglob("*") if path.name == "a.csv"]
    assert "missing: b.csv" in command("restore", DOI, str(command.folder / "out"), code=1)[1]


def test_without_a_choice_runs_and_objects_come_with_datasets(command: Command) -> None:
    command.results(deposit(command.server, 11, {"a.csv": b"weight\n"}))
    command("publish")
    repec = three_in(command.folder / "other")
    shutil.copytree(command.folder / "other" / "obi", command.folder / "store" / "obi")
    out = command.folder / "out"
    told, _ = command("export", "ocfl", str(out / "root"))
    assert "8 objects and 22 versions added" in told
    assert valid(out / "root") == 8
    runs = [f"run-{tist}" for tist in repec.tists]
    for chosen, count in (((), 6), (("--set", "platform"), 1), (("--run", str(repec.tists[0])), 1)):
        folder = out / f"bags-{'-'.join(chosen)}"
        command("export", "bagit", str(folder), *chosen)
        found = sorted(one.name for one in folder.iterdir())
        assert len(found) == count
        for one in folder.iterdir():
            bagit.Bag(str(one)).validate()
        assert [name for name in found if name.startswith("run-")] == (
            [] if "--set" in chosen else runs[: 1 if chosen else None]
        )
