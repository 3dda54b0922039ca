"""An ingest is killed wherever it changes something; the next one goes on, and nobody sees it."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from builder import intake
from builder.store import FolderStore

from ..builder.indexes import line
from ..builder.test_ingest import archive, ingested, intake_of
from ..extent import places
from ..whole.conftest import Home, warc
from .work import Killer

SPLIT = 4000

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.crash.work", "duckdb", "pyarrow.parquet"])


def _ingest(root: Path, files: list[Path], at: int, counted: Path) -> None:
    killer = Killer(str(root), at, every=True)
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
    went_on = 0
    for at in places(count, 5):
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
    assert went_on > count / 8


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_index_is_begun_anew_where_its_ingest_was_ended(
    home: Home, tmp_path: Path, number: signal.Signals
) -> None:
    """When blocks of it were written and others were not: nothing is lost, nothing there twice."""
    listed = tmp_path / "index.cdxj"
    listed.write_bytes(
        b"\n".join(line(f"http://a{n % 9}.cz/{n}", offset=str(n)) for n in range(250_000))
    )
    command = [sys.executable, "-m", "builder.cli", "ingest", "--jobs", "1", "--json", str(listed)]
    command += ["--config", str(home.config)]
    store = home.folder / "store"
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if list(store.glob(".tmp/ingest-*/parts/.*/captures-own-*-000000.parquet")):
            break
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in err
    assert list(store.glob("intake/*")) == []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["sources"][0]["captures"] == 250_000
    files = [path.name for path in (store / "intake" / document["run"]).glob("captures-*")]
    assert len(files) > 2
    assert list((store / ".tmp").glob("ingest-*")) == []
    assert home("publish", "--json").json["new"] == 250_000


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_command_that_was_ended_goes_on_when_it_is_given_again(
    home: Home, tmp_path: Path, number: signal.Signals
) -> None:
    """At moments that nobody chose, with processes side by side; none of them stays."""
    pages = {f"http://a{n}.cz/": os.urandom(4000) for n in range(6000)}
    large = warc(tmp_path / "large.warc.gz", pages)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-m", "builder.cli", "ingest", "--jobs", "2", "--json", str(large)]
    command += ["--config", str(home.config)]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    store = home.folder / "store"
    for delay in (0.0, 0.3):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        finished = len(list(store.glob(".tmp/ingest-*/parts/[!.]*")))
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if len(list(store.glob(".tmp/ingest-*/parts/[!.]*"))) > finished:
                break
            time.sleep(0.01)
        time.sleep(delay * random.random())
        process.send_signal(number)
        out, err = process.communicate(timeout=60)  # its pipes end when the last worker does
        assert "Traceback" not in err
        if process.returncode == 0:
            break
    parts = len(list(store.glob(".tmp/ingest-*/parts/[!.]*")))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if process.returncode != 0:
        assert done.returncode == 0, done.stderr
        # One part may be the file's digest alone, of which nothing is told.
        assert parts < 2 or "going on: 0 of 1 files were read before, " in done.stderr
        out = done.stdout
    assert json.loads(out)["sources"][0]["captures"] == 6000
    assert list(scratch.iterdir()) == []
    assert list((store / ".tmp").glob("ingest-*")) == []
