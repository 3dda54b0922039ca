"""Sources that a file names, and sources that are read again because they failed."""

from pathlib import Path

import pytest

from tests.builder.sources.webarchives.containers import archived, filedesc, http
from tests.e2e.conftest import Home, warc
from tests.e2e.test_commands import PAGES, one_line


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [warc(tmp_path / f"{n} a.warc.gz", PAGES) for n in range(3)]


@pytest.mark.parametrize("engine", [(), ("--engine", "local", "--jobs", "1")])
def test_a_file_may_name_the_sources(
    home: Home, files: list[Path], tmp_path: Path, engine: tuple[str, ...]
) -> None:
    listed = tmp_path / "list"
    listed.write_text("".join(f"{path}\n\n" for path in files[:2]))
    done = home("ingest", files[2], "--files-from", listed, "--json", *engine)
    assert [source["path"] for source in done.json["sources"]] == [
        str(path) for path in (files[2], *files[:2])
    ]


def test_a_plan_takes_the_list_as_well(home: Home, files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "list").write_text("\n".join(map(str, files)))
    made = home("ingest", "plan", "--files-from", tmp_path / "list", "--json").json
    assert made["files"] == 3


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("absent", "No such file"),
        ("folder", "Is a directory"),
        ("bytes", "byte 1 of it is no text in UTF-8"),
    ],
)
def test_a_list_that_cannot_be_read_is_named(
    home: Home, name: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff\n")
    done = home("ingest", "--files-from", tmp_path / name)
    assert done.code == 2
    assert f"--files-from {tmp_path / name}: {why}" in one_line(done.err)


def test_a_whole_file_without_captures_has_not_failed(home: Home, tmp_path: Path) -> None:
    """Its only document may be one that a rule leaves out; a WACZ may have pages alone."""
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.wacz").write_bytes(archived(("datapackage.json", "{}")))
    done = home("ingest", tmp_path / "pages", "--json")
    assert (done.code, done.json["sources"][0]["codes"]) == (0, {"wacz-empty": 1})
    assert "already ingested: 1 of 1 file" in home("ingest", tmp_path / "pages").err
    block = http(status=b"HTTP/1.1 302 Moved")
    line = b"http://a.cz/x 20080430204826 192.0.2.1 text/html %d\n" % len(block)
    (tmp_path / "a.arc").write_bytes(filedesc() + line + block + b"\n")
    done = home("ingest", tmp_path / "a.arc", "--json")
    assert (done.code, done.json["failed"]) == (0, 0)
    assert done.json["sources"][0]["codes"] == {"header-transposed": 1}


def test_different_files_of_one_name_are_told_of(home: Home, tmp_path: Path) -> None:
    for folder, pages in (("a", PAGES), ("b", dict([*PAGES.items()][:1]))):
        (tmp_path / folder).mkdir()
        warc(tmp_path / folder / "data.warc.gz", pages)
    done = home("ingest", tmp_path / "a", tmp_path / "b")
    assert "1 file name belongs to different files" in done.out


def test_a_file_that_was_moved_is_ingested_at_its_new_place(
    home: Home, files: list[Path], tmp_path: Path
) -> None:
    home("ingest", *files)
    home("publish")
    assert "already ingested: 3 of 3 files" in home("ingest", *files).err
    (tmp_path / "new").mkdir()
    moved = [files[0].rename(tmp_path / "new" / files[0].name), *files[1:]]
    assert "already ingested: 2 of 3 files" in home("ingest", *moved).err
    home("publish")
    assert str(moved[0]) in home("query", "SELECT path FROM sources").out


@pytest.mark.parametrize("published", [False, True])
def test_what_failed_is_read_again(home: Home, files: list[Path], published: bool) -> None:
    whole = files[0].read_bytes()
    files[0].unlink()
    files[0].symlink_to(files[0].with_name("away"))  # as a mount that is not there
    folder = files[0].parent
    assert home("ingest", folder, "--json").json["failed"] == 1
    assert not published or home("publish").code == 0
    assert f"{files[0]} is still missing" in home("ingest", "--retry").err
    files[0].with_name("away").write_bytes(whole)
    again = home("ingest", "--retry", "--json").json  # of the intake or the snapshot
    assert [Path(source["path"]).name for source in again["sources"]] == [files[0].name]
    assert (again["sources"][0]["captures"], again["failed"]) == (3, 0)
    assert home("publish").code == 0
    nothing = home("ingest", "--retry")
    assert (nothing.code, nothing.out) == (0, "no file to read again\n")
