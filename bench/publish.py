"""Cost of the first publish of a large intake: time, memory, scratch disk, bytes a capture.

    python -m bench.publish [--captures 1000000] [--runs 5] [--memory 2048] [--revisits 0]

The intake is generated, one part for each archive file. Each publish is a process of its own, whose
peak memory the system measures. In the baseline, DuckDB sorts the same rows by the same key, with
the same threads and memory, and writes them as Parquet with the same compression and row groups,
but without identifiers, look-ups, sets and digests. Both take turns; medians of the runs.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.generate import fill
from builder.intake import intake
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.snapshot import lookup
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.snapshot import layout
from functions.store import engine

THREADS = 2


@dataclass(frozen=True)
class Cost:
    """Seconds, those of processors, megabytes of memory and of scratch disk, bytes written."""

    seconds: float
    cpu: float
    memory: float
    scratch: float
    bytes: Mapping[str, int]


class Scratch:
    """Watches how much a folder for scratch files holds at most."""

    def __init__(self, folder: Path) -> None:
        self.most = 0
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            size = 0
            for path in self._folder.rglob("*"):
                try:
                    size += path.stat().st_blocks * 512
                except FileNotFoundError:
                    continue
            self.most = max(self.most, size)


def measured(folder: Path, work: Callable[[], Mapping[str, int]]) -> Cost:
    """Do the work, with scratch files in `folder`, and return its cost."""
    # DuckDB takes a process whose main module has no file for a person's, and shows its progress.
    sys.modules["__main__"].__file__ = __file__
    tempfile.tempdir = str(folder)
    scratch = Scratch(folder)
    began, cpu = time.perf_counter(), time.process_time()
    written = work()
    seconds = time.perf_counter() - began
    cpu = time.process_time() - cpu
    scratch.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return Cost(seconds, cpu, memory, scratch.most / 1e6, written)


def published(root: Path, folder: Path, memory: int) -> Cost:
    """Publish the intake of the store `root`."""

    def work() -> Mapping[str, int]:
        text = f'[repository]\nnamespace = "bench.example.org"\n[publish]\nmemory = {memory}\n'
        waited: list[float] = []  # for the instant of effect, which need not be waited for here
        runtime = Runtime(lambda: datetime.now(UTC), waited.append, lambda text: None, {}, THREADS)
        manifest = publish(FolderStore(root), configuration.parse(text, {}), runtime).manifest
        assert manifest is not None
        tables = manifest.tables.items()
        return {name: sum(leaf.bytes for leaf in leaves) for name, leaves in tables}

    return measured(folder, work)


def sorted_(root: Path, folder: Path, memory: int) -> Cost:
    """Have DuckDB sort the intake of the store `root` and write it."""

    def work() -> Mapping[str, int]:
        store = FolderStore(root)
        runs = list(intake.runs(store))
        files = intake.files(store, runs, intake.keys_of(store, runs), "captures")
        connection = engine.connect(threads=THREADS, memory_megabytes=memory, scratch=folder)
        out = root / "sorted.parquet"
        order = lookup.WITHIN_KIND.replace("identifier", "identity")
        connection.execute(
            f"COPY (SELECT * FROM {engine.table('$files')} ORDER BY {order}) TO '{out}' "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {layout.GROUP_ROWS})",
            {"files": files},
        )
        connection.close()
        return {"rows": out.stat().st_size}

    return measured(folder, work)


def once(work: Callable[[Path, Path, int], Cost], folder: Path, memory: int) -> Cost:
    """Do the work in a process of its own, on a store that has the intake of `folder` alone."""
    root, scratch = folder / "run", folder / "scratch"
    shutil.copytree(folder / "store", root, copy_function=os.link)
    scratch.mkdir()
    try:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(work, (root, scratch, memory))
    finally:
        shutil.rmtree(root)
        shutil.rmtree(scratch)


def run(folder: Path, count: int, runs: int, memory: int, revisits: int) -> None:
    """Generate, publish and sort in turn, and print the tables."""
    (folder / "parts").mkdir()
    began = time.perf_counter()
    fill(FolderStore(folder / "store"), count, folder / "parts", revisits=revisits)
    shutil.rmtree(folder / "parts")
    print(f"{count:,} captures, generated in {time.perf_counter() - began:.0f} s; {runs} runs\n")
    works = {"publish": published, "baseline: sort by DuckDB alone": sorted_}
    costs: dict[str, list[Cost]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            costs[name].append(once(work, folder, memory))
    print(
        "| | seconds | captures/s | CPU seconds | peak memory, MB | scratch, MB | bytes a capture |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, found in costs.items():
        seconds, cpu, peak, scratch = (
            statistics.median(getattr(cost, field) for cost in found)
            for field in ("seconds", "cpu", "memory", "scratch")
        )
        size = sum(found[0].bytes.values()) / count
        print(
            f"| {name} | {seconds:.2f} | {count / seconds:,.0f} | {cpu:.2f} | {peak:,.0f} "
            f"| {scratch:,.0f} | {size:.1f} |"
        )
    taken = sum(p.stat().st_size for p in (folder / "store").rglob("*") if p.is_file())
    print(f"\nThe intake: {taken / count:.1f} bytes a capture.")
    shares = ", ".join(
        f"{name} {size / count:.1f}" for name, size in costs["publish"][0].bytes.items()
    )
    print(f"Bytes a capture by table: {shares}.")


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--memory", type=int, default=2048, help="publish.memory, megabytes")
    parser.add_argument(
        "--revisits", type=int, default=0, help="every one in so many captures is a revisit"
    )
    parser.add_argument("--folder", type=Path, help="where to work; about 2 GB for 10 million")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        run(Path(folder), arguments.captures, arguments.runs, arguments.memory, arguments.revisits)


if __name__ == "__main__":
    main()
