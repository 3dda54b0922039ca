"""Publish of many small runs of intake, against one run with the same rows.

    python -m bench.cold.runs [--runs 1000] [--wait 0.02] [--rounds 3]

Each run has one capture. Every request to the store takes `--wait` seconds, as to a bucket: also
each thousand keys of a listing or a removal. Baseline: one run with all captures.

The store is a folder in TMPDIR. On a busy disk, removing its files takes seconds that a bucket does
not take; TMPDIR=/dev/shm keeps it in memory.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from bench.cold.reads import ingest
from bench.generate import captures
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.snapshot.store import ListedObject

_PAGE = 1000  # keys of a listing or a removal, as in S3


class FarStore(FolderStore):
    """A folder that answers each request after `wait` seconds, and counts them."""

    wait = 0.0
    requests = 0

    def read(self, key: str) -> bytes:
        """Return an object."""
        self._pause()
        return super().read(key)

    def open(self, key: str) -> BinaryIO:
        """Open an object."""
        self._pause()
        return super().open(key)

    def local(
        self, key: str, spans: Sequence[tuple[int, int]] | None = None, size: int | None = None
    ) -> Path:
        """Return the path of an object."""
        self._pause()
        return super().local(key, spans, size)

    def put(self, key: str, source: BinaryIO) -> None:
        """Write an object."""
        self._pause()
        super().put(key, source)

    def create(self, key: str, data: bytes) -> None:
        """Write a new object."""
        self._pause()
        super().create(key, data)

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        """Replace an object."""
        self._pause()
        return super().replace(key, data, tag)

    def remove(self, *keys: str) -> None:
        """Remove objects."""
        for _ in range(0, len(keys), _PAGE):
            self._pause()
        super().remove(*keys)

    def entries(self, prefix: str) -> Iterator[ListedObject]:
        """List objects."""
        found = super().entries(prefix)
        self._pause()
        while some := list(islice(found, _PAGE)):
            yield from some
            if len(some) == _PAGE:
                self._pause()

    def _pause(self) -> None:
        if self.wait:
            self.requests += 1
            time.sleep(self.wait)


def measure(runs: int, count: int, wait: float) -> tuple[float, float, int]:
    """Return wall seconds, CPU seconds and requests of a publish of `count` captures."""
    settings = configuration.parse('[repository]\nnamespace = "bench.example.org"\n', {})
    waited: list[float] = []  # the instant of effect need not be waited for here
    runtime = Runtime(lambda: datetime.now(UTC), waited.append, lambda text: None, {})
    with tempfile.TemporaryDirectory() as scratch:
        store = FarStore(Path(scratch) / "store")
        some = captures(count)
        for number in range(runs):
            ingest(store, f"{number:06}", islice(some, count // runs))
        store.wait = wait
        began, cpu = time.perf_counter(), time.process_time()
        built = publish(store, settings, runtime)
        spent = time.perf_counter() - began, time.process_time() - cpu
        assert built.new == count, f"{built.new} new"
        return *spent, store.requests


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--wait", type=float, default=0.02, help="seconds")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    found: dict[int, list[Any]] = {1: [], arguments.runs: []}
    for _ in range(arguments.rounds):
        for runs, taken in found.items():
            taken.append(measure(runs, arguments.runs, arguments.wait))
    print(f"| {arguments.runs:,} captures in runs | s | CPU s | requests | ratio |")
    print("|---|---|---|---|---|")
    base = statistics.median(taken[0] for taken in found[1])
    for runs, taken in found.items():
        wall, cpu = (statistics.median(one[n] for one in taken) for n in (0, 1))
        print(f"| {runs:,} | {wall:.2f} | {cpu:.2f} | {taken[0][2]:,} | {wall / base:.2f} |")


if __name__ == "__main__":
    main()
