"""Folders for parts of a bucket: who removes them, and who must not."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.snapshot.errors import StoreError
from functions.store.scratch import Scratch

PROGRAM = """
from functions.store.scratch import Scratch
scratch = Scratch()
(scratch.path / "1-data").write_bytes(bytes(1000))
print(scratch.path, flush=True)
input()
"""


@pytest.fixture(autouse=True)
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        yield process
        process.kill()


def test_what_a_killed_process_left_is_removed_by_the_next(
    other: subprocess.Popen[str], parent: Path
) -> None:
    assert other.stdout is not None
    left = Path(other.stdout.readline().strip())
    foreign = parent / "sheaf-cache-foreign"
    foreign.mkdir()
    first = Scratch()
    assert (left / "1-data").exists()  # its process lives
    other.kill()
    other.wait()
    second = Scratch()
    assert set(parent.iterdir()) == {first.path, second.path, foreign}
    first.close()
    second.close()
    assert list(parent.iterdir()) == [foreign]


def test_a_process_that_ends_leaves_nothing(other: subprocess.Popen[str], parent: Path) -> None:
    other.communicate("\n")
    assert other.returncode == 0
    assert list(parent.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(parent / "gone"))
    with pytest.raises(StoreError, match="No such file or directory; free some space, or set"):
        Scratch()
