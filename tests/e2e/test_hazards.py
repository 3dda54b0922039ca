"""Full disks, folders that may not be written, and damage: told in a line, and nothing is lost."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from functions.config import configuration
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import layout
from functions.snapshot.errors import VERSION
from functions.snapshot.manifest import Manifest
from functions.store.catalog import Catalogue
from functions.store.store_reader import FolderReader
from tests.builder.conftest import leave_out_copy
from tests.e2e.conftest import Home, Result, make_home, warc
from tests.e2e.test_commands import one_line
from tests.functions.oai.client import content, event, respond

pytestmark = pytest.mark.shared(2)

PAGES = {f"http://a{n}.cz/": b"<title>A page</title>" for n in range(12)}
MORE = {f"http://b{n}.cz/": b"<title>Another</title>" for n in range(3)}
FIRST = "verb=ListRecords&metadataPrefix=oai_dc"


def mounted(folder: Path, *options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@dataclass
class Disk:
    """A small file system of its own, with an archive's home on it."""

    home: Home
    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def __call__(self, command: str, *arguments: object) -> Result:
        return self.home(command, "--store", self.store, *arguments)

    def fill(self, free: int) -> None:
        """Fill the disk but for so many bytes."""
        filler = self.folder / "filler"
        filler.unlink(missing_ok=True)
        status = os.statvfs(self.folder)
        filler.write_bytes(b"\0" * max(0, status.f_bavail * status.f_frsize - free))

    def empty(self) -> None:
        (self.folder / "filler").unlink()

    def begin(self, stage: Path) -> None:
        """Put a store there, without looking whether there is room: three megabytes are enough."""
        shutil.copytree(stage, self.store)

    def titles(self) -> list[str]:
        result = self("query", "SELECT url FROM captures ORDER BY url")
        assert result.code == 0, result.err
        return result.out.splitlines()[1:]


@pytest.fixture
def disk(home: Home, tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mounted(folder, "size=3m"):
        pytest.skip("a file system of its own cannot be mounted here (that takes root)")
    try:
        yield Disk(home, folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def objects(store: Path) -> dict[str, bytes]:
    """Return all that there is but what is temporary."""
    found = {p.relative_to(store).as_posix(): p for p in store.rglob("*") if p.is_file()}
    return {k: p.read_bytes() for k, p in sorted(found.items()) if not k.startswith(".")}


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of an archive's home, and beside its store copies of what that was before:
    `published`, with more in its `intake`, and published `again`.
    """
    folder = tmp_path_factory.mktemp("stages")
    home = make_home(folder / "home")

    def keep(name: str) -> None:
        shutil.copytree(home.folder / "store", folder / name)

    home.publish_pages(folder / "one.warc.gz", PAGES)
    keep("published")
    home("ingest", warc(folder / "two.warc.gz", MORE), "--jobs", "1")
    keep("intake")
    assert home("publish").code == 0
    keep("again")
    return folder


COMMANDS: dict[str, list[str]] = {
    "ingest": ["ingest", "two.warc.gz", "--jobs", "1"],
    "publish": ["publish"],
    "withdraw": ["withdraw", "--set", "domain:cz:a3", "--reason", "asked for"],
    "expire": ["expire", "--keep", "1", "--older-than", "0s"],
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_may_be_full_at_any_write(disk: Disk, stages: Path, name: str) -> None:
    """More and more is free, by pages of 4 KiB, until the command gets through."""
    disk.begin(stages / {"ingest": "published", "expire": "again"}.get(name, "intake"))
    command = [str(stages / a) if a.endswith(".gz") else a for a in COMMANDS[name]]
    if name == "expire":
        _followed_long_ago(disk.store)
    before, titles = objects(disk.store), disk.titles()
    fulls = 0
    for pages in (0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 64):
        disk.fill(pages * 4096)
        result = disk(*command)
        if result.code == 0:
            break
        fulls += 1
        assert result.code == 2
        line = one_line(result.err)
        assert re.search(r"disk( for scratch files)? is full", line)
        if "The change is in effect" in line:  # and only the tables lack
            assert disk.titles() != titles or name == "expire"
            break
        # Nothing of it is seen, and all that was there is.
        seen = objects(disk.store)
        told = ("current.json", "/run.json", "/manifest.json")
        assert {k: v for k, v in seen.items() if k in before or k.endswith(told)} == before
        if fulls == 2:
            assert disk.titles() == titles
    disk.empty()
    assert fulls >= (1 if name == "expire" else 3)
    if name == "ingest":
        assert disk("publish").code == 0
    again = disk(*command)
    assert again.code == 0 or "no item matches" in again.err
    after = disk.titles()
    # A withdrawn item is a tombstone, and what it published on the way is the intake's.
    expected = {"withdraw": 11}.get(name, 15)
    assert len(after) == expected
    assert disk("publish").code == 0  # it completes the tables
    checked = disk("verify")
    assert checked.code == 0, checked.out


def _followed_long_ago(store: Path) -> None:
    """Let the pointer name the newest snapshot alone, as it does after a minute."""
    pointer = Catalogue(FolderReader(store)).pointer()
    path = store / layout.POINTER
    path.write_bytes(pointer.trim(datetime.max.replace(tzinfo=UTC)).to_json())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_is_read_only(disk: Disk, stages: Path, name: str) -> None:
    disk.begin(stages / ("again" if name == "expire" else "intake"))
    if name == "expire":
        _followed_long_ago(disk.store)
    command = [str(stages / a) if a.endswith(".gz") else a for a in COMMANDS[name]]
    command += ["--again"] if name == "ingest" else []  # it would have nothing to write
    titles = disk.titles()
    subprocess.run(["mount", "-o", "remount,ro", str(disk.folder)], check=True)
    result = disk(*command)
    assert result.code == 2
    line = one_line(result.err)
    assert "Read-only file system" in line
    assert str(disk.store) in line
    assert disk.titles() == titles
    assert served(disk.store, FIRST)[0] == 200
    subprocess.run(["mount", "-o", "remount,rw", str(disk.folder)], check=True)
    assert disk(*command).code == 0


def served(store: Path, query: str) -> tuple[int, dict[str, str], bytes]:
    """Ask a server that begins now."""
    text = "[pages]\nrecords = 5\n[serve]\npointer_seconds = 0\n"
    repository = DuckRepository(FolderReader(store))
    try:
        application = Application(
            repository, configuration.parse(text, {}), lambda: datetime.now(UTC)
        )
        reply = respond(application, event(query))
    finally:
        repository.close()
    body = content(reply) if reply["statusCode"] == 200 else reply["body"].encode()
    return reply["statusCode"], reply["headers"], body


def token(body: bytes) -> str:
    found = re.search(rb"<resumptionToken[^>]*>([^<]+)<", body)
    assert found
    return f"verb=ListRecords&resumptionToken={found[1].decode()}"


@pytest.fixture(scope="module")
def original(stages: Path) -> Home:
    """Give two snapshots, whose records lie in two files, and intake that touches all of it."""
    home = Home(stages / "home")
    changed = warc(
        stages / "changed.warc.gz", {"http://a1.cz/": b"<title>A page</title>", "http://c.cz/": b""}
    )
    home("ingest", changed, stages / "two.warc.gz", "--collection", "late", "--jobs", "1")
    assert home("verify").code == 0
    return home


def newest(home: Home) -> Manifest:
    catalogue = Catalogue(FolderReader(home.folder / "store"))
    entry = catalogue.pointer().newest()
    assert entry is not None
    return catalogue.manifest(entry.snapshot)


def refused(home: Home, commands: list[list[str]], named: str, remedy: str) -> None:
    """Each command says in a line what is damaged and what to do, and changes nothing."""
    before = objects(home.folder / "store")
    for command in commands:
        result = home(*command)
        assert result.code == 2, (command, result)
        line = one_line(result.err)
        assert named in line, command
        assert remedy in line, command
        assert objects(home.folder / "store") == before, command
    assert home("status").code in (0, 2)


WRITERS = [COMMANDS["publish"], COMMANDS["withdraw"], COMMANDS["expire"]]
READERS = [["status"], ["query", "FROM captures"], ["serve", "--port", "0"]]

POINTERS: dict[str, tuple[Callable[[bytes], bytes], str, str]] = {
    defect: (edit, "current.json", "restore a copy")
    for defect, edit in {
        "empty": lambda data: b"",
        "truncated": lambda data: data[:-20],
        "no-json": lambda data: data.replace(b":", b"=", 1),
        "no-text": lambda data: b"\xff\xfe" + data,
        "a-list": lambda data: b"[]",
        "a-date-of-its-own": lambda data: data.replace(b"Z", b""),
    }.items()
}
POINTERS["a-later-schema"] = (
    lambda data: data.replace(b'"schema": %d' % VERSION, b'"schema": 99'),
    "schema 99",
    "install Sheaf",
)
POINTERS["another-snapshot"] = (
    lambda data: data.replace(b'"snapshot": 2', b'"snapshot": 77'),
    "current.json",
    "remove sha256",
)
POINTERS["a-missing-snapshot"] = (
    lambda data: re.sub(rb',\s*"sha256": "\w+"', b"", POINTERS["another-snapshot"][0](data)),
    "snapshots/77/manifest.json",
    "restore a copy",
)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("defect", POINTERS)
def test_a_pointer_edited_by_hand(published: Home, defect: str) -> None:
    edit, named, remedy = POINTERS[defect]
    path = published.folder / "store" / layout.POINTER
    whole = path.read_bytes()
    assert edit(whole) != whole
    path.write_bytes(edit(whole))
    refused(published, WRITERS + READERS, named, remedy)
    code, headers, body = served(path.parent, FIRST)
    assert code == 503
    assert headers["Retry-After"] == "30"
    assert named.encode() not in body  # strangers are not told
    path.write_bytes(whole)
    assert served(path.parent, FIRST)[0] == 200
    assert published("verify").code == 0


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def remove(path: Path) -> None:
    path.unlink()


def edited(path: Path) -> None:
    """Change a digit, so that it reads well and is wrong."""
    data = path.read_bytes()
    place = re.search(rb'"bytes":(\d)', data)
    assert place
    digit = b"1" if place[1] != b"1" else b"2"
    path.write_bytes(data[: place.start(1)] + digit + data[place.end(1) :])


def garbled(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"{", b"[", 1))


def of_another_snapshot(path: Path) -> None:
    path.write_bytes((path.parents[1] / "1" / "manifest.json").read_bytes())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("damage", [cut, remove], ids=lambda f: f.__name__)
def test_a_data_file_that_is_damaged(published: Home, damage: Callable[[Path], None]) -> None:
    """The page that needs it is refused, others are served."""
    store = published.folder / "store"
    catalogue = Catalogue(FolderReader(store))
    files = list(catalogue.files(newest(published), "records"))
    assert len(files) == 2
    pages = [served(store, FIRST)]
    pages.append(served(store, token(pages[0][2])))
    pages.append(served(store, token(pages[1][2])))
    assert [code for code, _, _ in pages] == [200] * 3
    path = store / files[1].key
    whole = path.read_bytes()
    damage(path)
    assert served(store, FIRST)[0] == 200
    assert served(store, token(pages[0][2]))[0] == 200
    code, headers, _ = served(store, token(pages[1][2]))
    assert code == 503
    assert headers["Retry-After"] == "30"
    refused(published, [COMMANDS["publish"]], files[1].key, "")
    result = published("verify")
    assert result.code == 1
    assert files[1].key in result.out
    path.write_bytes(whole)
    assert published("publish").code == 0
    assert published("verify").code == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("damage", [remove, edited, garbled], ids=lambda f: f.__name__)
def test_a_leaf_that_is_damaged(published: Home, damage: Callable[[Path], None]) -> None:
    store = published.folder / "store"
    (leaf, *_) = newest(published).tables["records"]
    path = store / leaf.key
    whole = path.read_bytes()
    damage(path)
    refused(published, [*WRITERS, READERS[1]], leaf.key, "restore a copy")
    assert served(store, FIRST)[0] == 200  # the manifest has it too
    manifest = store / layout.manifest_key(newest(published).snapshot)
    manifest.write_text(json.dumps({**json.loads(manifest.read_bytes()), "leaves": {}}))
    leave_out_copy(store)
    code, headers, _ = served(store, FIRST)
    assert code == 503
    assert headers["Retry-After"] == "30"
    assert served(store, "verb=Identify")[0] == 200
    path.write_bytes(whole)
    assert served(store, FIRST)[0] == 200
    assert published("verify").code == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "damage", [cut, remove, garbled, of_another_snapshot], ids=lambda f: f.__name__
)
def test_a_manifest_that_is_damaged(published: Home, damage: Callable[[Path], None]) -> None:
    key = layout.manifest_key(2)
    path = published.folder / "store" / key
    whole = path.read_bytes()
    damage(path)
    assert served(published.folder / "store", FIRST)[0] == 200  # by the witness's copy
    leave_out_copy(published.folder / "store")
    refused(published, WRITERS + READERS, key, "restore a copy")
    assert served(published.folder / "store", FIRST)[0] == 503
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(whole)
    assert served(published.folder / "store", FIRST)[0] == 200
    assert published("verify").code == 0


def test_a_server_that_runs_goes_on_when_what_was_damaged_is_put_back(published: Home) -> None:
    from urllib.error import HTTPError
    from urllib.request import urlopen

    path = published.folder / "store" / layout.POINTER
    whole = path.read_bytes()
    with published.served(SHEAF_SERVE_POINTER_SECONDS="0") as url:
        assert urlopen(f"{url}?{FIRST}").status == 200
        path.write_bytes(b"")
        with pytest.raises(HTTPError, match="503"):
            urlopen(f"{url}?{FIRST}")
        path.write_bytes(whole)
        assert urlopen(f"{url}?{FIRST}").status == 200


def test_the_command_itself_ends_without_a_traceback(published: Home) -> None:
    """As a process of its own, with the exit status that the shell sees."""
    (published.folder / "store" / layout.POINTER).write_bytes(b"{")
    command = [sys.executable, "-m", "builder", "publish", "--config", str(published.config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "current.json is damaged" in one_line(done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1
