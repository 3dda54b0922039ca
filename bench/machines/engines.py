"""What engines cost beside one process: seconds a chunk, and two workers beside one.

    python -m bench.machines.engines [--mb 1000] [--chunks 200] [--engines local]

First, as many files of one capture as there are chunks are read one a chunk, by each engine with
two workers; the seconds beyond an ingest of the same files by one process are the overhead. Then a
crawl of `--mb` megabytes is read by one worker and by two, in turn. Each figure is of the command
`sheaf ingest`, start and commit included. The medians of three are shown.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.ingest import crawl

_RUNS = 3
_CONFIGURATION = '[repository]\nnamespace = "bench.example.org"\n'


def ingest(folder: Path, *arguments: str) -> float:
    """Ingest into a new store, and return the seconds."""
    home = folder / "home"
    home.mkdir()
    (home / "sheaf.toml").write_text(_CONFIGURATION)
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "builder", "ingest", *arguments],
        check=True, cwd=home, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    seconds = time.perf_counter() - began
    shutil.rmtree(home)
    return seconds


def compare(folder: Path, rows: dict[str, tuple[str, ...]]) -> dict[str, float]:
    """Ingest in each way in turn, and return the median seconds of each."""
    taken: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(_RUNS):
        for name, arguments in rows.items():
            taken[name].append(ingest(folder, *arguments))
    return {name: statistics.median(values) for name, values in taken.items()}


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--engines", nargs="+", default=["local"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        small, large = folder / "small", folder / "large"
        small.mkdir()
        large.mkdir()
        # Files of over half a chunk are each read as a chunk of their own.
        for number in range(arguments.chunks):
            crawl(small / f"{number:06}.warc.gz", 600_000)
        rows: dict[str, tuple[str, ...]] = {"one process": (str(small), "--jobs", "1")}
        for engine in arguments.engines:
            rows[engine] = (str(small), "--engine", engine, "--jobs", "2", "--chunk", "1")
            rows[f"{engine}, one worker"] = (*rows[engine][:4], "1", "--chunk", "1")
        found = compare(folder, rows)
        print(f"{arguments.chunks} chunks of a file of 0.6 MB\n")
        print("| read by | seconds | ms a chunk |\n|---|---|---|")
        for name, seconds in found.items():
            print(f"| {name} | {seconds:.2f} | {1000 * seconds / arguments.chunks:.1f} |")
        shutil.rmtree(small)
        for number in range(8):
            crawl(large / f"{number}.warc.gz", arguments.mb * 1_000_000 // 8)
        rows = {}
        for engine in arguments.engines:
            for workers in ("1", "2"):
                rows[f"{engine}, {workers}"] = (
                    *(str(large), "--engine", engine, "--jobs", workers, "--chunk", "64"),
                )
        found = compare(folder, rows)
        print(f"\n{arguments.mb} MB in 8 files, chunks of 64 MB\n")
        print("| engine, workers | seconds | MB/s | to one worker |\n|---|---|---|---|")
        for name, seconds in found.items():
            one = found[f"{name.partition(',')[0]}, 1"]
            print(
                f"| {name} | {seconds:.2f} | {arguments.mb / seconds:.0f} | {one / seconds:.2f} |"
            )


if __name__ == "__main__":
    main()
