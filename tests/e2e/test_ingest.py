"""The command `sheaf ingest` where it is interrupted, given twice, or has large files."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from builder.intake.paths import list_files
from builder.sources.redif import source
from builder.sources.webarchives.ingest import parts, splits
from builder.sources.webarchives.ingest.plan import IngestPart
from tests.bucket import Bucket
from tests.builder.indexes import line
from tests.builder.sources.webarchives.containers import http
from tests.builder.sources.webarchives.containers import warc as record
from tests.e2e.conftest import Home, warc
from tests.e2e.test_commands import PAGES, one_line

pytestmark = pytest.mark.shared(3)


def ended(home: Home, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    """Let an ingest be interrupted when its first part is finished."""
    real = parts.write_part

    def interrupted(*given: object, **named: object) -> IngestPart:
        real(*given, **named)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(parts, "write_part", interrupted)
        result = home("ingest", "--jobs", "1", *arguments)
    assert result.code == 130
    assert one_line(result.err) == "sheaf: interrupted; run the command again to finish its work"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(splits, "TOGETHER", 1)
    return [warc(tmp_path / f"{n}.warc.gz", PAGES) for n in range(3)]


def test_an_ingest_in_three_steps(home: Home, files: list[Path], tmp_path: Path) -> None:
    made = home("ingest", "plan", *files, "--json")
    assert made.code == 0, made.err
    run, chunks = made.json["run"], made.json["chunks"]
    assert chunks == len(files)
    early = home("ingest", "commit", "--run", run)
    assert early.code == 2
    assert f"3 of 3 parts of run {run} are missing: 0, 1, 2." in one_line(early.err)
    assert home("publish").code == 2  # nothing of it is visible
    for number in (2, 0, 1, 1):
        done = home("ingest", "part", "--run", run, "--index", number)
        assert (done.code, done.out) == (0, f"part {number} of run {run}: 3 captures\n"), done.err
    done = home("ingest", "commit", "--run", run)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("9 captures from 3 files, ready to publish\n")
    assert "3 new" in home("publish").out
    assert home("verify").code == 0
    again = home("ingest", "commit", "--run", run)
    assert again.code == 2
    assert f"there is no run {run} to go on with" in one_line(again.err)


def test_sources_may_stand_before_and_behind_options(home: Home, files: list[Path]) -> None:
    first, *rest = files
    assert home("ingest", first, "--jobs", "1", *rest, "--json").json["sources"][2:]
    assert home("ingest", "plan", "--again", *files, "--json").json["files"] == len(files)
    assert "unrecognized arguments: --no-such" in home("ingest", "--again", "x", "--no-such").err
    assert "'' is empty" in home("ingest", first, "--again", "").err


def test_an_interrupted_ingest_goes_on(
    home: Home, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home("ingest", files[0])
    home("publish")
    ended(home, monkeypatch, *files)
    note = home("verify").out
    assert "note: .tmp/ingest-" in note
    assert "run its command again" in note
    one = ("--jobs", "1")
    other = home("ingest", *one, "--collection", "x", *files)  # is another ingest
    assert "resuming" not in other.err
    again = home("ingest", *files)
    assert again.code == 0, again.err
    first, second = again.err.splitlines()[:2]
    assert first == "already ingested: 1 of 3 files (--again reads them)"
    assert second.startswith("resuming: 1 of 2 files were read before, ")
    assert again.out.startswith("6 captures from 2 files, ready to publish\n")
    # It was finished, so this is a new one.
    assert "resuming" not in home("ingest", *one, *files, "--again").err
    assert "ingest-" not in home("verify").out


def test_the_work_lies_where_it_is_told_to(
    home: Home, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "fast" / "disk"
    ended(home, monkeypatch, "--work", place, *files)
    assert len(list(place.glob("ingest-*/parts/*.json"))) == 1
    assert not (home.folder / "store" / "intake").exists()
    assert home("ingest", "--jobs", "1", "--work", place, *files).err.startswith("resuming: 1 of 3")
    assert list(place.iterdir()) == []


def test_the_work_on_a_bucket_lies_in_the_cache(
    home: Home,
    files: list[Path],
    tmp_path: Path,
    make_bucket: Callable[..., Bucket],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bucket = make_bucket()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    ended(home, monkeypatch, "--store", bucket.uri, *files)
    assert len(list((tmp_path / "cache").glob("sheaf/ingest-*/parts/*.json"))) == 1
    assert "resuming" not in home("ingest", "--jobs", "1", *files).err  # into another store
    again = home("ingest", "--jobs", "1", "--store", bucket.uri, *files)
    assert again.err.startswith("resuming: 1 of 3")
    assert list((tmp_path / "cache" / "sheaf").iterdir()) == []
    assert [key.rpartition("/")[2] for key in bucket.keys("intake/")] == [
        "captures-000000.parquet",
        "run.json",
    ]


def test_the_same_command_while_it_is_at_work(home: Home, tmp_path: Path) -> None:
    path = warc(tmp_path / "one.warc.gz", PAGES)
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    program = (
        "import sys\n"
        "from builder.sources.webarchives.ingest import parts\n"
        "from builder.commands.cli import main\n"
        "real = parts.write_part\n"
        f"parts.write_part = lambda *a, **b: (open({str(fifo)!r}).read(), real(*a, **b))[1]\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "ingest", "--config", str(home.config), str(path)]
    with subprocess.Popen([*command, "--jobs", "1"], stdout=subprocess.PIPE, text=True) as first:
        with fifo.open("w"):  # opened as soon as the other one reads it
            second = home("ingest", path)
        assert second.code == 2
        said = f"process {first.pid} is ingesting the same sources into this store"
        assert said in one_line(second.err)
        out, _ = first.communicate()
    assert (first.returncode, out) == (0, "3 captures from 1 file, ready to publish\n")


def test_files_that_are_read_in_one_piece_are_named(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "LEAST", 500)
    pair = gzip.compress(record(http()) + record(http(), url=b"http://b.cz/"), mtime=0)
    path = tmp_path / "pairs.warc.gz"
    path.write_bytes(pair * 12)
    result = home("ingest", "--jobs", "1", path)
    assert result.code == 0
    said = f"1 large file was read in one piece, because the ranges did not join: {path}"
    assert said in result.out.splitlines()
    assert home("ingest", "--json", "--again", path).json["read_in_one_piece"] == [str(path)]


def test_what_is_piped_in_cannot_be_gone_on_with(home: Home, tmp_path: Path) -> None:
    data = warc(tmp_path / "one.warc.gz", PAGES).read_bytes()
    command = [sys.executable, "-m", "builder", "ingest", "-", "--config", str(home.config)]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list((home.folder / "store" / ".tmp").iterdir()) == []
    assert home("publish").code == 0
    name = f"stdin-{hashlib.sha256(data).hexdigest()[:16]}"
    assert f"{name} was a stream, so its content cannot be served" in done.stdout.decode()
    assert home("query", "SELECT path, source FROM sources").out == f"path,source\n-,{name}\n"


def test_faults_and_rows_of_them_are_told_apart(home: Home, tmp_path: Path) -> None:
    """An index lists so many; what sources, publish and status count is rows."""
    path = tmp_path / "i.cdxj"
    path.write_bytes(b"\n".join([line("http://a.cz/"), *[b"junk"] * 5000]))
    result = home("ingest", path)
    said = '5,000 faults, reported in 1,001 rows of `sheaf query "FROM faults"` once published:'
    assert said in result.out.splitlines()
    assert home("publish", "--json").json["faults"] == 1001
    assert home("query", "SELECT faults FROM sources").out == "faults\n1001\n"
    assert home("query", "SELECT count(*) AS n FROM faults").out == "n\n1001\n"
    assert "1,001 faults" in home("status").out


def test_what_is_no_regular_file_is_told_of(home: Home, tmp_path: Path) -> None:
    crawls = tmp_path / "crawls"
    crawls.mkdir()
    warc(crawls / "one.warc.gz", PAGES)
    (crawls / "broken.warc.gz").symlink_to("nowhere")
    (crawls / "circle.warc.gz").symlink_to("circle.warc.gz")
    os.mkfifo(crawls / "pipe.warc.gz")
    (crawls / "null.warc.gz").symlink_to("/dev/null")
    result = home("ingest", "--jobs", "1", "--strict", crawls)
    assert result.code == 1
    assert result.out.startswith("3 captures from 5 files, ready to publish\n")
    home("publish")
    assert home("query", "SELECT source, code, detail FROM faults ORDER BY source").out == (
        "source,code,detail\n"
        "broken.warc.gz,unreadable,a broken link: No such file or directory\n"
        "circle.warc.gz,unreadable,a broken link: "
        "Too many levels of symbolic links\n"
        "null.warc.gz,unreadable,a device\n"
        "pipe.warc.gz,unreadable,a named pipe\n"
    )


def test_links_to_folders_are_followed_and_each_is_read_once(tmp_path: Path) -> None:
    source, away = tmp_path / "source", tmp_path / "away"
    for folder in (source / "real", away / "deep", source / ".hidden"):
        folder.mkdir(parents=True)
        (folder / "x.warc").touch()
    (source / "a-link").symlink_to("real")  # which is read by its own name
    (source / "real" / "up").symlink_to("..")
    for name in ("b-link", "c-link", ".d-link"):
        (source / name).symlink_to(away)
    (away / "back").symlink_to(source)
    (away / "deep" / "again").symlink_to(away)
    found = [str(path.relative_to(source)) for path in list_files([str(source)])]
    assert found == ["b-link/deep/x.warc", "real/x.warc"]


def test_a_file_that_is_gone_once_it_was_found(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawls = tmp_path / "crawls"
    crawls.mkdir()
    warc(crawls / "one.warc.gz", PAGES)
    gone = warc(crawls / "two.warc.gz", PAGES)
    real = source.list_files

    def renaming(sources: Sequence[str]) -> list[Path]:
        found = real(sources)
        gone.rename(crawls / "three.warc.gz")
        return found

    monkeypatch.setattr(source, "list_files", renaming)
    result = home("ingest", "--jobs", "1", "--json", crawls)
    assert (result.code, result.json["failed"]) == (1, 1)
    assert [s["codes"] for s in result.json["sources"]] == [{}, {"unreadable": 1}]


@pytest.fixture
def zeros(tmp_path: Path) -> Path:
    """Give a folder with an archive that begins with zeros, one of no telling name, and notes."""
    folder = tmp_path / "crawls"
    folder.mkdir()
    data = bytes(20_000) + warc(tmp_path / "sound.warc.gz", PAGES).read_bytes()
    (folder / "zeros.warc.gz").write_bytes(data)
    (folder / "download").write_bytes(bytes(10_000) + data)
    (folder / "README.txt").write_text("Crawls of 2007.")
    return folder


def test_archives_that_begin_with_zeros(home: Home, zeros: Path) -> None:
    found = home("ingest", "--json", "--jobs", "1", zeros)
    assert found.code == 0, found.err
    captures = {source["source"]: source["captures"] for source in found.json["sources"]}
    assert captures == {"README.txt": 0, "download": 3, "zeros.warc.gz": 3}
    assert home("publish", "--json").json["new"] == 3
    junk = "SELECT source, place, code, detail FROM faults WHERE code = 'gzip-garbage' ORDER BY 1"
    assert home("query", junk).out.splitlines()[1:] == [
        "download,0,gzip-garbage,30000 bytes",
        "zeros.warc.gz,0,gzip-garbage,20000 bytes",
    ]


def test_an_archive_that_begins_with_zeros_from_standard_input(
    home: Home, zeros: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (zeros / "download").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    done = home("ingest", "--jobs", "1", "-")
    assert done.code == 0, done.err
    assert done.out.startswith("3 captures from 1 file")
