"""What is left of a download is continued as far as it is sound, and never beyond."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources.datasets.download.parts import DatasetParts, PartialFolder
from builder.sources.datasets.protocols import FilesetError
from tests.builder.sources.datasets.body import Generated
from tests.builder.sources.datasets.server import Server, served, then
from tests.builder.sources.datasets.world import World, manifest_file, world

URL = "https://data.example.org/files/a.bin"
BODY = Generated(6_000_000, seed=5)
LATER = Generated(6_000_000, seed=6)
SAME, OTHER = '"one"', '"two"'


def parts_in(folder: Path, room: int = 1 << 30, *, lasting: bool = False) -> DatasetParts:
    return DatasetParts(folder, room, lasting, False)


def leave(there: World, parts: DatasetParts, many: int, digests: str = "md5") -> None:
    """Receive so many bytes, as a process that is then stopped."""
    there.server.add(URL, served(BODY, cut=many, etag=SAME))
    file = manifest_file(URL, BODY, digests=digests)
    once = replace(there.downloader(), parts=parts, tries=1)
    with pytest.raises(FilesetError):
        once.download(file, 1 << 30, there.sink)
    there.server.forget()


def fetch(there: World, parts: DatasetParts | None, digests: str = "md5") -> int:
    """Fetch the file, and return how many bytes were sent for it."""
    there.kept.clear()
    file = manifest_file(URL, BODY, digests=digests)
    replace(there.downloader(), parts=parts).download(file, 1 << 30, there.sink)
    return sum(asked.sent for asked in there.server.asked(URL))


@pytest.mark.parametrize("digests", ["md5", ""])
def test_a_later_process_continues(there: World, tmp_path: Path, digests: str) -> None:
    leave(there, parts_in(tmp_path), 4_500_000, digests)
    there.server.add(URL, served(BODY, etag=SAME))
    assert fetch(there, parts_in(tmp_path), digests) < 1_700_000
    assert there.kept == [BODY.all]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("obeys", [True, False])
def test_a_part_of_another_version_is_not_continued(
    there: World, tmp_path: Path, obeys: bool
) -> None:
    leave(there, parts_in(tmp_path), 4_500_000, "")
    there.server.add(URL, served(LATER, etag=OTHER, obeys=obeys))
    fetch(there, parts_in(tmp_path), "")
    assert there.kept == [LATER.all]


def test_what_files_that_count_together_have_received_stays_until_all_are_there(
    there: World, tmp_path: Path
) -> None:
    there.server.add(URL, served(BODY))
    assert fetch(there, parts_in(tmp_path, lasting=True)) == BODY.size
    there.server.forget()
    assert fetch(there, parts_in(tmp_path, lasting=True)) == 0
    assert there.kept == [BODY.all]
    parts_in(tmp_path).clear()
    assert not list(tmp_path.iterdir())


def test_without_room_the_download_goes_on(there: World, tmp_path: Path) -> None:
    there.server.add(URL, then(served(BODY, cut=5_000_000), served(BODY)))
    parts = parts_in(tmp_path, room=1_000_000)
    file = replace(manifest_file(URL, BODY), size=None)
    replace(there.downloader(), parts=parts).download(file, 1 << 30, there.sink)
    assert there.kept == [BODY.all]
    assert parts.room == 1_000_000
    assert not list(tmp_path.iterdir())


@given(
    chunks=st.lists(st.binary(max_size=40), max_size=6),
    at=st.integers(0, 10_000),
    flip=st.booleans(),
)
def test_a_damaged_part_gives_what_came_before_the_damage(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], at: int, flip: bool
) -> None:
    parts = parts_in(tmp_path_factory.mktemp("parts"))
    part = parts.open(manifest_file(URL))
    assert part is not None
    part.begin({"tag": SAME})
    for chunk in chunks:
        part.write(chunk)
    part.close(whole=False)
    data = bytearray(part.path.read_bytes())
    at %= len(data)
    data[at:] = bytes([data[at] ^ 1]) + data[at + 1 :] if flip else b""
    part.path.write_bytes(data)
    found = part.read()
    if found is None:
        assert not part.path.exists()
        return
    state, came = found
    whole = b"".join(chunks)
    kept = b"".join(came)
    assert state == {"tag": SAME}
    assert whole.startswith(kept)
    part.write(b"more")
    part.close(whole=False)
    again = part.read()
    assert again is not None
    assert b"".join(again[1]) == kept + b"more"
    part.forget()


def test_a_dataset_is_held_by_one_process_and_old_parts_are_removed(tmp_path: Path) -> None:
    def stop() -> None:
        raise FilesetError("cancelled")

    first, second = PartialFolder(tmp_path), PartialFolder(tmp_path)
    with first.hold("a", lambda: None, lasting=False) as parts:
        assert parts is not None
        (parts.folder / "part").write_bytes(b"1")
        with pytest.raises(FilesetError), second.hold("a", stop, lasting=False):
            pass
        with second.hold("b", stop, lasting=False) as other:
            assert other is not None
    assert parts.folder.exists()
    assert not other.folder.exists()
    os.utime(parts.folder / "part", (1, 1))
    os.utime(parts.folder / ".lock", (1, 1))
    with PartialFolder(tmp_path).hold("b", stop, lasting=False):
        assert not parts.folder.exists()


def test_a_disk_that_refuses_parts_costs_nothing(server: Server, tmp_path: Path) -> None:
    there = world(server, tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with PartialFolder(tmp_path / "file" / "x").hold("a", lambda: None, lasting=False) as parts:
        there.server.add(URL, served(BODY))
        fetch(there, parts)
    assert there.kept == [BODY.all]


def test_datasets_that_end_beside_another_do_not_end_it(tmp_path: Path) -> None:
    """The folder of a dataset goes away while another one measures what all of them hold."""
    shared = PartialFolder(tmp_path)

    def work(number: int) -> int:
        with shared.hold(f"dataset {number}", lambda: None, lasting=False) as parts:
            return parts.room if parts else 0

    with ThreadPoolExecutor(8) as pool:
        assert min(pool.map(work, range(400))) > 0
