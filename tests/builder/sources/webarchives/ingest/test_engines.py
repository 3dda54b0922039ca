"""The engines of `sheaf ingest`: each gives what one process gives, also where work was cut off."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from builder.sources.webarchives import WEBARCHIVES
from builder.sources.webarchives.ingest import parts, plan, splits
from builder.sources.webarchives.ingest.engines import ENGINES, EngineOptions, Work
from tests.e2e.conftest import Home, make_home, warc
from tests.e2e.test_commands import PAGES, one_line

pytestmark = pytest.mark.shared(2)

COUNT = 6


@pytest.fixture(params=[name for name in ENGINES if name != "lambda"])  # tests/aws has that
def engine(request: pytest.FixtureRequest) -> str:
    require(request.param)
    return str(request.param)


def require(engine: str) -> None:
    """Skip the test if an engine cannot run here."""
    if engine == "dask":
        pytest.importorskip("distributed", reason="no distributed: `make prove-engines` has it")
    if engine == "spark":
        pytest.importorskip("pyspark", reason="no pyspark: `make prove-engines` has it")
        if shutil.which("java") is None:
            pytest.skip("no java: apt-get install default-jre-headless")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(splits, "TOGETHER", 1)
    return [warc(tmp_path / f"{n}.warc.gz", PAGES) for n in range(COUNT)]


def published(home: Home) -> dict[str, bytes]:
    """Publish, and return the data files by their keys."""
    assert home("publish").code == 0
    records = home.config.parent / "store" / "records"
    return {path.name: path.read_bytes() for path in records.rglob("*.parquet")}


def test_an_engine_gives_what_one_process_gives(
    home: Home, engine: str, files: list[Path], tmp_path: Path
) -> None:
    plain = make_home(tmp_path / "plain")
    (tmp_path / "torn.warc.gz").write_bytes(files[0].read_bytes()[:-9])
    given = [*files, tmp_path / "torn.warc.gz"]
    done = plain("ingest", *given)
    by_engine = home("ingest", *given, "--engine", engine, "--jobs", "2")
    assert (by_engine.code, by_engine.out) == (done.code, done.out), by_engine.err
    assert published(home) == published(plain)


def test_a_driver_that_was_interrupted_goes_on(
    home: Home, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(work: Work, left: Sequence[int], options: EngineOptions) -> Iterator[int]:
        yield from ENGINES["local"](work, left[:2], options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("builder.sources.webarchives.source.ENGINES", {"local": interrupted})
        assert home("ingest", *files, "--engine", "local").code == 130
    assert home("publish").code == 2
    again = home("ingest", *files, "--engine", "local", "--jobs", "1")
    assert again.code == 0
    assert f"resuming: 2 of {COUNT} parts are there" in again.err
    assert again.out.startswith(f"{3 * COUNT} captures from {COUNT} files, ready to publish\n")
    other = home("ingest", *files, "--engine", "local", "--jobs", "1")
    assert "resuming" not in other.err  # what is committed is not gone on with


def test_a_worker_that_is_killed_costs_its_part(home: Home, files: list[Path]) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="no distributed: `make prove-engines` has it"
    )
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        first = cluster.workers[0].process.pid
        killer = threading.Thread(target=_kill_when_begun, args=(home, first))
        killer.start()
        done = home("ingest", *files, "--engine", "dask", "--scheduler", cluster.scheduler_address)
        killer.join()
    assert done.code == 0, done.err
    assert done.out.startswith(f"{3 * COUNT} captures from {COUNT} files, ready to publish\n")


def _kill_when_begun(home: Home, process: int) -> None:
    intake = home.config.parent / "store" / "intake"
    until = time.monotonic() + 30
    while not list(intake.glob("*/plan.json")) and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)


def test_parts_that_are_all_there_are_committed(
    home: Home, engine: str, files: list[Path], tmp_path: Path
) -> None:
    made = home("ingest", "plan", *files, "--json").json
    for number in range(made["chunks"]):
        assert home("ingest", "part", "--run", made["run"], "--index", number).code == 0
    work = ("--work", tmp_path / "new" / "folder")
    done = home("ingest", *files, "--engine", engine, *work)
    assert (done.code, "resuming: 6 of 6 parts are there" in done.err) == (0, True)
    assert home("ingest", *files, "--engine", engine, "--jobs", "1", *work).code == 0


def test_what_a_worker_refuses_is_one_line(
    home: Home, engine: str, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "reader_version", lambda: ("0.0.1", "x"))
    done = home("ingest", *files, "--engine", engine, "--jobs", "2")
    assert done.code == 2
    assert "use one version for all parts" in done.err.splitlines()[-1]


def test_a_part_that_cannot_be_written_ends_the_ingest(
    home: Home, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import_module("builder.commands.make.ingest")  # it must not bind what stands in for a moment

    def refused(*_: Any) -> None:
        raise parts.Conflict("the store is read-only")

    monkeypatch.setattr(parts, "read_part", refused)
    done = home("ingest", *files, "--engine", "local", "--jobs", "1")
    assert (done.code, one_line(done.err)) == (2, "sheaf: the store is read-only")


def test_faults_end_with_1_if_that_is_wanted(home: Home, files: list[Path]) -> None:
    files[0].write_bytes(files[0].read_bytes()[:-9])
    arguments = ("ingest", *files, "--engine", "local", "--jobs", "1")
    assert (home(*arguments).code, home(*arguments, "--again", "--strict").code) == (0, 1)
    assert home("ingest", *files, "--engine", "local", "--jobs", "0").code == 2


def test_the_engines_that_the_command_offers_are_those_there_are() -> None:
    assert WEBARCHIVES.parameters["engine"]["choices"] == tuple(ENGINES)
