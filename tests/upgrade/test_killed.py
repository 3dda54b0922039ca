"""An upgrade is killed at a write; readers see the old store or the new one, and it completes."""

import multiprocessing
import re
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path

import pytest

from builder.runtime import Runtime
from builder.store.folder import FolderStore
from builder.upgrade.upgrade import upgrade
from functions.snapshot import layout
from functions.snapshot.errors import OlderSchemaError
from functions.store.catalog import Catalogue
from tests.builder.conftest import Clock
from tests.crash.work import Killer
from tests.extent import ALL, EVERY
from tests.upgrade.test_upgrade import BEHIND, STORES, Kept, copied, objects, unpack

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.upgrade.test_killed", "duckdb", "pyarrow.parquet"])


def upgrade_killed(root: Path, at: int, counted: Path) -> None:
    """Upgrade a store, to be killed at change `at`; else note the changes in `counted`."""
    killer = Killer(str(root), at, every=False)
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        killer.watch()
        upgrade_store(root)
    counted.write_text("\n".join(killer.changes))


def upgrade_store(root: Path) -> None:
    clock = Clock(BEHIND)
    runtime = Runtime(clock, clock.sleep, lambda text: None, {}, 1)
    upgrade(FolderStore(root), runtime, 256, lambda what, total: nullcontext(lambda count: None))


def run(kept: Kept, at: int) -> list[str]:
    """Upgrade in a process of its own; return its changes, [] if it was killed at one."""
    counted = kept.folder / "counted"
    process = _PROCESSES.Process(target=upgrade_killed, args=(kept.store, at, counted))
    process.start()
    process.join()
    if at:
        assert process.exitcode == -signal.SIGKILL, at
        return []
    assert process.exitcode == 0
    return counted.read_text().splitlines()


def newest(catalogue: Catalogue) -> int:
    entry = catalogue.pointer().newest()
    assert entry is not None
    return entry.snapshot


def choose(changes: list[str]) -> list[int]:
    """Return where to kill: at each change of a kind that was not there before, and within many.

    By default it is every ninth of these, and always at the pointer and the change behind it.
    """
    if EVERY:
        return list(range(1, len(changes) + 1))
    found, at, seen = set(), 1, set()
    for kind, some in groupby(re.sub(r"[0-9a-f]{4,}|\d+|%\w\w", "N", c) for c in changes):
        count = len(list(some))
        if kind not in seen:
            found |= {at, at + count // 2}
        seen.add(kind)
        at += count
    (pointer,) = (n for n, c in enumerate(changes, 1) if c.endswith(layout.POINTER))
    places = sorted(found)
    return sorted({*places[:: 1 if ALL else 9], pointer, pointer + 1})


@pytest.mark.parametrize("path", STORES, ids=lambda path: path.name.partition(".tar")[0])
def test_an_upgrade_may_be_killed_at_any_write(tmp_path: Path, path: Path) -> None:
    earlier = unpack(path, tmp_path / "earlier")
    before = objects(earlier.store)
    whole = copied(earlier, tmp_path / "whole")
    changes = run(whole, 0)
    expected = objects(whole.store)
    kept = {key: data for key, data in expected.items() if before.get(key) == data}
    assert {*before} - {*kept} == {
        key for key in before if key == layout.POINTER or key.startswith(layout.INTAKE)
    }

    def attempt(at: int) -> None:
        stage = copied(earlier, tmp_path / str(at))
        run(stage, at)
        there = objects(stage.store)
        is_old = there[layout.POINTER] == before[layout.POINTER]
        # Whatever the pointer's release reads is there, and it reads nothing else.
        needed = before if is_old else kept
        assert {key: there.get(key) for key in needed} == needed, at
        with pytest.raises(OlderSchemaError) if is_old else nullcontext():
            catalogue = Catalogue(FolderStore(stage.store))
            assert [catalogue.manifest(n).snapshot for n in range(1, newest(catalogue))]
        upgrade_store(stage.store)
        assert objects(stage.store) == expected, at

    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(attempt, choose(changes)):
            pass
