"""For all tests."""

import atexit
import contextlib
import faulthandler
import gc
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.extent import ALL, LONG, REST

with contextlib.suppress(ImportError):  # the proofs of what is deployed go without it
    from hypothesis import settings

    # How long an example takes is the machine's. What a change breaks is to be told from what was
    # there before, so that only the long profile takes other examples each time.
    settings.register_profile("sheaf", deadline=None, derandomize=not LONG)
    settings.load_profile("sheaf")

pytest_plugins = ["tests.bucket", "tests.places"]


def _end_quietly() -> None:
    """Keep the end of the output readable.

    Hypothesis holds modules until the interpreter is gone, and DuckDB's binding then lists its own
    types as leaked, on standard error, in some fifty lines. Nothing else is said that late.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


atexit.register(_end_quietly)


@cache
def _traces() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="sheaf-traces-")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give each process of the tests a file, into which it writes where it crashes."""
    node.workerinput["trace"] = f"{_traces().name}/{node.gateway.id}"


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Write that; what crashes print by themselves is lost among thousands of tests."""
    if worker := getattr(config, "workerinput", None):
        faulthandler.enable(os.open(worker["trace"], os.O_WRONLY | os.O_CREAT))


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: Any) -> None:
    """Show where a process crashed at the test that it was running."""
    trace = Path(report.node.workerinput["trace"]).read_text() or "no trace: it was killed"
    report.longrepr = f"{report.longrepr}\n{trace}"


def pytest_sessionstart() -> None:
    """Listen to interrupts, and do not wait for disks.

    A shell starts its background jobs with interrupts ignored, and each process that a test starts
    inherits this. No test cuts the power, and syncing a busy disk takes seconds:
    tests/builder/store/test_lasting.py shows that files are synced before they become visible.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.fsync = lambda handle: None
    os.sync = lambda: None
    with contextlib.suppress(ImportError):
        import builder.store.folder

        builder.store.folder.sync_system = lambda folder: None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without TEST_ALL=1, leave out thorough tests, and take a sample of others and their cases.

    With TEST_REST=1, leave out what is tried as much without it.
    """
    if ALL and not REST:
        return
    count: Counter[str] = Counter()
    places: dict[str, int] = {}
    kept, left = [], []
    for item in items:
        module, function = item.nodeid.partition("::")[0], item.nodeid.partition("[")[0]
        thorough = item.get_closest_marker("thorough") is not None
        if function not in places and not thorough:
            places[function] = count[module]
            count[module] += 1
        out = thorough or bool(
            count[function] % _get_step(item, "sampled")
            or places[function] % _get_step(item, "shared")
        )
        wanted = out or _has_extent(item) if REST else not out
        (kept if wanted else left).append(item)
        count[function] += 1
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def _get_step(item: pytest.Item, name: str) -> int:
    """Return of how many one is taken, as a marker says."""
    marker = item.get_closest_marker(name)
    return int(marker.args[0]) if marker else 1


def _has_extent(item: pytest.Item) -> bool:
    """Return whether a test itself tries more with TEST_ALL=1."""
    if not isinstance(item, pytest.Function):
        return False
    random = hasattr(item.function, "hypothesis") and hasattr(item.module, "examples")
    return random or not {"ALL", "examples", "places"}.isdisjoint(item.function.__code__.co_names)


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over thousands of tests, and look for garbage seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


@pytest.fixture(scope="session", autouse=True)
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run all tests in an empty folder: none may depend on what lies where they are started.

    Processes that import tests find them by PYTHONPATH: other packages bring a `tests` as well.
    """
    folder = tmp_path_factory.mktemp("working")
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        yield folder


@pytest.fixture(autouse=True)
def _leave_it_empty(working_folder: Path) -> Iterator[None]:
    """Fail a test that writes into the working folder: the next one would depend on it."""
    yield
    left = [path.name for path in working_folder.iterdir()]
    for name in left:
        path = working_folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not left, f"the test left {left} in the working folder"
