"""Bundles that are written: one zip, forwards, the same bytes for the same members."""

import io
import os
import shutil
import struct
import subprocess
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import zip
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies.paths import safe_path
from builder.zip import PART, Bundle, Open, ZipMember
from tests.memory import at_most

DESCRIBED = 1 << 3


def packed(members: dict[str, bytes], step: int = 1 << 16) -> tuple[bytes, tuple[ZipMember, ...]]:
    out = io.BytesIO()
    made = Bundle(out)
    for name, data in members.items():
        with made.member(name) as taking:
            for start in range(0, len(data), step):
                taking.write(data[start : start + step])
    rows = made.end()
    return out.getvalue(), rows


def start(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    """Return where a member's bytes begin, as wabac.js computes it.

    It takes an entry of the directory without extra fields to mean a local header without any.
    """
    fixed = info.header_offset + 30
    if not info.extra:
        return fixed + len(info.filename.encode())
    file.seek(info.header_offset + 26)
    return fixed + sum(struct.unpack("<HH", file.read(4)))


def is_safe(text: str) -> bool:
    try:
        return safe_path(text) == text
    except FilesetError:
        return False


paths = st.text(max_size=20).filter(is_safe)


@given(st.dictionaries(paths, st.binary(max_size=200), max_size=8), st.sampled_from([0, 50, 1000]))
def test_every_zip_reads_as_it_was_written_and_each_member_is_one_range(
    members: dict[str, bytes], part: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zip, "PART", part)
        data, rows = packed(members, 7)
        assert packed(members, 100) == (data, rows)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.namelist() == list(members)
        assert archive.testzip() is None
        for info in archive.infolist():
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert (info.create_system, info.external_attr >> 16) == (3, 0o100644)
            assert info.compress_type == zipfile.ZIP_STORED
            assert bool(info.flag_bits & DESCRIBED) == (info.file_size > part)
            assert archive.read(info) == members[info.filename]
        starts = [start(io.BytesIO(data), info) for info in archive.infolist()]
    assert starts == [row.offset for row in rows]
    for row in rows:
        assert data[row.offset : row.offset + row.size] == members[row.name]
        assert row.crc32 == f"{zlib.crc32(members[row.name]):08x}"


def test_others_read_it_as_well(tmp_path: Path) -> None:
    if (unzip := shutil.which("unzip")) is None:
        pytest.skip("there is no unzip here")
    data, _ = packed({"a/ž.csv": b"1,2\n", "big.bin": bytes(PART + 1), "empty": b""})
    (tmp_path / "x.zip").write_bytes(data)
    done = subprocess.run([unzip, "-t", "x.zip"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No errors detected" in done.stdout


def broken_off(made: Bundle, size: int) -> Open:
    with suppress(KeyError), made.member("b") as taking:
        taking.write(bytes(size))
        raise KeyError
    return taking


def test_what_fails_before_it_is_larger_than_a_part_leaves_no_trace() -> None:
    out = io.BytesIO()
    made = Bundle(out)
    with made.member("a") as taking:
        taking.write(b"first")
    assert not broken_off(made, PART).spilt
    with made.member("b") as taking:
        taking.write(b"second")
    rows = made.end()
    assert (out.getvalue(), rows) == packed({"a": b"first", "b": b"second"})


def test_what_fails_later_says_that_some_of_it_was_written() -> None:
    made = Bundle(io.BytesIO())
    assert broken_off(made, PART + 1).spilt


class Counted:
    """Takes bytes and keeps none."""

    size = 0

    def write(self, data: bytes) -> None:
        self.size += len(data)


def test_little_of_a_large_member_is_in_memory() -> None:
    made, chunk = Bundle(sink := Counted()), bytes(1 << 16)
    with at_most(2 * PART):
        with made.member("large") as taking:
            for _ in range(64 << 4):
                taking.write(chunk)
        made.end()
    assert sink.size > 64 << 20


class Sparse:
    """A file of which zeros take no room."""

    def __init__(self, path: Path, at: int = 0) -> None:
        self.file = path.open("wb")
        self.file.seek(at)

    def write(self, data: bytes) -> None:
        if len(data) > 1 << 20:
            self.file.seek(len(data), os.SEEK_CUR)
        else:
            self.file.write(data)


def test_a_member_of_more_than_four_gigabytes_and_what_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, step = 5 << 30, bytes(64 << 20)
    monkeypatch.setattr(zip.zlib, "crc32", lambda data, value=0: 7)  # it would take seconds
    made = Bundle(sink := Sparse(tmp_path / "x.zip"))
    with made.member("large") as taking:
        for _ in range(size // len(step)):
            taking.write(step)
    with made.member("small") as taking:
        taking.write(b"behind it")
    rows = made.end()
    sink.file.close()
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        large, small = archive.infolist()
        assert (large.file_size, large.compress_size) == (size, size)
        assert small.header_offset > size
        assert small.file_size == 9
    with (tmp_path / "x.zip").open("rb") as file:
        assert [start(file, info) for info in (large, small)] == [row.offset for row in rows]
        file.seek(rows[1].offset)
        assert file.read(9) == b"behind it"


def test_more_members_than_the_first_zips_had() -> None:
    members = {f"{number:05}": b"" for number in range(1 << 16)}
    data, rows = packed(members)
    assert len(rows) == 1 << 16
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.namelist() == list(members)
