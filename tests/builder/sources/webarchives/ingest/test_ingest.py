"""Ingest: however it is cut up, by how many it is read, and wherever it ended before, the same."""

import functools
import hashlib
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.intake import row_files
from builder.intake.captures import Capture, Fault
from builder.sources.webarchives import backlog
from builder.sources.webarchives.ingest import ingest
from builder.sources.webarchives.ingest.ingest import IngestOptions
from builder.sources.webarchives.ingest.plan import IngestJob
from builder.sources.webarchives.ingest.result import IngestResult
from builder.sources.webarchives.ingest.splits import ArchiveFile
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.webarchive import ArchiveReader
from builder.store import workdir
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreError
from tests.builder.indexes import rows_of
from tests.builder.sources.webarchives.containers import (
    arc,
    archived,
    filedesc,
    frame,
    http,
    members,
    warc,
)
from tests.builder.sources.webarchives.test_request import exchange, post
from tests.extent import examples

pytestmark = pytest.mark.shared(2)

RULES = DocumentRules(redirects=True, errors=True)
SETS = ("collection:x",)
_SHARED = ("shared.warc.gz", "shared.warc.zst")
ARCHIVES = Path(__file__).parents[5].parent / "shared" / "data" / "webarchive"


@dataclass
class Seen:
    """What was told of an ingest."""

    read: int = 0
    captures: int = 0
    files: int = 0
    before: tuple[int, int, int] = (0, 0, 0)
    said: list[str] = field(default_factory=list)

    def resume(self, read: int, captures: int, files: int) -> None:
        self.before = (read, captures, files)

    def advance(self, read: int, captures: int, files: int) -> None:
        self.read += read
        self.captures += captures
        self.files += files


def ingested(
    root: Path, files: Sequence[Path], split: int | None = None, jobs: int = 1, name: str = "run"
) -> tuple[IngestResult, Seen]:
    """Ingest the files into the store at `root`, going on with what was begun."""
    seen = Seen()
    order = IngestJob(tuple(ArchiveFile.of(path) for path in files), SETS, RULES)
    asked = order.fingerprint(list(map(str, files)), str(root))
    means = IngestOptions(seen, jobs, seen.said.append, split)
    with workdir.open_workdir(workdir.folder_of(root / ".tmp", asked)) as held:
        done = ingest.ingest(FolderStore(root), order, held, means, name)
    return done, seen


def intake_of(root: Path, name: str = "run") -> dict[str, bytes]:
    """Return the files of a run by their names."""
    return {path.name: path.read_bytes() for path in (root / "intake" / name).iterdir()}


def table(root: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table of the intake, in the order of its files."""
    return rows_of(sorted((root / "intake").glob(f"*/{table}*.parquet")))


def as_read(files: Sequence[Path]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return captures and faults as the reader gives them, each file in one piece."""
    captures, faults = [], []
    for path in files:
        with path.open("rb") as stream:
            for event in ArchiveReader(stream, path.name, RULES):
                if isinstance(event, Capture):
                    row = asdict(event) | {"sets": sorted(event.sets + SETS)}
                    row["fetch_time"] = event.fetch_time and event.fetch_time.replace(tzinfo=None)
                    captures.append(row)
                elif isinstance(event, Fault):
                    faults.append(asdict(event))
    return captures, faults


def archive(path: Path, count: int, *, seed: int = 0, form: str = "warc.gz", few: int = 3) -> Path:
    """Write an archive with captures of which many are alike: `few` different ones."""
    some = random.Random(seed)
    records = []
    for _ in range(count):
        number = some.randrange(few)
        block = http(b"<title>%d</title>" % number + b"x" * number)
        url = b"http://a.cz/%d" % number
        if form.startswith("warc"):
            date = b"2008-04-30T20:48:26.%dZ" % number
            kind = b"revisit" if number % 3 == 2 else b"response"
            url += (b"", b"\xe9", b"\\x41")[number % 3]
            records.append(warc(block, url=url, date=date, kind=kind))
        else:
            records.append(arc(block, url=url))
    if form.startswith("arc"):
        records.insert(0, filedesc())
    else:
        records.insert(0, warc(b"operator: one\r\n", kind=b"warcinfo", url=None))
    path.write_bytes(members(records) if form.endswith(".gz") else b"".join(records))
    return path


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of every kind, some of them damaged, some small."""
    folder = tmp_path_factory.mktemp("crawl")
    found = [
        archive(folder / f"{n}.{form}", 60, seed=n, form=form)
        for n, form in enumerate(("warc.gz", "warc", "arc.gz", "arc"))
    ]
    found += [archive(folder / f"small-{n}.warc.gz", n, seed=n) for n in range(4)]
    broken = bytearray(found[0].read_bytes())
    broken[len(broken) // 2] ^= 0x55
    pair = warc(http()) * 2
    asked = [exchange(post(b"a=%d" % n), n, before=n % 2 == 0) for n in range(40)]
    others = {
        "broken.warc.gz": broken,
        "cut.arc.gz": found[2].read_bytes()[:-9],
        "one-member.warc.gz": members([found[1].read_bytes()]),
        "shared.warc.gz": members([pair] * 9),
        "shared.warc.zst": frame(pair) * 9,
        "notes.txt": b"no archive",
        "posts.warc.gz": members([record for pair in asked for record in pair]),
        "empty.warc": b"",
    }
    for name, data in others.items():
        (folder / name).write_bytes(data)
    return [*found, *(folder / name for name in others)]


def test_the_intake_is_what_the_reader_gives(tmp_path: Path, crawl: list[Path]) -> None:
    done, seen = ingested(tmp_path, crawl)
    captures, faults = as_read(crawl)
    assert table(tmp_path, "captures") == captures
    assert table(tmp_path, "faults") == faults
    assert seen.files == len(crawl)
    assert seen.captures == len(captures)
    assert seen.read == sum(path.stat().st_size for path in crawl)
    assert {path.name for path in (tmp_path / "intake" / "run").iterdir()} == {
        "captures-000000.parquet",
        "faults-000000.parquet",
        "run.json",
    }
    assert [s.captures for s in done.run.sources[4:8]] == [0, 1, 2, 3]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, crawl: list[Path]) -> tuple[IngestResult, Path]:
    """The crawl as it is ingested by one process, each file in one piece."""
    root = tmp_path_factory.mktemp("whole")
    return ingested(root, crawl, split=1 << 30)[0], root


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("split", "jobs", "file_rows"), [(900, 1, 170), (2500, 2, 1 << 19)])
def test_however_it_is_cut_up_the_same_comes_out(
    tmp_path: Path,
    crawl: list[Path],
    whole: tuple[IngestResult, Path],
    split: int,
    jobs: int,
    file_rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_files, "FILE_ROWS", file_rows)
    cut, seen = ingested(tmp_path, crawl, split, jobs)
    assert cut.run == whole[0].run
    assert seen.files == len(crawl)
    assert table(tmp_path, "captures") == as_read(crawl)[0]
    assert table(tmp_path, "faults") == as_read(crawl)[1]
    if file_rows > 1000:
        assert intake_of(tmp_path) == intake_of(whole[1])
    # That members hold several records is told once a file, which ranges of it cannot know.
    shared = tuple(str(path) for path in crawl if path.name in _SHARED)
    assert cut.whole == (shared if split < 1000 else ())


@given(data=st.data())
@settings(max_examples=examples(12), deadline=None)
def test_any_ranges_of_a_file_give_what_it_gives_as_a_whole(
    tmp_path_factory: pytest.TempPathFactory, crawl: list[Path], data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(crawl[:4]))
    split = data.draw(st.integers(path.stat().st_size // 12, path.stat().st_size))
    root = tmp_path_factory.mktemp("cut")
    ingested(root, [path], split)
    assert table(root, "captures") == as_read([path])[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["warc", "warc.gz", "arc", "arc.gz"])
def test_a_file_that_begins_with_zeros_is_read_in_ranges_too(tmp_path: Path, form: str) -> None:
    sound = archive(tmp_path / f"sound.{form}", 40, form=form)
    path = tmp_path / f"zeros.{form}"
    path.write_bytes(bytes(20_000) + sound.read_bytes())
    whole, _ = ingested(tmp_path / "whole", [path])
    cut, seen = ingested(tmp_path / "cut", [path], 2000)
    assert cut.run == whole.run
    assert cut.whole == ()
    assert intake_of(tmp_path / "cut") == intake_of(tmp_path / "whole")
    (source,) = whole.run.sources
    assert (source.format, source.captures, source.faults) == (form, 40, 1)
    assert seen.captures == 40


@pytest.mark.parametrize("at", [0, 1])
def test_a_wacz_that_its_first_bytes_do_not_show_is_read_all_the_same(
    tmp_path: Path, at: int
) -> None:
    """One bit of the first name is flipped, and the next name lies far behind."""
    noise = random.Random(0)
    records = [warc(http(noise.randbytes(6000)), url=b"http://a.cz/%d" % n) for n in range(4)]
    path = tmp_path / "a.wacz"
    files = (("archive/a.warc.gz", members(records)), ("datapackage.json", "{}"))
    data = bytearray(archived(*files))
    data[30] ^= at
    path.write_bytes(data)
    (source,) = ingested(tmp_path / "store", [path])[0].run.sources
    assert (source.captures, dict(source.codes)) == (4, {"wacz-damaged": 1} if at else {})
    assert source.format == "wacz"
    assert source.digest == hashlib.sha256(data).hexdigest()


def test_a_full_scratch_disk_ends_the_run_and_it_can_be_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no fault of the archive, part of which would be published for the whole."""
    path = tmp_path / "a.warc.gz"
    pair = [warc(http(b"%d" % n), url=b"http://a.cz/%d" % n) for n in range(2)]
    path.write_bytes(members([warc(http()), b"".join(pair)]))
    with monkeypatch.context() as patched:
        full = functools.partial(open, "/dev/full", "r+b", 0)
        patched.setattr(backlog.tempfile, "SpooledTemporaryFile", lambda *_: full())
        with pytest.raises(StoreError, match="scratch files is full"):
            ingested(tmp_path / "store", [path])
    assert not (tmp_path / "store" / "intake").exists()
    assert ingested(tmp_path / "store", [path])[0].run.sources[0].captures == 3


class Counted:
    """A connection to a database that counts the values it is given."""

    def __init__(self, connection: Any) -> None:
        self.values = 0
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, values: Any = ()) -> Any:
        self.values += len(values)
        return self._connection.execute(sql, values)


def test_joining_ranges_sends_no_values_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value sent alone costs a third of a millisecond; archives have millions alike."""
    seen: list[Counted] = []
    connected = ingest.connect

    def counted(*given: Any) -> Any:
        seen.append(Counted(connected(*given)))
        return seen[-1]

    monkeypatch.setattr(ingest, "connect", counted)
    for count in (30, 120):
        path = archive(tmp_path / f"{count}.warc", count, few=1)
        ingested(tmp_path / f"store-{count}", [path], path.stat().st_size // 3)
        assert table(tmp_path / f"store-{count}", "captures") == as_read([path])[0]
    assert seen[0].values == seen[1].values
