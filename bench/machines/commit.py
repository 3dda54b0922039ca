"""A very large ingest: its commit measured, and its reading by many workers simulated.

    python -m bench.machines.commit [--chunks 100000] [--workers 512] [--wait 0.02]

The commit is real: a plan of so many chunks, each with a part that has one source, in a folder
whose reads and writes take `--wait` seconds, as a bucket's. For the simulation, a crawl of 20 MB is
read for real, which gives seconds a megabyte. A chunk has 1 GB, give or take a third. Each part
costs seven requests more: plan, page, part and rows. A worker takes the next chunk when it is free.
Efficiency is the share of all workers' time that is reading.
"""

import argparse
import heapq
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.ingest import crawl
from builder.intake import intake
from builder.sources.webarchives.ingest import parts
from builder.sources.webarchives.ingest.join import commit
from builder.sources.webarchives.ingest.plan import (
    IngestJob,
    IngestPart,
    IngestPlan,
    SplitResult,
    part_name,
    write_plan,
)
from builder.sources.webarchives.ingest.splits import ArchiveFile, Split
from builder.sources.webarchives.rules import DocumentRules
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.snapshot.store import Writer

_REQUESTS = 7
_MEGABYTES = 1000  # of a chunk
_START = 1.0  # seconds in which a worker starts


class FarFolder(FolderStore):
    """A folder whose answers take as long as a bucket's."""

    wait = 0.0

    def read(self, key: str) -> bytes:
        """Return the object after the wait."""
        time.sleep(self.wait)
        return super().read(key)

    def create(self, key: str, data: bytes) -> None:
        """Write the object after the wait."""
        time.sleep(self.wait)
        super().create(key, data)


def no_rules() -> DocumentRules:
    """Return the rules of an empty configuration."""
    text = '[repository]\nnamespace = "bench.example.org"\n'
    return DocumentRules.of(configuration.parse(text, {}), ())


def planned(store: Writer, chunks: int) -> IngestPlan:
    """Plan a run of as many chunks, and write a part for each."""
    files = [
        ArchiveFile(Path(f"{n:06}.warc.gz"), f"s3://a/{n:06}", 1 << 20, n, f"s3://a/{n:06}")
        for n in range(chunks)
    ]
    plan = write_plan(store, "20260101T000000Z-bench", IngestJob(tuple(files), (), no_rules()), 1)
    assert plan.chunks == chunks

    def document(number: int) -> bytes:
        name = files[number].path.name
        source = intake.IntakeSource(
            name, f"{number:064x}", f"s3://a/{name}", "warc.gz", 1 << 20, 1500, 20, 0, {}, {}
        )
        result = SplitResult(Split(files[number]), source, rows(number).partition("/")[0])
        return IngestPart((result,)).document()

    def rows(number: int) -> str:
        return f"part-{number:06}-0/captures-000000.parquet"

    assert all(store.create_all((plan.key(rows(n)), b"") for n in range(chunks)))
    assert all(store.create_all((plan.key(part_name(n)), document(n)) for n in range(chunks)))
    return plan


def measure(folder: Path, chunks: int, wait: float) -> float:
    """Return the seconds of a commit of as many parts."""
    store = FarFolder(folder / "store")
    plan = planned(store, chunks)
    FarFolder.wait = wait
    began = time.perf_counter()
    done = commit(store, plan, folder / "work", lambda text: None)
    seconds = time.perf_counter() - began
    FarFolder.wait = 0.0
    assert len(done.run.sources) == chunks
    return seconds


def seconds_of_megabyte(folder: Path) -> float:
    """Return the seconds that a part takes for a megabyte of a crawl, by one process."""
    store, path = FolderStore(folder / "read"), folder / "crawl.warc.gz"
    crawl(path, 20_000_000)
    job = IngestJob((ArchiveFile.of(path),), (), no_rules())
    taken = []
    for number in range(3):
        plan = write_plan(store, f"20260101T00000{number}Z-read", job, 1 << 30)
        began = time.perf_counter()
        parts.read_part(store, plan, 0, folder / f"part-{number}")
        taken.append(time.perf_counter() - began)
        store.remove(*store.keys(plan.key("")))
    return statistics.median(taken) / 20


def simulate(times: Sequence[float], workers: int) -> float:
    """Return the seconds until the last worker is done, if each takes the next chunk when free."""
    free = [_START] * workers
    for seconds in times:
        heapq.heappush(free, heapq.heappop(free) + seconds)
    return max(free)


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=512)
    parser.add_argument("--wait", type=float, default=0.02, help="seconds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        rate = seconds_of_megabyte(folder)
        draw = random.Random(1)
        times = [
            rate * _MEGABYTES * draw.uniform(2 / 3, 4 / 3) + _REQUESTS * arguments.wait
            for _ in range(arguments.chunks)
        ]
        reading = sum(times) - _REQUESTS * arguments.wait * len(times)
        print("| workers | chunks of 1 GB | hours | efficiency |\n|---|---|---|---|")
        for workers in (1, arguments.workers // 8, arguments.workers):
            last = simulate(times, workers)
            print(
                f"| {workers} | {len(times):,} | {last / 3600:,.2f} "
                f"| {reading / workers / last:.1%} |"
            )
        print(f"\nA megabyte took {1000 * rate:.1f} ms.")
        for chunks in (arguments.chunks // 10, arguments.chunks):
            seconds = measure(folder / str(chunks), chunks, arguments.wait)
            print(f"A commit of {chunks:,} parts took {seconds:,.1f} s.", flush=True)


if __name__ == "__main__":
    main()
