"""Zips that others made: read within bounds, or refused."""

import io
import random
import stat
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources.datasets.manifest_file import compute_digests
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies import zip_reader
from builder.sources.datasets.strategies.zip_reader import (
    ArchivedMember,
    Ranges,
    directory,
    inflate,
    read,
)
from builder.store.folder import FolderStore
from functions.snapshot.store import Writer
from functions.store import s3_request
from tests.builder.sources.datasets.body import zipped
from tests.builder.test_zip import packed, paths

GIGA = 1 << 30


def members_of(data: bytes, most: int = GIGA) -> list[ArchivedMember]:
    return list(read(directory(io.BytesIO(data), most), io.BytesIO(data)))


@given(
    st.dictionaries(paths, st.binary(max_size=300), max_size=6),
    st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
    st.binary(max_size=50),
)
def test_every_member_is_read_and_lies_where_it_is_told_to(
    given_: dict[str, bytes], method: int, before: bytes
) -> None:
    data = before + zipped(given_, method)
    found = members_of(data)
    assert {m.entry.path: m.digests.every() for m in found} == {
        path: compute_digests([body]).every() for path, body in given_.items()
    }
    for member in found:
        stream = io.BytesIO(data)
        stream.seek(member.offset)
        assert b"".join(inflate(member.entry, stream)) == given_[member.entry.path]
        if member.entry.compression == "stored":
            body = data[member.offset : member.offset + member.entry.size]
            assert body == given_[member.entry.path]


def test_what_was_bundled_here_is_read_as_well() -> None:
    bodies = {"a/b.csv": b"1,2\n", "large": random.Random(1).randbytes(zip_reader.DIRECTORY * 3)}
    data, rows = packed(bodies)
    found = members_of(data)
    assert [(m.entry.path, m.offset, m.digests.size) for m in found] == [
        (row.name, row.offset, row.size) for row in rows
    ]


def test_folders_are_no_members_and_names_without_a_flag_are_read() -> None:
    data = zipped({"folder/": b"", "folder/a": b"x"})
    assert [m.entry.path for m in members_of(data)] == ["folder/a"]
    for raw, name in (("ž1.txt".encode(), "ž1.txt"), (b"\x9c1.txt.", "£1.txt%2E")):
        found = members_of(zipped({"x" * len(raw): b"y"}).replace(b"x" * len(raw), raw))
        assert [(m.entry.path, m.entry.raw) for m in found] == [(name, raw)]


def info(name: str, **given: Any) -> zipfile.ZipInfo:
    found = zipfile.ZipInfo(name)
    for field, value in given.items():
        setattr(found, field, value)
    return found


def holding(*infos: zipfile.ZipInfo, body: bytes = b"text") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in infos:
            archive.writestr(one, body)
    return out.getvalue()


def edited(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data
    return data.replace(old, new)


def central(data: bytes, at: int, form: str, value: int) -> bytes:
    """Change a field of the first entry of the directory."""
    start = data.index(b"PK\1\2") + at
    return data[:start] + struct.pack(form, value) + data[start + struct.calcsize(form) :]


def overlapping() -> bytes:
    """Two entries of the directory that are of one member, as in Fifield's bombs."""
    data = zipped({"a": bytes(5000), "b": bytes(5000)})
    second = data.rindex(b"PK\1\2") + 42
    return data[:second] + struct.pack("<L", 10) + data[second + 4 :]


def four() -> bytes:
    """Four members of 300 MB of zeros, compressed once."""
    one = zipped({"0": bytes(300_000_000)})
    start, end = one.index(b"PK\1\2"), one.index(b"PK\5\6")
    body, entry = one[:start], one[start:end]
    members, entries = b"", b""
    for number in range(4):
        name, at = str(number).encode(), struct.pack("<L", len(members))
        members += body[:30] + name + body[31:]
        entries += entry[:42] + at + name + entry[47:]
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 4, 4, len(entries), len(members), 0)
    return members + entries + tail


TWO = zipped({"a": b"first", "b": b"second"}, zipfile.ZIP_STORED)
UNSAFE, BOMB, UNREADABLE = "bundle-unsafe-member", "bundle-bomb", "bundle-unreadable"
LINK = {"create_system": 3, "external_attr": (stat.S_IFLNK | 0o777) << 16}
# What is large is made when it is asked for: each process of the suite reads this file.
BROKEN: dict[str, tuple[str, bytes | Callable[[], bytes]]] = {
    "empty": (UNREADABLE, b""),
    "html": (UNREADABLE, b"<!DOCTYPE html><title>Log in</title>"),
    "cut": (UNREADABLE, TWO[:-30]),
    "no-beginning": (UNREADABLE, TWO[20:]),
    "climbs": (UNSAFE, zipped({"../../evil": b"x"})),
    "absolute": (UNSAFE, zipped({"/abs": b"x"})),
    "drive": (UNSAFE, zipped({"C:/x": b"x"})),
    "nul": (UNSAFE, edited(zipped({"a_b": b"x"}), b"a_b", b"a\0b")),
    "folder-with-bytes": (UNSAFE, zipped({"folder/": b"x"})),
    "twice": (UNSAFE, edited(TWO, b"b", b"a").replace(b"secona", b"second")),
    "twice-by-unicode": (UNSAFE, zipped({"\u00e9": b"x", "e\u0301": b"y"})),
    "link": (UNSAFE, holding(info("a", **LINK), body=b"/etc/passwd")),
    "device": (UNSAFE, holding(info("a", create_system=3, external_attr=stat.S_IFCHR << 16))),
    "encrypted": (UNREADABLE, central(TWO, 8, "<H", 1)),
    "bzip2": (UNREADABLE, zipped({"a": b"x" * 99}, zipfile.ZIP_BZIP2)),
    "later-version": (UNREADABLE, central(TWO, 6, "<H", 99)),
    "overlapping": (BOMB, overlapping()),
    "lies-elsewhere": (BOMB, central(TWO, 42, "<L", 1 << 20)),
    "another-header": (UNREADABLE, edited(zipped({"a": b"x" * 99}), b"PK\3\4", b"PK\3\5")),
    "too-much-in-all": (BOMB, four),
    "says-too-much": (BOMB, central(zipped({"a": b"x" * 99}), 24, "<L", 100_000_000)),
    "says-too-little": (BOMB, central(zipped({"a": bytes(200_000)}), 24, "<L", 9)),
    "says-more": (UNREADABLE, central(zipped({"a": b"x" * 99}), 24, "<L", 100)),
    "stored-with-two-sizes": (UNREADABLE, central(TWO, 24, "<L", 4)),
    "wrong-crc": ("mismatch-crc32", central(TWO, 16, "<L", 1)),
    "wrong-byte": ("mismatch-crc32", edited(TWO, b"second", b"sekond")),
    "wrong-name": (UNREADABLE, b"PK\3\4" + TWO[4:30] + b"z" + TWO[31:]),
    "not-deflated": (UNREADABLE, central(central(TWO, 10, "<H", 8), 24, "<L", 9)),
    "large-directory": (BOMB, lambda: zipped({f"{n:0250}": b"" for n in range(15_000)})),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("defect", BROKEN)
def test_what_is_wrong_is_refused_with_its_status(defect: str, tmp_path: Path) -> None:
    status, made = BROKEN[defect]
    data = made if isinstance(made, bytes) else made()
    store = FolderStore(tmp_path)
    store.create("x/bundle.zip", data)
    with pytest.raises(FilesetError) as caught:
        list(read(directory(Ranges(store, "x/bundle.zip"), GIGA), io.BytesIO(data)))
    assert caught.value.status == status
    assert caught.value.detail.isprintable()


def test_members_are_counted() -> None:
    data = zipped({f"{number}": b"" for number in range(11)})
    assert len(directory(io.BytesIO(data), GIGA, members=11)) == 11
    with pytest.raises(FilesetError, match="bundle-bomb: 11 members"):
        directory(io.BytesIO(data), GIGA, members=10)


@given(at=st.integers(0, 10_000), change=st.binary(min_size=1, max_size=4), cut=st.booleans())
def test_no_damage_raises_anything_but_its_error(*, at: int, change: bytes, cut: bool) -> None:
    data = bytearray(zipped({"a.csv": b"1,2\n" * 30, "b/c": bytes(200), "d": b"x"}))
    at %= len(data)
    data[at : at + len(change)] = change
    if cut:
        del data[at:]
    status, found = "", []
    try:
        found = members_of(bytes(data), 10_000)
    except FilesetError as error:
        status = error.status
    assert status in {"", UNREADABLE, UNSAFE, BOMB, "mismatch-crc32"}
    assert all(m.digests.of("crc32") == m.entry.crc32 for m in found)


def test_it_stops_where_it_is_told_to() -> None:
    def stop() -> None:
        raise FilesetError("cancelled")

    data = zipped({"a": b"x"})
    with pytest.raises(FilesetError, match="cancelled"):
        list(read(directory(io.BytesIO(data), GIGA), io.BytesIO(data), stop))


@pytest.fixture(params=["folder", "bucket"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, make_bucket: Callable[..., Writer]
) -> Writer:
    return FolderStore(tmp_path) if request.param == "folder" else make_bucket()


def test_a_directory_is_read_by_few_ranges_of_a_large_bundle(store: Writer) -> None:
    bodies = {f"{n}.bin": random.Random(n).randbytes(1_000_000) for n in range(12)}
    data, rows = packed(bodies)
    with store.creating("filesets/x/bundle.zip") as sink:
        sink.write(data)
    with s3_request.count_requests() as spent:
        entries = directory(Ranges(store, "filesets/x/bundle.zip"), GIGA)
    assert [e.path for e in entries] == sorted(bodies, key=list(bodies).index)
    assert spent.requests <= 6
    assert spent.bytes < 4_000_000
    with closing(store.open("filesets/x/bundle.zip")) as stream:
        assert [m.offset for m in read(entries, stream)] == [row.offset for row in rows]
