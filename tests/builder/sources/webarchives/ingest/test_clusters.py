"""Engines with workers and drivers that die, and over all real archives; `make prove-engines`.

Spark has a cluster of its own here: two executors, each a JVM with its own Python processes.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bench.ingest import crawl
from tests.builder.sources.webarchives.ingest.test_engines import published, require
from tests.e2e.conftest import ARCHIVES, Home, make_home

psutil: Any = pytest.importorskip("psutil", reason="no psutil: `make prove-engines` has it")

ROOT = Path(__file__).parents[5]
SETTINGS = {
    **os.environ,
    "PYTHONPATH": str(Path(psutil.__file__).parents[1]),
    "PYSPARK_PYTHON": sys.executable,
}
"""The environment of a driver; the engines are beside psutil."""
CLUSTER = "local-cluster[2,1,1024]"  # executors, cores of each, megabytes of each
ENGINES = {
    "local": ("--engine", "local", "--jobs", "2"),
    "dask": ("--engine", "dask", "--jobs", "2"),
    "spark": ("--engine", "spark", "--scheduler", CLUSTER),
}
MEGABYTES = 24


@pytest.fixture(autouse=True)
def python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name the Python of Spark's workers, which has Sheaf."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> tuple[str, ...]:
    require(request.param)
    return ENGINES[request.param]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a crawl of which a megabyte is a chunk."""
    path = tmp_path_factory.mktemp("archive") / "crawl.warc.gz"
    crawl(path, MEGABYTES * 1_000_000)
    return path


@pytest.fixture(scope="module")
def plain(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bytes]]:
    """Give what one process says of the crawl, and publishes."""
    home = make_home(tmp_path_factory.mktemp("plain"))
    done = home("ingest", archive, "--jobs", "1")
    return done.out, published(home)


@contextmanager
def watching(archive: Path, see: Callable[[Any], bool]) -> Iterator[None]:
    """Let `see` have each process below this one that is reading the archive, until it is True."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.002):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):  # it has ended
                    if _is_reading(process, archive) and see(process):
                        return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _is_reading(process: Any, archive: Path) -> bool:
    return str(archive) in [file.path for file in process.open_files()]


def _find_executor(process: Any) -> list[Any]:
    """Return the JVM of Spark for which a process reads, if there is one."""
    return [one for one in process.parents() if "CoarseGrainedExecutor" in str(one.cmdline())]


@pytest.mark.parametrize("lost", ["dask: worker", "spark: worker", "spark: executor"])
def test_who_is_killed_while_reading_costs_a_part(
    lost: str, home: Home, archive: Path, plain: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    name, _, what = lost.partition(": ")
    require(name)
    work = tmp_path / "work"
    arguments = ("ingest", archive, *ENGINES[name], "--chunk", "1", "--work", work)
    killed: list[Any] = []

    def kill(process: Any) -> bool:
        process.suspend()
        if not _is_reading(process, archive):  # it has ended its part meanwhile
            process.resume()
            return False
        killed.extend([*(_find_executor(process) if what == "executor" else ()), process])
        for one in killed:
            one.kill()
        return True

    with watching(archive, kill):
        done = home(*arguments)
    assert len(killed) == (2 if what == "executor" else 1)
    assert list(work.glob("sheaf-part-*"))  # what a killed process could not remove
    assert (done.code, done.out) == (0, plain[0]), done.err
    assert published(home) == plain[1]


def test_a_driver_that_is_killed_goes_on(
    home: Home, archive: Path, engine: tuple[str, ...], plain: tuple[str, dict[str, bytes]]
) -> None:
    store = home.folder / "store"
    line = [sys.executable, "-m", "builder", "ingest", archive, "--config", home.config]
    command = [*map(str, line), *engine, "--chunk", "1"]
    driver = subprocess.Popen(command, cwd=ROOT, env=SETTINGS, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 300
    while len(list(store.glob("intake/*/part-*.json"))) < 2 and time.monotonic() < end:
        time.sleep(0.002)
    below = psutil.Process(driver.pid).children(recursive=True)
    driver.send_signal(signal.SIGKILL)
    assert driver.wait() == -signal.SIGKILL
    assert home("publish").code == 2  # nothing is committed
    done = subprocess.run(
        command, cwd=ROOT, env=SETTINGS, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, plain[0]), done.stderr
    told = re.search(r"resuming: (\d+) of (\d+) parts are there", done.stderr)
    assert told is not None
    assert 2 <= int(told[1]) < int(told[2])
    assert published(home) == plain[1]
    assert psutil.wait_procs(below, timeout=60)[1] == []  # its workers have ended as well


def test_spark_reads_on_two_executors(home: Home, archive: Path) -> None:
    require("spark")
    seen: set[Any] = set()

    def see(process: Any) -> bool:
        seen.update(_find_executor(process))
        return len(seen) == 2

    with watching(archive, see):
        done = home("ingest", archive, *ENGINES["spark"], "--chunk", "1")
    assert done.code == 0, done.err
    assert len(seen) == 2


def test_a_python_without_sheaf_is_one_line(
    home: Home, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("spark")
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))
    done = home("ingest", archive, "--engine", "spark", "--jobs", "1")
    assert done.code == 2
    (told,) = [line for line in done.err.splitlines() if line.startswith("sheaf: ")]
    assert told.startswith("sheaf: Spark gave up: ModuleNotFoundError: No module named ")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Give a home with all real archives, read by one process and published."""
    if not ARCHIVES.is_dir():
        pytest.skip(f"no {ARCHIVES}")
    home = make_home(tmp_path_factory.mktemp("real"))
    assert home("ingest", ARCHIVES, "--jobs", "1").code in (0, 1)
    return home


QUERIES = ("SELECT * FROM faults ORDER BY ALL", "SELECT * FROM sources ORDER BY ALL")


@pytest.mark.parametrize("way", [*ENGINES, "shell"])
def test_all_real_archives_are_published_alike(home: Home, real: Home, way: str) -> None:
    if way == "shell":
        made = home("ingest", "plan", ARCHIVES, "--chunk", "1", "--json").json
        # Two processes read the first chunk at the same time.
        loop = (
            f"(echo 0; seq 0 {made['chunks'] - 1}) | xargs -P 4 -I N {sys.executable} -m builder "
            f"ingest part --run {made['run']} --index N --config {home.config}"
        )
        subprocess.run(["sh", "-c", loop], cwd=ROOT, check=True, capture_output=True)
        assert home("ingest", "commit", "--run", made["run"]).code in (0, 1)
    else:
        require(way)
        done = home("ingest", ARCHIVES, *ENGINES[way], "--chunk", "1")
        assert done.code in (0, 1), done.err
    assert published(home) == published(real) != {}
    for query in QUERIES:
        rows = home("query", "--json", query).out
        assert rows == real("query", "--json", query).out != ""
