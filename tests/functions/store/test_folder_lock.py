"""Locks of work folders."""

import errno
import fcntl
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from functions.store import folder_lock
from functions.store.folder_lock import LOCK, lock_folder, lock_holder, remove_abandoned


def test_one_process_holds_a_folder_until_it_closes_the_lock(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "work"
    lock = lock_folder(folder)
    assert lock is not None
    assert lock_folder(folder) is None
    assert lock_holder(folder) == str(os.getpid())
    lock.close()
    again = lock_folder(folder)
    assert again is not None
    again.close()


def test_a_folder_that_is_removed_before_it_is_locked_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, real, removals = tmp_path / "work", fcntl.flock, []

    def flock(file: Any, operation: int) -> None:
        if not removals:
            removals.append(folder)
            shutil.rmtree(folder)
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    lock = lock_folder(folder)
    assert lock is not None
    with lock:
        assert (folder / LOCK).read_bytes() == str(os.getpid()).encode()
        assert os.fstat(lock.fileno()).st_ino == (folder / LOCK).stat().st_ino


def test_only_folders_without_a_process_are_removed(tmp_path: Path) -> None:
    own, left, bare = tmp_path / "own", tmp_path / "left", tmp_path / "bare"
    lock, other = lock_folder(own), lock_folder(left)
    assert lock is not None
    assert other is not None
    other.close()
    bare.mkdir()  # not locked yet: its process may be alive
    with lock:
        for folder in (own, left, bare, tmp_path / "missing"):
            remove_abandoned(folder)
        assert sorted(tmp_path.iterdir()) == [bare, own]


def test_a_file_system_without_locks_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(file: Any, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(folder_lock.fcntl, "flock", flock)
    with pytest.raises(OSError, match="No locks"):
        lock_folder(tmp_path / "work")


def test_an_unknown_holder_is_another(tmp_path: Path) -> None:
    assert lock_holder(tmp_path) == "another"
    (tmp_path / LOCK).touch()
    assert lock_holder(tmp_path) == "another"
