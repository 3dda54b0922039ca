"""The cost of publishing a change of 1 %, compared with the full build of the same store.

    python -m bench.change [--captures 1000000] [--small 50] [--tables]

Generated captures are published. The next publishes change 1 % of the records, scattered over the
whole repository, twice; add as many new ones; and add ten records each, as hourly publishes do.
Bytes are all bytes written to the store, without the intake. The baseline is the full build, as
without sharing. With --tables, each publish also writes Iceberg tables.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from bench.generate import captures
from builder.intake import intake
from builder.intake.captures import Capture
from builder.intake.rows import IntakeWriter
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.snapshot import layout
from functions.store.catalog import Catalogue


class Counting(FolderStore):
    """A folder that adds up the bytes that are written to it, the intake aside."""

    written = 0

    def put(self, key: str, source: BinaryIO) -> None:
        there = self.path(key).exists()
        super().put(key, source)
        if not there and not key.startswith(layout.INTAKE):
            self.written += self.path(key).stat().st_size

    def create(self, key: str, data: bytes) -> None:
        super().create(key, data)
        self.written += 0 if key.startswith(layout.INTAKE) else len(data)

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        self.written += len(data)
        return super().replace(key, data, tag)


def fill(store: FolderStore, name: str, some: Iterable[Capture]) -> None:
    """Put captures into the intake as one run."""
    with tempfile.TemporaryDirectory() as scratch:
        part = IntakeWriter(Path(scratch), "000000")
        for capture in some:
            part.capture(capture, capture.sets)
        part.close()
        source = intake.IntakeSource(name, name, "", "warc.gz", 0, 0, 0, 0, {}, {})
        intake.commit(store, intake.IntakeRun(name, (source,)), Path(scratch))


def changed(count: int, every: int, start: int, title: str) -> Iterable[Capture]:
    """Yield each `every`th of the generated captures with another title."""
    for number, capture in enumerate(captures(count)):
        if number % every == start:
            yield replace(capture, title=title)


class Bench:
    """Publishes to one store, and keeps what each publish cost."""

    def __init__(self, folder: Path, tables: bool = False) -> None:
        self.store = Counting(folder / "store")
        self._settings = configuration.parse(
            '[repository]\nnamespace = "bench.example.org"\n',
            {"SHEAF_PUBLISH_TABLES": str(tables).lower()},
        )

    def publish(self) -> tuple[float, int, int]:
        """Return seconds, but those that only wait for the instant of effect, bytes, changes."""
        waited = 0.0

        def sleep(seconds: float) -> None:
            nonlocal waited
            waited += seconds
            time.sleep(seconds)

        before = self.store.written
        runtime = Runtime(lambda: datetime.now(UTC), sleep, lambda text: None, {})
        began = time.perf_counter()
        built = publish(self.store, self._settings, runtime)
        taken = time.perf_counter() - began - waited
        return taken, self.store.written - before, built.new + built.changed

    def files(self) -> str:
        """Return how many runs and files the tables of the newest snapshot have."""
        catalogue = Catalogue(self.store)
        newest = catalogue.pointer().newest()
        assert newest is not None
        manifest = catalogue.manifest(newest.snapshot)
        counts = {t: sum(leaf.files for leaf in found) for t, found in manifest.tables.items()}
        runs = len({leaf.span for leaf in manifest.tables["records"]})
        listed = ", ".join(f"{n} {table}" for table, n in counts.items())
        return f"{runs} runs of records; files: {listed}"


def run(folder: Path, count: int, small: int, tables: bool = False) -> None:
    """Publish, change, publish again, and print the table."""
    bench = Bench(folder, tables)
    fill(bench.store, "full", captures(count))
    full = bench.publish()
    print(f"\n{count:,} captures\n")
    print("| publish | records | seconds | to the full build | MB written | to the full build |")
    print("|---|---|---|---|---|---|")

    def row(name: str, cost: tuple[float, int, int]) -> None:
        seconds, size, records = cost
        print(
            f"| {name} | {records:,} | {seconds:.2f} | {seconds / full[0]:.1%} "
            f"| {size / 1e6:.2f} | {size / full[1]:.2%} |",
            flush=True,
        )

    row("the full build", full)
    for number, name in enumerate(("1 % changed, scattered", "1 % others changed")):
        fill(bench.store, f"change-{number}", changed(count, 100, 7 + number, f"Changed {number}"))
        row(name, bench.publish())
    fill(bench.store, "new", captures(count // 100, seed=2))
    row("1 % new", bench.publish())
    costs = []
    for number in range(small):
        fill(bench.store, f"small-{number}", captures(10, seed=1000 + number))
        costs.append(bench.publish())
    if costs:
        middle = tuple(statistics.median(values) for values in zip(*costs, strict=True))
        row(f"10 new, median of {small}", (middle[0], int(middle[1]), int(middle[2])))
        row("10 new, the dearest", max(costs, key=lambda cost: cost[1]))
    print(f"\nAfter {small + 4} publishes: {bench.files()}.")


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--small", type=int, default=50)
    parser.add_argument("--tables", action="store_true", help="write Iceberg tables")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), arguments.captures, arguments.small, arguments.tables)


if __name__ == "__main__":
    main()
