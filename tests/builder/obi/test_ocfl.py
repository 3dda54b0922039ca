"""An obi store as a storage root of OCFL, judged by ocfl-py."""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ocfl
import pytest
from ocfl.layout_registry import get_layout
from ocfl.validator import Validator

from builder.commands.cli import main
from builder.errors import UsageError
from builder.exports import obi_source
from builder.exports.obi_source import open_obi
from builder.exports.ocfl import root as ocfl_root
from builder.exports.ocfl.inventory import place
from builder.exports.ocfl.obi_objects import NAMES, ObiObject
from builder.exports.ocfl.root import ForeignRoot, Rooted
from builder.obi.content import row_line
from builder.store.folder import FolderStore
from functions.snapshot import instant
from functions.snapshot.errors import DamagedStore, NothingPublished
from functions.snapshot.store import Writer
from tests.builder.obi.kept import FIRST, FULL, LARGE, LONG, ODD, PAPER, RAW, Kept, fourth
from tests.extent import ALL

pytestmark = pytest.mark.shared(3)

USER = {"name": "sheaf", "address": "mailto:a@example.org"}


def exported(store: Writer, target: Path) -> Rooted:
    with open_obi(store, 1024, 2) as (_, connection):
        objects = (ObiObject(store, each) for each in obi_source.list_objects(connection))
        return ocfl_root.export(objects, target, USER, lambda n: None)


def valid(target: Path) -> int:
    """Return how many objects the root has; all are valid, without so much as a warning."""
    judge = ocfl.StorageRoot(root=str(target))
    assert judge.validate(log_warnings=True), judge.log.status_str()
    assert judge.errors == []
    assert judge.num_objects == judge.good_objects
    return int(judge.num_objects)


def held(target: Path, identifier: str) -> list[dict[str, bytes]]:
    """Return what each version of an object is, file by file, by its inventory alone."""
    where = target / place(identifier)
    inventory = json.loads((where / "inventory.json").read_bytes())
    assert inventory["id"] == identifier
    return [
        {
            name: (where / inventory["manifest"][digest][0]).read_bytes()
            for digest, names in version["state"].items()
            for name in names
        }
        for version in inventory["versions"].values()
    ]


def content(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return inode and content of each file."""
    return {name: ((folder / name).stat().st_ino, data) for name, data in content(folder).items()}


def standing(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return inode and time of each file and folder, which tell whether anything was written."""
    found = {path: path.stat() for path in folder.rglob("*")}
    return {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in found.items()}


def test_three_versions_of_each_object_are_valid_and_equal_byte_for_byte(
    kept: Kept, tmp_path: Path
) -> None:
    """Scenario 20; the row beside the bytes is the line of the log."""
    target = tmp_path / "root"
    done = exported(kept.store, target)
    assert (done.objects, done.versions, done.there) == (7, 21, 0)
    assert valid(target) == 7
    for identifier, versions in kept.versions.items():
        found = held(target, identifier)
        assert len(found) == 3
        for files, (tist, data) in zip(found, versions.items(), strict=True):
            (name,) = set(files) - {"version.json"}
            assert files[name] == data
            row = json.loads(files["version.json"])
            assert (row["id"], row["bytes"]) == (identifier, len(data))
            assert row["sha256"] == hashlib.sha256(data).hexdigest()
            assert kept.store.read(row["key"]) == data
            assert tist in kept.tists
    with open_obi(kept.store, 1024, 1) as (_, connection):
        for item in obi_source.list_objects(connection):
            for files, noted in zip(held(target, item.id), item.versions, strict=True):
                assert files["version.json"] == row_line(noted.version)
                assert NAMES[item.kind] in files
    # The third version of the full text is the first again: its state leads to v1.
    stored = list((target / place(FULL)).rglob("file"))
    assert sorted(path.parts[-3] for path in stored) == ["v1", "v2"]
    for identifier, messages in (
        (PAPER, ["appearance", "change", "change"]),
        (RAW, ["noted", "noted", "noted"]),
    ):
        versions = json.loads((target / place(identifier) / "inventory.json").read_bytes())[
            "versions"
        ]
        assert [
            (name, v["message"], instant.from_text(v["created"]).timestamp(), v["user"])
            for name, v in versions.items()
        ] == [
            (f"v{number}", message, FIRST + 100 * number, USER)
            for number, message in enumerate(messages, 1)
        ]


@pytest.mark.parametrize("identifier", [PAPER, ODD, RAW, FULL, LONG, "RePEc:é:ü" * 40])
def test_places_are_those_of_the_extension(identifier: str) -> None:
    layout = get_layout("0003-hash-and-id-n-tuple-storage-layout")
    assert place(identifier) == layout.identifier_to_path(identifier)
    assert max(len(part) for part in place(identifier).split("/")) <= 165


def test_again_it_adds_what_came_and_rewrites_nothing(kept: Kept, tmp_path: Path) -> None:
    target = tmp_path / "root"
    exported(kept.store, target)
    before = snapshot(target)
    assert exported(kept.store, target) == Rooted(0, 0, 0, 7)
    assert snapshot(target) == before
    fourth(kept)
    done = exported(kept.store, target)
    assert (done.objects, done.versions, done.there) == (1, 3, 5)
    assert valid(target) == 8
    assert held(target, FULL)[3]["file"] == LARGE
    after = snapshot(target)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {
        f"{place(identifier)}/{name}"
        for identifier in (PAPER, FULL)
        for name in ("inventory.json", "inventory.json.sha512")
    }
    exported(kept.store, tmp_path / "at-once")
    assert content(tmp_path / "at-once") == content(target)


def test_altered_bytes_are_refused_and_leave_nothing(kept: Kept, tmp_path: Path) -> None:
    (key,) = [k for k in kept.store.keys("obi/") if k.endswith("RePEc%3Aaaa%3Assssss%3A1")][:1]
    path = tmp_path / "store" / key
    path.write_bytes(path.read_bytes() + b"!")
    with pytest.raises(DamagedStore, match="RePEc%3Aaaa%3Assssss%3A1 is damaged"):
        exported(kept.store, tmp_path / "root")
    assert valid(tmp_path / "root") == 0
    assert not list(tmp_path.glob(".root*"))


def test_a_folder_of_something_else_is_left_alone_and_an_empty_one_taken(
    kept: Kept, tmp_path: Path
) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "thesis.txt").write_text("mine")
    with pytest.raises(ForeignRoot, match="choose a new folder"):
        exported(kept.store, tmp_path / "root")
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["thesis.txt"]
    (tmp_path / "root" / "thesis.txt").unlink()
    assert exported(kept.store, tmp_path / "root").objects == 7
    with pytest.raises(UsageError, match="/proc is a mount point"):
        exported(kept.store, Path("/proc"))


def test_a_root_of_another_store_is_refused(kept: Kept, tmp_path: Path) -> None:
    """Where it has as many versions, of the same days, nothing but the bytes tells them apart."""
    target = tmp_path / "root"
    exported(kept.store, target)
    other = Kept(FolderStore(tmp_path / "other"))
    differs = "version 1 differs from that of RePEc:aaa:ssssss:1"
    for number, said in enumerate(
        ("has more versions of RePEc:aaa:ssssss:1 than the store",) * 2 + (differs,) * 3, 1
    ):
        other.run(FIRST + 100 * number, {PAPER: b"Template-Type: x\nTitle: %d\n" % -number})
        with pytest.raises(ForeignRoot, match=said):
            exported(other.store, target)
    assert valid(target) == 7


def test_what_was_edited_or_lost_a_version_is_not_added_to(kept: Kept, tmp_path: Path) -> None:
    target = tmp_path / "root"
    exported(kept.store, target)
    shutil.move(target / place(PAPER) / "v3", tmp_path / "v3")
    with pytest.raises(DamagedStore, match="lacks v3, which its inventory names"):
        exported(kept.store, target)
    shutil.move(tmp_path / "v3", target / place(PAPER))
    path = target / place(PAPER) / "inventory.json"
    path.write_bytes(path.read_bytes().replace(b"change", b"nothing"))
    fourth(kept)
    with pytest.raises(DamagedStore, match="its inventory does not match its digest"):
        exported(kept.store, target)


def test_an_object_of_another_program_is_refused(kept: Kept, tmp_path: Path) -> None:
    """It stands where ours would, and is valid, but it has no fixity and other names."""
    target = tmp_path / "root"
    exported(kept.store, target)
    where = target / place(PAPER)
    shutil.rmtree(where)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "paper.txt").write_text("mine")
    made = ocfl.Object(identifier=PAPER, digest_algorithm="sha512")
    made.create(str(tmp_path / "theirs"), metadata=ocfl.VersionMetadata(), objdir=str(where))
    assert Validator().validate_object(str(where))
    with pytest.raises(ForeignRoot, match="version 1 differs from that of RePEc:aaa:ssssss:1"):
        exported(kept.store, target)
    assert (where / "v1/content/paper.txt").read_text() == "mine"


def test_a_store_without_runs_says_so(tmp_path: Path) -> None:
    with pytest.raises(NothingPublished, match="run `sheaf ingest`"):
        exported(FolderStore(tmp_path / "store"), tmp_path / "root")


def test_of_two_exports_to_one_place_the_second_ends(kept: Kept, tmp_path: Path) -> None:
    beside = tmp_path / ".root.sheaf"
    beside.mkdir()
    with (beside / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another export is writing to"):
            exported(kept.store, tmp_path / "root")
    assert exported(kept.store, tmp_path / "root").objects == 7


CHANGES = {"os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.link", "shutil.rmtree"}


def ended_at(step: int, work: Callable[[], object]) -> bool:
    """Do the work in a process that is killed before its change `step`; tell whether it was."""
    child = os.fork()
    if not child:
        left = step

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            writes = event == "open" and isinstance(arguments[1], str) and arguments[1] != "r"
            if event in CHANGES or writes:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(count)
            work()
            os._exit(0)
        finally:
            os._exit(1)  # this copy of the process must never go on with the tests
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("root_is_there", [False, True])
def test_killed_anywhere_every_object_is_whole_and_the_next_export_completes(
    kept: Kept, tmp_path: Path, root_is_there: bool
) -> None:
    """The root is judged after each kill that left it otherwise than the one before."""
    target, whole = tmp_path / "root", tmp_path / "whole"

    def work() -> None:
        ocfl_root.export(objects, target, USER, lambda n: None)

    def some() -> list[ObiObject]:
        with open_obi(kept.store, 1024, 1) as (_, connection):
            every = (ObiObject(kept.store, each) for each in obi_source.list_objects(connection))
            return [one for one in every if one.id in (PAPER, FULL)]

    objects = some()
    if root_is_there:
        work()
        fourth(kept)
        objects = some()
    ocfl_root.export(objects, whole, USER, lambda n: None)
    step, killed, judged = 0, True, standing(target)
    while killed:
        killed = ended_at(step, work)
        if (there := standing(target)) != judged:
            valid(target)
            judged = there
        step += 1 if ALL else 4
    assert step > 40
    assert valid(target) == len(objects)
    assert content(target) == content(whole)
    assert not list(tmp_path.glob(".root*"))


def test_the_command_writes_adds_and_says_so(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    size = sum(len(data) for v in kept.versions.values() for data in set(v.values()))
    command = ["export", "ocfl", "--store", "store", "root"]
    assert main(command) == 0
    assert capsys.readouterr().out == (
        f"{tmp_path}/root: 7 objects and 21 versions added ({size:,} bytes); 0 were there\n"
    )
    fourth(kept)
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["objects"], told["versions"], told["there"]) == (1, 3, 5)
    assert valid(tmp_path / "root") == 8
    assert main(["export", "ocfl", "--store", "store", "store"]) == 2
    assert "store is inside the store" in capsys.readouterr().err
    (tmp_path / "file").write_text("mine")
    for taken in ("file", "file/below"):
        assert main(["export", "ocfl", "--store", "store", taken]) == 2
        assert f"{taken} cannot be written: " in capsys.readouterr().err
    assert main([*command, "--newest"]) == 2
    assert main([*command, "--run", "1"]) == 2
    assert main(["export", "ocfl", "--store", "empty", "none"]) == 2
    assert capsys.readouterr().err.count("\n") == 3
    assert not (tmp_path / "none").exists()
