"""An ingest is killed wherever it changes something; the next one goes on, and nobody sees it."""

import multiprocessing
import os
import shutil
import signal
from pathlib import Path
from typing import Any

from builder.intake import intake
from builder.store.folder import FolderStore
from tests.builder.indexes import line
from tests.builder.sources.webarchives.ingest import ending
from tests.builder.sources.webarchives.ingest.test_ingest import archive, ingested, intake_of
from tests.e2e.conftest import Home, warc
from tests.extent import places
from tests.interleaving.killer import Killer

SPLIT = 4000
_LONG = 600  # seconds, after which a process is taken to stand still

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.interleaving.killer", "duckdb", "pyarrow.parquet"])


def _ingest(root: Path, files: list[Path], at: int, counted: Path) -> None:
    killer = Killer(str(root), at, every=True, really=True)
    killer.watch()
    ingested(root, files, SPLIT)
    counted.write_text(str(killer.count))


def _killed(root: Path, files: list[Path], at: int, counted: Path) -> bool:
    process = _PROCESSES.Process(target=_ingest, args=(root, files, at, counted))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def test_an_ingest_may_be_killed_at_any_change(tmp_path: Path) -> None:
    """It goes on with what is finished, and commits the very same bytes once."""
    files = [
        archive(tmp_path / "large.warc.gz", 50, few=5),
        archive(tmp_path / "small.arc", 3, form="arc"),
        archive(tmp_path / "other.warc.gz", 2, seed=2),
        tmp_path / "index.cdxj",
    ]
    files[-1].write_bytes(b"\n".join(line(f"http://a.cz/{n}") for n in range(20)))
    total = sum(path.stat().st_size for path in files)
    assert not _killed(tmp_path / "whole", files, 0, tmp_path / "count")
    expected = intake_of(tmp_path / "whole")
    count = int((tmp_path / "count").read_text())
    assert count > 20
    went_on, tried = 0, places(count, 5)
    for at in tried:
        root = tmp_path / str(at)
        assert _killed(root, files, at, tmp_path / "count"), at
        done, seen = ingested(root, files, SPLIT, name="later")
        assert seen.read + seen.before[0] == total, at
        went_on += bool(seen.before[0])
        (run,) = intake.runs(FolderStore(root))
        assert run.name == done.run.name
        assert intake_of(root, run.name) == expected, at
        assert list((root / ".tmp").glob("ingest-*")) == [], at
        shutil.rmtree(root)
    assert went_on > len(tried) / 2


def _ended(*asked: Any) -> None:
    """Carry out a command that is ended; it says nothing but that it was asked to end."""
    process = ending.begun(*asked)
    out, err = process.communicate(timeout=_LONG)  # its pipes end when the last worker does
    assert process.returncode == ending.STATUS[asked[1]], err
    assert out == ""
    assert "Traceback" not in err
    if asked[1] == signal.SIGTERM:
        lines = [line for line in err.splitlines() if not line.startswith("resuming: ")]
        assert lines == ["sheaf: terminated; run the command again to finish its work"]


def test_a_command_that_was_ended_goes_on_when_it_is_given_again(
    home: Home, tmp_path: Path
) -> None:
    """Killed and then asked to end, with processes side by side; none of them stays."""
    pages = {f"http://a{n}.cz/": os.urandom(4000) for n in range(400)}
    large = warc(tmp_path / "large.warc.gz", pages)
    scratch = tmp_path / ("scratch" * 20)  # longer than a socket's address may be
    scratch.mkdir()
    command = ["ingest", "--jobs", "2", "--json", str(large), "--config", str(home.config)]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    store = home.folder / "store"
    counts = [0]
    for number in (signal.SIGKILL, signal.SIGTERM):
        _ended(2, number, command, environment)
        counts.append(len(list(store.glob(".tmp/ingest-*/parts/*.json"))))
    assert counts == sorted(set(counts))  # each went on
    done = home(*command[:-2])
    assert done.code == 0, done.err
    assert "resuming: 0 of 1 files were read before, " in done.err
    assert done.json["sources"][0]["captures"] == len(pages)
    assert list(scratch.iterdir()) == []
    assert list((store / ".tmp").glob("ingest-*")) == []
