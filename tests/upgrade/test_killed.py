"""An upgrade is killed at a write; readers see the old store or the new one, and it completes."""

import multiprocessing
import re
import signal
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import pytest

from builder.runtime import Runtime
from builder.store.folder import FolderStore
from builder.upgrade.store_move import move
from builder.upgrade.upgrade import upgrade
from functions.snapshot import layout
from functions.snapshot.errors import OlderSchemaError
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue
from tests.bucket import Bucket
from tests.builder.conftest import Clock
from tests.crash.work import Killer
from tests.extent import ALL, EVERY
from tests.upgrade.test_upgrade import BEHIND, OLDER, Kept, copied, objects, unpack

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.upgrade.test_killed", "duckdb", "pyarrow.parquet"])


def upgrade_killed(root: Path, at: int, counted: Path, source: Path | None) -> None:
    """Upgrade a store, to be killed at change `at`; else note the changes in `counted`."""
    killer = Killer(str(root), at, every=False)
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        killer.watch()
        upgrade_store(FolderStore(root), source)
    counted.write_text("\n".join(killer.changes))


def upgrade_store(store: Writer, source: Path | None = None) -> None:
    """Upgrade a store; if a `source` is given, as the copy of it."""
    clock = Clock(BEHIND)
    runtime = Runtime(clock, clock.sleep, lambda text: None, {}, 1)
    if source is not None:
        move(FolderStore(source), store, BEHIND, lambda total: nullcontext(lambda count: None))
    upgrade(store, runtime, 256, lambda what, total: nullcontext(lambda count: None))


def run(kept: Kept, at: int, source: Path | None = None) -> list[str]:
    """Upgrade in a process of its own; return its changes, [] if it was killed at one."""
    counted = kept.folder / "counted"
    process = _PROCESSES.Process(target=upgrade_killed, args=(kept.store, at, counted, source))
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
    pointers = [n for n, c in enumerate(changes, 1) if c.endswith(layout.POINTER)]
    places = sorted(found)[:: 1 if ALL else 9]
    return sorted({*places, *pointers, *(n + 1 for n in pointers)})


@pytest.mark.parametrize("release", OLDER)
def test_an_upgrade_may_be_killed_at_any_write(tmp_path: Path, release: str) -> None:
    earlier = unpack(release, tmp_path / "earlier")
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
        upgrade_store(FolderStore(stage.store))
        assert objects(stage.store) == expected, at

    kill(attempt, changes)


@pytest.mark.parametrize("release", OLDER)
def test_an_upgrade_to_another_store_may_be_killed_at_any_write(
    tmp_path: Path, release: str
) -> None:
    earlier = unpack(release, tmp_path / "earlier")
    before = objects(earlier.store)
    whole = Kept(tmp_path / "whole", earlier.release, {})
    whole.folder.mkdir()
    changes = run(whole, 0, earlier.store)
    expected = objects(whole.store)

    def attempt(at: int) -> None:
        stage = Kept(tmp_path / str(at), earlier.release, {})
        stage.folder.mkdir()
        run(stage, at, earlier.store)
        there = objects(stage.store)
        assert layout.POINTER not in there or there.keys() >= before.keys() & expected.keys(), at
        upgrade_store(FolderStore(stage.store), earlier.store)
        assert objects(stage.store) == expected, at

    kill(attempt, changes)
    assert objects(earlier.store) == before


def kill(attempt: Callable[[int], None], changes: list[str]) -> None:
    """Make the attempts, two at a time."""
    places = choose(changes)
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(attempt, places):
            pass
    print(f"killed at {len(places)} of {len(changes)} changes")


class Ended(BaseException):
    """Stands for the end of a process."""


class Ending:
    """A store as one process sees it, which ends before it changes a key in a certain way."""

    def __init__(self, store: Writer, way: str, key: str) -> None:
        self._store = store
        self._last = way, key
        self.is_over = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("put", "create", "create_file", "creating", "replace", "remove"):
            return found

        def write(key: str, *arguments: Any) -> Any:
            way, start = self._last
            self.is_over = self.is_over or (name == way and key.startswith(start))
            if self.is_over:
                raise Ended
            return found(key, *arguments)

        return write


ENDS = (
    ("creating", "records/"),
    ("replace", layout.POINTER),
    ("put", "records/"),
    ("replace", layout.POINTER),
    ("remove", layout.INTAKE),
    ("create", "obi/"),
)
"""Before which change each upgrade ends: the first two while the store is copied."""


def test_an_upgrade_in_a_bucket_completes_wherever_it_ended(
    tmp_path: Path, make_bucket: Callable[[], Bucket]
) -> None:
    """One upgrade after the other ends, each later than the one before; the last completes."""
    earlier = unpack(OLDER[0], tmp_path / "earlier")
    bucket, whole = make_bucket(), tmp_path / "whole"
    upgrade_store(FolderStore(whole), earlier.store)
    for way, key in ENDS:
        ending = Ending(bucket, way, key)
        with pytest.raises(Ended):
            upgrade_store(cast(Writer, ending), earlier.store)
    upgrade_store(bucket, earlier.store)
    wanted = objects(whole)
    del wanted[".lock"]
    assert {key: bucket.read(key) for key in bucket.keys("")} == wanted
