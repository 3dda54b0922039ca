"""The folder: whatever lies in it, or is put there meanwhile, nothing is written beside it."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from builder.exports.restore.captures import MissingError, RebuildError
from builder.exports.restore.folder import WORK, RestoreFolder
from builder.exports.restore.names import MANIFEST


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_text("precious")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RestoreFolder]:
    made = RestoreFolder(tmp_path / "site")
    yield made
    made.close()


def put(folder: RestoreFolder, path: str, body: bytes = b"new", *, over: bool = False) -> None:
    with folder.write() as (out, name):
        out.write(body)
        out.flush()
        folder.place(name, path, over=over)


def untouched(outside: Path) -> None:
    assert [path.name for path in outside.iterdir()] == ["precious"]
    assert (outside / "precious").read_text() == "precious"


def test_a_file_takes_its_place_whole(folder: RestoreFolder, tmp_path: Path) -> None:
    """What takes none is removed, and a name that no disk takes is told of one file."""
    site = tmp_path / "site"
    put(folder, "a.cz/x/y.html")
    assert (site / "a.cz/x/y.html").read_bytes() == b"new"
    size, modified = folder.state("a.cz/x/y.html") or (0, 0)
    assert size == 3
    assert modified == (site / "a.cz/x/y.html").stat().st_mtime_ns
    with pytest.raises(ValueError), folder.write() as (out, _):  # noqa: PT012
        out.write(b"half")
        raise ValueError
    assert list((site / WORK).iterdir()) == []
    with pytest.raises(MissingError) as error:
        folder.is_free("x" * 300)
    assert error.value.code == "no-room"
    assert folder.state("x" * 300) is None


def test_one_process_at_a_time_works_in_it_and_sweeps(tmp_path: Path) -> None:
    (tmp_path / "site" / WORK).mkdir(parents=True)
    (tmp_path / "site" / WORK / "1.part").write_text("half")  # of one that ended
    with closing(RestoreFolder(tmp_path / "site")) as folder:
        put(folder, "a.cz/x")
        with pytest.raises(RebuildError, match="another restore is writing"):
            RestoreFolder(tmp_path / "site")
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["a.cz"]
    with pytest.raises(RebuildError, match="cannot be written to"):
        RestoreFolder(tmp_path / "site" / "a.cz" / "x" / "site")


@pytest.mark.parametrize(
    ("link", "path"),
    [
        ("a.cz/x", "a.cz/x"),
        ("a.cz/x", "a.cz/x/y"),
        ("a.cz/x", "a.cz/x/y/z"),
        ("a.cz", "a.cz/precious"),
    ],
)
def test_a_planted_link_leads_nowhere(
    folder: RestoreFolder, tmp_path: Path, outside: Path, link: str, path: str
) -> None:
    """Neither in a folder nor in the place of one of a host."""
    place = tmp_path / "site" / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    for over in (False, True) if path != link else (False,):
        with pytest.raises(MissingError) as told:
            put(folder, path, over=over)
        assert told.value.code == "in-the-way"
    if path != link:
        with pytest.raises(MissingError):
            folder.remove(path)
    assert folder.state(path) is None
    untouched(outside)


def test_a_link_in_the_place_of_a_file_of_ours_is_replaced_itself(
    folder: RestoreFolder, tmp_path: Path, outside: Path
) -> None:
    (tmp_path / "site/a.cz").mkdir()
    (tmp_path / "site/a.cz/x").symlink_to(outside / "precious")
    put(folder, "a.cz/x", over=True)
    assert not (tmp_path / "site/a.cz/x").is_symlink()
    untouched(outside)


@pytest.mark.parametrize("name", [WORK, MANIFEST, "pipe"])
def test_its_own_files_may_be_no_links(tmp_path: Path, outside: Path, name: str) -> None:
    """A pipe in the place of the manifest holds nobody up."""
    (tmp_path / "site").mkdir()
    if name == "pipe":
        os.mkfifo(tmp_path / "site" / MANIFEST)
    else:
        target = outside if name == WORK else outside / "precious"
        (tmp_path / "site" / name).symlink_to(target)
    said = "is not a file" if name == "pipe" else None
    with (
        pytest.raises(RebuildError, match=said),
        closing(RestoreFolder(tmp_path / "site")) as folder,
    ):
        folder.manifest()
    untouched(outside)


@pytest.mark.parametrize(
    "path", ["../outside/precious", "a/../../outside/precious", "/x", "a//b", "."]
)
def test_a_path_that_leads_out_is_none(folder: RestoreFolder, outside: Path, path: str) -> None:
    with pytest.raises(MissingError):
        put(folder, path, over=True)
    with pytest.raises(MissingError):
        folder.remove(path)
    assert folder.state(path) is None
    untouched(outside)


def test_what_is_there_stays(folder: RestoreFolder, tmp_path: Path) -> None:
    there = tmp_path / "site/a.cz"
    there.mkdir()
    (there / "file").write_text("theirs")
    (there / "folder").mkdir()
    for path in ("a.cz/file", "a.cz/file/below", "a.cz/folder", "a.cz"):
        with pytest.raises(MissingError) as told:
            put(folder, path)
        assert told.value.code == "in-the-way"
    assert (there / "file").read_text() == "theirs"
    put(folder, "a.cz/file", over=True)
    assert (there / "file").read_text() == "new"
    assert not folder.is_free("a.cz/folder")
    assert folder.is_free("a.cz/none/at/all")


def test_removing_takes_empty_folders_along(folder: RestoreFolder, tmp_path: Path) -> None:
    put(folder, "a.cz/x/y/z")
    put(folder, "a.cz/w")
    folder.remove("a.cz/x/y/z")
    assert [path.name for path in (tmp_path / "site/a.cz").iterdir()] == ["w"]


def test_one_file_may_have_two_names(folder: RestoreFolder, tmp_path: Path) -> None:
    put(folder, "a.cz/x")
    assert folder.link("a.cz/x", "b.cz/y", over=False)
    assert (tmp_path / "site/a.cz/x").samefile(tmp_path / "site/b.cz/y")
    with pytest.raises(MissingError):
        folder.link("a.cz/x", "b.cz/y", over=False)
    assert not folder.link("b.cz", "b.cz/z", over=False)
