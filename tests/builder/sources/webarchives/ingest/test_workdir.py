"""The work of an ingest: who may be at it, what goes on with it, and what becomes of it."""

import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from builder.errors import UsageError
from builder.intake.captures import Fault
from builder.intake.pool import Advance
from builder.intake.rows import IntakeWriter
from builder.sources.webarchives.ingest import parts
from builder.sources.webarchives.ingest.ingest import PartFolder
from builder.sources.webarchives.ingest.plan import IngestJob, IngestPart, SplitResult
from builder.sources.webarchives.ingest.split_reader import Task
from builder.store import workdir
from builder.store.durable import writing
from functions.snapshot.errors import NO_SPACE, StoreError
from tests.builder.sources.webarchives.ingest.test_ingest import (
    RULES,
    SETS,
    archive,
    as_read,
    ingested,
    intake_of,
    table,
)

pytestmark = pytest.mark.shared(2)


class Died(Exception):
    """The process ended here."""


def _begun(
    root: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch, at: int = 2, split: int = 2000
) -> Path:
    """Let an ingest die once `at` parts are finished; return its folder."""
    real = parts.write_part
    count = 0

    def dying(*given: object, **named: object) -> IngestPart:
        nonlocal count
        if count == at:
            raise Died
        count += 1
        return real(*given, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(parts, "write_part", dying)
        with pytest.raises(Died):
            ingested(root, files, split)
    (folder,) = (root / ".tmp").glob("ingest-*")
    return folder


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [archive(tmp_path / f"{n}.warc.gz", 20, seed=n) for n in range(3)]


def test_what_was_read_is_not_read_again(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _begun(tmp_path / "s", files, monkeypatch, at=4)
    other = tmp_path / "s" / "intake" / "other" / "run.json"
    other.parent.mkdir(parents=True)
    other.write_text("{")  # damage elsewhere stops no ingest
    _, seen = ingested(tmp_path / "s", files, split=700, name="later")  # the first one's is kept
    other.unlink()
    assert seen.said[0].startswith("resuming: 1 of 3 files were read before, 0.0 of 0.0 MB")
    assert seen.before[2] == 1
    assert seen.files == 2
    assert 0 < seen.read == sum(p.stat().st_size for p in files) - seen.before[0]
    ingested(tmp_path / "whole", files)
    assert intake_of(tmp_path / "s") == intake_of(tmp_path / "whole")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("change", ["size", "time"])
def test_a_file_that_changed_meanwhile_is_read_anew(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    _begun(tmp_path / "s", files, monkeypatch, at=8)
    if change == "size":
        archive(files[0], 25, seed=9)
    else:
        status = files[0].stat()
        data = bytearray(files[0].read_bytes())
        data[-20] ^= 1
        files[0].write_bytes(data)
        os.utime(files[0], ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    _, seen = ingested(tmp_path / "s", files)
    assert seen.said[0].startswith("resuming: 1 of 3")
    assert table(tmp_path / "s", "captures") == as_read(files)[0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: None,
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: json.dumps({"results": [{"split": {}}]}).encode(),
    ],
    ids=["cut", "removed", "flipped", "other"],
)
@pytest.mark.parametrize("name", ["part-*.json", "captures-*.parquet"])
def test_a_part_that_is_damaged_is_read_anew(
    tmp_path: Path,
    files: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    damage: Callable[[bytes], bytes | None],
) -> None:
    folder = _begun(tmp_path / "s", files, monkeypatch)
    for part in (folder / "parts").rglob(name):
        data = damage(part.read_bytes())
        part.unlink() if data is None else part.write_bytes(data)
    (folder / "parts" / ".half").mkdir()
    _, seen = ingested(tmp_path / "s", files)
    assert seen.before == (0, 0, 0)
    assert table(tmp_path / "s", "captures") == as_read(files)[0]
    assert list((tmp_path / "s" / ".tmp").iterdir()) == []


def test_files_that_came_or_went_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones are read together, so of a part some rows may be wanted, and in another order."""
    small = tmp_path / "small"
    small.mkdir()
    files = [archive(small / f"{n}.warc.gz", 4, seed=n) for n in range(5)]
    large = archive(tmp_path / "large.warc.gz", 80)
    begun = _begun(tmp_path / "s", [*files, large], monkeypatch, at=1, split=9000)
    files[1].unlink()
    archive(files[3], 6, seed=7)
    new = [files[0], archive(small / "new.warc.gz", 5, seed=8), *files[2:], large]
    order = [str(path) for path in new]
    # The same is asked for: a folder of which the files are others now.
    begun.rename(_folder(tmp_path / "s", new))
    _, seen = ingested(tmp_path / "s", new)
    assert seen.before[2] == 3, order
    captures, faults = as_read(new)
    assert table(tmp_path / "s", "captures") == captures
    assert table(tmp_path / "s", "faults") == faults


def _folder(root: Path, files: list[Path]) -> Path:
    asked = IngestJob((), SETS, RULES).fingerprint(list(map(str, files)), str(root))
    return workdir.folder_of(root / ".tmp", asked)


def test_only_one_is_at_it_and_others_do_not_mind(tmp_path: Path, files: list[Path]) -> None:
    home = tmp_path / "home"
    with workdir.open_workdir(home / "ingest-1") as one:
        with (
            pytest.raises(UsageError, match=f"process {os.getpid()} is ingesting the same"),
            workdir.open_workdir(home / "ingest-1"),
        ):
            pass
        with workdir.open_workdir(home / "ingest-2", lambda: time.time() + 10 * workdir.KEPT):
            assert one.folder.exists()  # however old: it is held
    assert list(home.iterdir()) == []  # where nothing was finished, nothing is left


def test_what_was_left_is_removed_once_it_is_old(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _begun(tmp_path / "s", files, monkeypatch)
    foreign = folder.parent / "ingest-foreign"
    (foreign / "x").mkdir(parents=True)  # without a lock it is none of ours
    (folder.parent / "ingest-empty").mkdir()
    beside = folder.parent / "ingest-other"
    for later, left in ((workdir.KEPT - 60, True), (workdir.KEPT + 60, False)):
        with workdir.open_workdir(beside, lambda later=later: time.time() + later):  # type: ignore[misc]
            assert folder.exists() == left
    assert foreign.exists()
    assert not (folder.parent / "ingest-empty").exists()
    assert not beside.exists()


def test_what_cannot_be_asked_for_again_does_not_stay(tmp_path: Path) -> None:
    with workdir.open_workdir(workdir.folder_of(tmp_path, None)) as held:
        (held.parts / "part").mkdir()
    assert list(tmp_path.iterdir()) == []
    left = workdir.folder_of(tmp_path, None)
    left.mkdir()
    (left / ".lock").touch()  # killed in the midst of it
    with workdir.open_workdir(tmp_path / "ingest-1"):
        assert not left.exists()


def test_work_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StoreError, match="cannot be written: File exists"),
        workdir.open_workdir(tmp_path / "file" / "ingest-1"),
    ):
        pass


def test_a_disk_that_is_full_while_a_part_is_written(tmp_path: Path) -> None:
    """It is the disk of the work, which TMPDIR does not move."""
    (tmp_path / "faults-x.parquet").symlink_to("/dev/full")
    said = f"{tmp_path}: the disk is full; free some space and run the command again"

    def written() -> None:
        with writing(tmp_path):
            part = IntakeWriter(tmp_path, "x")
            part.fault(Fault("a", None, "garbage", None, "x" * 100, "left out"))
            part.close()

    with pytest.raises(StoreError, match=said):
        written()


def test_a_disk_that_is_full_while_the_run_is_put_together(
    tmp_path: Path, files: list[Path]
) -> None:
    real = workdir.Work.scratch

    @contextmanager
    def full(held: workdir.Work) -> Iterator[Path]:
        (held.folder / "captures-000000.parquet").symlink_to("/dev/full")
        with real(held) as scratch:
            yield scratch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workdir.Work, "scratch", full)
        with pytest.raises(StoreError, match=r"ingest-\w+: the disk is full; free some space"):
            ingested(tmp_path / "store", files)


def test_where_but_a_digest_was_read_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "a.warc", 2000)
    _begun(tmp_path / "store", [path], monkeypatch, at=1, split=1 << 16)
    _, seen = ingested(tmp_path / "store", [path], split=1 << 16)
    assert not seen.said


@pytest.mark.parametrize("lost", ["digest", "range"])
def test_a_file_that_vanishes_while_its_ranges_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """It is unreadable, and that is all."""
    files = [archive(tmp_path / "a.warc", 2000), archive(tmp_path / "b.warc", 20)]
    real = parts.carry_out

    def vanishing(task: Task, advance: Advance) -> list[SplitResult]:
        (one, *_) = task.splits
        if one.kind == lost and (lost == "digest" or one.start):
            files[0].unlink(missing_ok=True)
        return real(task, advance)

    monkeypatch.setattr(parts, "carry_out", vanishing)
    done, seen = ingested(tmp_path / "store", files, split=1 << 16)
    gone, there = done.run.sources
    assert (gone.codes, gone.captures, there.captures) == ({"unreadable": 1}, 0, 20)
    assert (done.whole, seen.said) == ((), [])


def test_a_file_that_changes_while_its_ranges_are_read_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [archive(tmp_path / "a.warc", 2000), archive(tmp_path / "b.warc", 20)]
    real = parts.carry_out

    def touching(task: Task, advance: Advance) -> list[SplitResult]:
        os.utime(files[0], ns=(0, 0))
        return real(task, advance)

    monkeypatch.setattr(parts, "carry_out", touching)
    done, seen = ingested(tmp_path / "store", files, split=1 << 16)
    assert seen.said == [
        f"{files[0]} changed while it was read: ingest it again when it is complete"
    ]
    assert [source.captures for source in done.run.sources] == [2000, 20]


def test_parts_need_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of --work may have none."""

    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "draft").write_bytes(b"rows")
    folder = PartFolder(tmp_path / "parts")
    folder.root.mkdir()
    with (tmp_path / "draft").open("rb") as draft:
        folder.put("part-000000-a/captures-000000.parquet", draft)
    folder.create("part-000000.json", b"{}")
    assert list(folder.keys("")) == ["part-000000-a/captures-000000.parquet", "part-000000.json"]


def test_what_goes_wrong_in_the_midst_of_a_part_is_what_is_told(tmp_path: Path) -> None:
    """Not what goes wrong because of it, while its files are closed."""
    path = archive(tmp_path / "a.warc.gz", 9000, few=9000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # as a disk with as much room
    try:
        with pytest.raises(StoreError, match="File too large"):
            ingested(tmp_path / "store", [path])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_while_the_engine_writes(tmp_path: Path) -> None:
    place = tmp_path / "part"
    error = StoreError(f"the index i.cdxj cannot be read or written: {NO_SPACE} (/tmp)")
    for where, said in ((place / "x.parquet", "part: the disk is full"), ("/tmp/y", "set TMPDIR")):
        cause = OSError(f'Could not write file "{where}": No space left on device')
        with pytest.raises(StoreError, match=said), writing(place):
            raise error from cause
