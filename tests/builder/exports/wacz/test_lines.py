"""Lines sorted as `LC_ALL=C sort` does, however few fit into memory."""

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.exports import chosen_captures as module
from builder.exports.chosen_captures import SortedLines

texts = st.lists(st.binary(max_size=12).filter(lambda b: b"\n" not in b), max_size=60)


@given(texts, st.integers(1, 64))
def test_lines_come_back_sorted_by_their_bytes(some: list[bytes], held: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = SortedLines(Path(folder), held)
        for one in some:
            lines.add(one + b"\n")
        assert list(lines) == sorted(one + b"\n" for one in some)


def test_the_order_is_that_of_sort(tmp_path: Path) -> None:
    some = [
        f"cz,a){path} 2008 {{}}\n".encode() for path in ("/", "/b", "/B", "/%c3", "/a b", ":8080/")
    ]
    (tmp_path / "in").write_bytes(b"".join(some))
    sorted_ = subprocess.run(
        ["sort", tmp_path / "in"], env={"LC_ALL": "C"}, capture_output=True, check=True
    )
    lines = SortedLines(tmp_path, memory=30)
    for one in some:
        lines.add(one)
    assert b"".join(lines) == sorted_.stdout


def test_few_files_are_open_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OPEN", 5)
    lines = SortedLines(tmp_path, memory=1)
    for number in range(100):
        lines.add(b"%03d\n" % (number * 37 % 100))
        assert len(list(tmp_path.iterdir())) <= 5
    assert list(lines) == [b"%03d\n" % n for n in range(100)]
