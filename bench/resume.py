"""Measure the command: ranges and files side by side, and an ingest that is killed and goes on.

    python -m bench.resume [--mb 100] [--files 8] [--rounds 5]

Each figure is of `sheaf ingest` as a process, the start of Python and of its workers and the
commit into a store included, over generated archives (see bench.ingest). The baseline is one job.
Wall time tells how far two processes go only on a machine that does nothing else, so the share of
CPU time that a second process costs in addition is printed beside it: without it, two would be
twice as fast as one. "killed": SIGKILL after half the time of an undisturbed ingest, then the same
command again; what is read twice would show in the sum of both.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.ingest import crawl


@dataclass(frozen=True, slots=True)
class Spent:
    """What a command took: seconds by the wall and of CPU, and its largest process's megabytes."""

    wall: float
    cpu: float
    memory: float


def command(store: Path, jobs: int, files: list[Path]) -> list[str]:
    """Return the command that ingests the files."""
    line = [sys.executable, "-m", "builder", "ingest", "--store", str(store)]
    return [*line, "--jobs", str(jobs), *map(str, files)]


def spent(line: list[str], kill_after: float | None = None) -> Spent:
    """Carry out a command, to be killed after so many seconds."""
    began = time.monotonic()
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if kill_after is not None:
        time.sleep(kill_after)
        process.send_signal(signal.SIGKILL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    cpu = usage.ru_utime + usage.ru_stime
    return Spent(time.monotonic() - began, cpu, usage.ru_maxrss / 1024)


def run(folder: Path, megabytes: int, count: int, rounds: int) -> None:
    """Measure each row `rounds` times, one after the other in each round, and print the table."""
    large = folder / "large.warc.gz"
    crawl(large, megabytes * 1_000_000)
    files = [folder / f"{number}.warc.gz" for number in range(count)]
    for file in files:
        crawl(file, megabytes * 1_000_000 // count)
    rows = {
        "one file, one job": ([large], 1),
        "one file in ranges, two jobs": ([large], 2),
        f"{count} files, one job": (files, 1),
        f"{count} files, two jobs": (files, 2),
    }
    found: dict[str, list[Spent]] = {name: [] for name in (*rows, "killed", "gone on with")}
    for number in range(rounds):
        for row, (name, (some, jobs)) in enumerate(rows.items()):
            found[name].append(spent(command(folder / f"{number}-{row}", jobs, some)))
        line = command(folder / f"{number}-killed", 1, [large])
        half = found["one file, one job"][-1].wall / 2
        found["killed"].append(spent(line, half))
        found["gone on with"].append(spent(line))
    size = sum(file.stat().st_size for file in [large, *files]) / 2e6
    print(f"\n{size:.0f} MB of gzip, medians of {rounds}\n")
    print("| what | wall s | CPU s | MB/s of CPU | peak MB of a process |")
    print("|---|---|---|---|---|")
    for name, runs in found.items():
        wall, cpu, memory = (
            statistics.median(getattr(run, part) for run in runs)
            for part in ("wall", "cpu", "memory")
        )
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {size / cpu:.0f} | {memory:.0f} |")
    for one, two in (list(rows)[:2], list(rows)[2:]):
        pairs = list(zip(found[one], found[two], strict=True))
        faster = statistics.median(a.wall / b.wall for a, b in pairs)
        bound = statistics.median(2 * a.cpu / b.cpu for a, b in pairs)
        print(f"\n{two}: {faster:.2f} times one by wall time; {bound:.2f} by CPU time.")


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), arguments.mb, arguments.files, arguments.rounds)


if __name__ == "__main__":
    main()
