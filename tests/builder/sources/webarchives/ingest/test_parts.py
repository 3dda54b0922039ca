"""Ingest in parts: whatever the chunks, and whoever reads them, the run is that of one process."""

import random
import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from builder.errors import UsageError
from builder.intake import intake
from builder.sources.webarchives.cdx import reader
from builder.sources.webarchives.ingest import plan, splits
from builder.sources.webarchives.ingest.join import commit
from builder.sources.webarchives.ingest.parts import read_part
from builder.sources.webarchives.ingest.plan import (
    IngestJob,
    IngestPlan,
    find_part,
    read_plan,
    write_plan,
)
from builder.sources.webarchives.ingest.result import IngestResult
from builder.sources.webarchives.ingest.splits import ArchiveFile
from builder.sources.webarchives.rules import DocumentRules, SetRule
from builder.store.folder import FolderStore
from functions.snapshot.errors import DamagedStore, StoreError
from functions.snapshot.store import Writer
from tests.builder.indexes import line, rows_of
from tests.builder.sources.webarchives.ingest.test_ingest import (
    _SHARED,
    RULES,
    SETS,
    archive,
    as_read,
    crawl,
    ingested,
)

pytestmark = pytest.mark.shared(2)

__all__ = ["crawl"]  # a fixture

RUN = "run"


def planned(store: FolderStore, files: Sequence[Path], chunk: int, run: str = RUN) -> IngestPlan:
    job = IngestJob(tuple(ArchiveFile.of(path) for path in files), SETS, RULES)
    return write_plan(store, run, job, chunk)


def committed(
    store: FolderStore, made: IngestPlan, scratch: Path
) -> tuple[IngestResult, list[str]]:
    said: list[str] = []
    shutil.rmtree(scratch, ignore_errors=True)
    return commit(store, made, scratch, said.append), said


def rows(store: Writer, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table as a publish reads them."""
    found = list(intake.runs(store))
    return rows_of(intake.files(store, found, intake.keys_of(store, found), table))


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("chunk", [900, 2500, 1 << 20])
def test_any_chunks_in_any_order_give_the_run_of_one_process(
    store: FolderStore, crawl: list[Path], tmp_path: Path, chunk: int
) -> None:
    whole, _ = ingested(tmp_path / "whole", crawl, split=1 << 30)
    made = planned(store, crawl, chunk)
    numbers = list(range(made.chunks))
    random.Random(chunk).shuffle(numbers)
    for number in numbers:
        read_part(store, read_plan(store, RUN), number, tmp_path / f"machine-{number % 3}")
    done, said = committed(store, made, tmp_path / "scratch")
    assert (done.run.sources, done.run.name) == (whole.run.sources, RUN)
    assert rows(store, "captures") == as_read(crawl)[0]
    assert rows(store, "faults") == as_read(crawl)[1]
    shared = [str(path) for path in crawl if path.name in _SHARED]
    assert list(done.whole) == (shared if chunk < 1000 else [])
    assert len(said) == len(done.whole)
    assert not [p for n in range(3) for p in (tmp_path / f"machine-{n}").glob("*")]
    intake.discard(store, list(intake.runs(store)))
    assert list(store.keys("intake/")) == []


def test_a_plan_is_read_as_it_was_written(store: FolderStore, crawl: list[Path]) -> None:
    rules = DocumentRules(set_rules=(SetRule("a", hosts=("a.cz",)),), collections=("collection:x",))
    job = IngestJob(tuple(ArchiveFile.of(path) for path in crawl), ("collection:x",), rules)
    made = write_plan(store, RUN, job, 2500)
    assert read_plan(store, RUN) == made
    chunks = [plan.read_chunk(store, made, n) for n in range(made.chunks)]
    every = [split for file in job.files for split in splits.split_file(file, 2500)]
    assert [split for chunk in chunks for split in chunk] == every


def test_a_plan_of_many_chunks_has_pages(
    store: FolderStore, crawl: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "PAGE", 3)
    monkeypatch.setattr(splits, "TOGETHER", 1)
    made = planned(store, crawl, 1 << 20)
    pages = [key for key in store.keys("intake/") if key.endswith(".jsonl")]
    assert len(pages) == -(-made.chunks // 3)
    (found,) = plan.read_chunk(store, made, 4)
    assert found.file.path == crawl[4]


def test_an_index_keeps_its_order(store: FolderStore, tmp_path: Path) -> None:
    files = [archive(tmp_path / "b.warc.gz", 5)]
    for name in ("a.cdxj", "c.cdxj"):
        lines = (line(f"http://www.a.cz/{n}", filename=f"{name}.warc.gz") for n in range(9))
        files.append(tmp_path / name)
        files[-1].write_bytes(b"\n".join(lines) + b"\n")
    made = planned(store, sorted(files), 1)
    for number in range(made.chunks):
        read_part(store, made, number, tmp_path / "work")
    committed(store, made, tmp_path / "scratch")
    found = rows(store, "captures")
    names = [row["warc_filename"] for row in found]
    assert names == ["a.cdxj.warc.gz"] * 9 + ["b.warc.gz"] * 5 + ["c.cdxj.warc.gz"] * 9


def test_an_index_that_is_lost_while_it_is_read_has_no_rows_but_the_fault(
    store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some were written before; the count of its source has none of them."""
    path = tmp_path / "a.cdxj"
    path.write_bytes(line("http://www.a.cz/") + b"\n")
    made = planned(store, [path], 1 << 20)
    real = reader.read

    def lose(*given: Any) -> None:
        real(*given)
        raise OSError("the disk is gone")

    monkeypatch.setattr(reader, "read", lose)
    read_part(store, made, 0, tmp_path / "work")
    done, _ = committed(store, made, tmp_path / "scratch")
    assert [(s.captures, dict(s.codes)) for s in done.run.sources] == [(0, {"unreadable": 1})]
    assert (rows(store, "captures"), len(rows(store, "faults"))) == ([], 1)


def test_a_part_that_is_read_twice_at_once_counts_once(
    store: FolderStore, crawl: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = planned(store, crawl[:2], 1 << 20)
    together = threading.Barrier(2)
    real = FolderStore.create

    def create(self: FolderStore, key: str, data: bytes) -> None:
        together.wait(10)
        real(self, key, data)

    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(FolderStore, "create", create)
        both = [pool.submit(read_part, store, made, 0, tmp_path / name) for name in "ab"]
        first, second = (each.result() for each in both)
    assert first.files == second.files
    committed(store, made, tmp_path / "scratch")
    there = {key for key in store.keys("intake/run/") if "/captures-" in key}
    assert there == {made.key(name) for name in first.files if "captures" in name}
    assert rows(store, "captures") == as_read(crawl[:2])[0]


def test_a_part_that_was_killed_is_read_again(
    store: FolderStore, crawl: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = planned(store, crawl, 2500)
    for number in range(made.chunks):
        with monkeypatch.context() as patch:
            # The rows arrive, and what makes them count does not.
            patch.setattr(FolderStore, "create", _gone)
            with pytest.raises(StoreError, match="gone"):
                read_part(store, made, number, tmp_path / "work")
        assert find_part(store, made, number) is None
        read_part(store, made, number, tmp_path / "work")
        assert read_part(store, made, number, tmp_path / "none") == find_part(store, made, number)
    assert not (tmp_path / "none").exists()
    committed(store, made, tmp_path / "scratch")
    assert rows(store, "captures") == as_read(crawl)[0]
    assert rows(store, "faults") == as_read(crawl)[1]


def _gone(*_: object) -> None:
    raise StoreError("the store is gone")


@pytest.mark.thorough
def test_a_commit_that_was_killed_is_given_again(
    store: FolderStore, crawl: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = planned(store, crawl, 900)
    for number in range(made.chunks):
        read_part(store, made, number, tmp_path / "work")
    with monkeypatch.context() as patch:
        patch.setattr(intake, "commit", _gone)
        with pytest.raises(StoreError, match="gone"):
            committed(store, made, tmp_path / "scratch")
    assert list(intake.runs(store)) == []
    committed(store, made, tmp_path / "scratch")
    assert rows(store, "captures") == as_read(crawl)[0]
    with pytest.raises(UsageError, match="is committed already: run `sheaf publish`"):
        committed(store, made, tmp_path / "scratch")


def test_what_is_missing_is_named(store: FolderStore, crawl: list[Path], tmp_path: Path) -> None:
    made = planned(store, crawl, 2500)
    read_part(store, made, 0, tmp_path / "work")
    with pytest.raises(UsageError) as missing:
        committed(store, made, tmp_path / "scratch")
    count = made.chunks - 1
    assert f"{count} of {made.chunks} parts of run run are missing: 1, 2, 3, 4, 5 and more" in str(
        missing.value
    )
    assert "`sheaf ingest part --run run --index 1`" in str(missing.value)


def test_what_is_not_planned_is_refused(
    store: FolderStore, crawl: list[Path], tmp_path: Path
) -> None:
    made = planned(store, crawl, 1 << 20)
    for index in (-1, 10_000):
        with pytest.raises(UsageError, match="expected a number from 0 to"):
            read_part(store, made, index, tmp_path / "work")
    with pytest.raises(UsageError, match="use one version for all parts"):
        read_part(store, replace(made, reader=("0.0.1", "x")), 0, tmp_path / "work")
    with pytest.raises(UsageError, match="there is no run nothing to go on with"):
        read_plan(store, "nothing")


@pytest.mark.parametrize("key", ["plan.json", "part-000000.json"])
def test_a_damaged_document(
    store: FolderStore, crawl: list[Path], tmp_path: Path, key: str
) -> None:
    made = planned(store, crawl[:1], 1 << 20)
    read_part(store, made, 0, tmp_path / "work")
    (store.root / made.key(key)).write_bytes(b"{}")
    with pytest.raises(DamagedStore, match=key):
        committed(store, read_plan(store, RUN), tmp_path / "scratch")


def test_a_file_that_changed_meanwhile_is_named(
    store: FolderStore, crawl: list[Path], tmp_path: Path
) -> None:
    path = archive(tmp_path / "grows.warc.gz", 3)
    made = planned(store, [path], 1 << 20)
    with path.open("ab") as file:
        file.write(b"x")
    read_part(store, made, 0, tmp_path / "work")
    _, said = committed(store, made, tmp_path / "scratch")
    assert said == [f"{path} changed while it was read: ingest it again when it is complete"]


def test_a_file_that_is_gone_is_a_fault(store: FolderStore, tmp_path: Path) -> None:
    path = archive(tmp_path / "gone.warc.gz", 3)
    made = planned(store, [path], 1 << 20)
    path.unlink()
    part = read_part(store, made, 0, tmp_path / "work")
    assert part.captures == 0
    done, _ = committed(store, made, tmp_path / "scratch")
    assert [(s.failed, dict(s.codes)) for s in done.run.sources] == [(True, {"unreadable": 1})]
    assert [row["code"] for row in rows(store, "faults")] == ["unreadable"]


def test_a_store_that_lost_a_part_is_damaged(
    store: FolderStore, crawl: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = planned(store, crawl[:1], 1 << 20)
    part = read_part(store, made, 0, tmp_path / "work")
    store.remove(made.key(part.files[0]))
    with pytest.raises(StoreError, match="was removed during the ingest"):
        committed(store, made, tmp_path / "scratch")
    assert list(intake.runs(store)) == []
    monkeypatch.setattr("builder.sources.webarchives.ingest.join.find_part", lambda *_: None)
    with pytest.raises(DamagedStore, match="was removed during the commit"):
        committed(store, made, tmp_path / "scratch")


def test_rows_of_a_straggler_are_not_published(
    store: FolderStore, crawl: list[Path], tmp_path: Path
) -> None:
    made = planned(store, crawl[:1], 1 << 20)
    read_part(store, made, 0, tmp_path / "work")
    committed(store, made, tmp_path / "scratch")
    before = rows(store, "captures")
    (name,) = (k for k in store.keys("intake/run/part-000000-") if "captures" in k)
    store.put("intake/run/part-000000-late/captures-000000.parquet", BytesIO(store.read(name)))
    assert rows(store, "captures") == before
