"""What engines cost beside one process: their start, milliseconds a chunk, and two workers.

    python -m bench.machines.engines [--engine local dask spark lambda] [--chunks 200] [--mb 1000]
        [--scheduler ARN --bucket s3://BUCKET/PREFIX --store s3://BUCKET/PREFIX]

First, files of one size are read one a chunk by one worker of each engine: all of them, and a tenth
of them. The difference gives the time of a chunk, and the rest is the start, with the commit. The
baseline is `sheaf ingest` of the same files by one process. Lambda reads copies in `--bucket` by
the machine `--scheduler` into its `--store`, and its baseline reads them there as well.

Then a crawl of `--mb` megabytes is read by one worker and by two. What two can gain on the machine
is shown by two processes at once, each of which ingests half of the files on its own.

Each figure is of the command, start and commit included. CPU seconds, which a busy machine changes
less, are of all processes but those of Lambda. The ways take turns, and medians of three
are shown. Dask and Spark are found in PYTHONPATH; `make prove-engines` puts them into .engines.
"""

import argparse
import ctypes
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import boto3

from bench.ingest import crawl

_RUNS = 3
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux
_SIZE = 600_000  # bytes of a file that is a chunk of its own, being over half of one
_FILES = 8
_CONFIGURATION = '[repository]\nnamespace = "bench.example.org"\n'
_ROOT = Path(__file__).parents[2]

Way = Sequence[Sequence[str]]
"""The arguments of each `sheaf ingest` that runs at the same time."""


def ingest(folder: Path, way: Way) -> tuple[float, float]:
    """Run the commands at once, each into a new store; return their seconds and CPU seconds."""
    path = [str(_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(Path(one).absolute()) for one in path),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed Sheaf is compiled once
    homes = [folder / f"home-{number}" for number in range(len(way))]
    for home in homes:
        home.mkdir()
        (home / "sheaf.toml").write_text(_CONFIGURATION)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "builder", "ingest", *arguments],
            cwd=home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        for arguments, home in zip(way, homes, strict=True)
    ]
    codes = [process.wait() for process in running]
    seconds = time.perf_counter() - began
    with suppress(ChildProcessError):  # what the commands left: Spark ends after its driver
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for home in homes:
        shutil.rmtree(home)
    if any(codes):
        raise SystemExit(f"sheaf ingest {way} ended with {codes}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used


def compare(folder: Path, ways: Mapping[str, Way]) -> dict[str, tuple[float, float]]:
    """Ingest in each way in turn; return the medians of the seconds and the CPU seconds."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(_RUNS):
        for name, way in ways.items():
            taken[name].append(ingest(folder, way))
    return {
        name: (statistics.median(s for s, _ in some), statistics.median(c for _, c in some))
        for name, some in taken.items()
    }


def upload(folder: Path, address: str) -> str:
    """Copy the files of a folder to an address in a bucket; return that of the copies."""
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    client = boto3.client("s3")
    for path in sorted(folder.iterdir()):
        client.upload_file(str(path), bucket, f"{prefix}/{folder.name}/{path.name}")
    return f"{address}/{folder.name}"


def chunk_ways(folder: Path, arguments: argparse.Namespace) -> dict[str, Way]:
    """Return the ways to read the files of a folder, one a chunk, with one worker."""
    one = ("--jobs", "1")
    ways: dict[str, Way] = {"one process": [(str(folder), *one)]}
    for engine in arguments.engine:
        named = ("--engine", engine, "--chunk", "1")
        if engine != "lambda":
            ways[engine] = [(str(folder), *named, *one)]
            continue
        copies, store = upload(folder, arguments.bucket), arguments.store
        ways["one process, bucket"] = [(copies, *one, "--store", f"{store}-plain")]
        machine = ("--scheduler", arguments.scheduler, "--store", store)
        ways["lambda"] = [(copies, *named, *machine)]
    return ways


def adopt_orphans() -> None:
    """Become the parent of processes that outlive theirs, whose CPU seconds count as well."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)


def measure_chunks(folder: Path, arguments: argparse.Namespace) -> None:
    """Print what a chunk costs by each engine."""
    counts = (max(arguments.chunks // 10, 1), arguments.chunks)
    ways: dict[str, Way] = {}
    for count in counts:
        files = folder / f"chunks-{count}"
        files.mkdir()
        for number in range(count):
            crawl(files / f"{number:06}.warc.gz", _SIZE)
        ways |= {f"{name} {count}": way for name, way in chunk_ways(files, arguments).items()}
    found = compare(folder, ways)
    few, all_ = (
        {
            name.rpartition(" ")[0]: told
            for name, told in found.items()
            if name.endswith(f" {count}")
        }
        for count in counts
    )
    print(f"{counts[1]} chunks, each a file of {_SIZE / 1e6:.1f} MB, read by one worker\n")
    print("| read by | seconds | start | ms a chunk | start, CPU s | CPU ms a chunk | times |")
    print("|---|---|---|---|---|---|---|")
    each = {
        name: [
            (a - b) / (counts[1] - counts[0]) for a, b in zip(all_[name], few[name], strict=True)
        ]
        for name in all_
    }
    for name, whole in all_.items():
        wall, cpu = (1000 * value for value in each[name])
        start, used = (t - a * counts[1] for t, a in zip(whole, each[name], strict=True))
        if name == "lambda":  # whose processes are elsewhere
            times, told = wall / 1000 / each["one process, bucket"][0], " | "
        else:
            times, told = cpu / 1000 / each["one process"][1], f"{used:.2f} | {cpu:.1f}"
        print(f"| {name} | {whole[0]:.2f} | {start:.2f} | {wall:.1f} | {told} | {times:.2f} |")


def measure_workers(folder: Path, arguments: argparse.Namespace) -> None:
    """Print what a second worker gains."""
    large = folder / "large"
    large.mkdir()
    files = [str(large / f"{number}.warc.gz") for number in range(_FILES)]
    crawl(Path(files[0]), arguments.mb * 1_000_000 // _FILES)
    for path in files[1:]:
        shutil.copyfile(files[0], path)
    one = ("--jobs", "1")
    ways: dict[str, Way] = {
        "one process": [(*files, *one)],
        "two processes, half each": [(*files[::2], *one), (*files[1::2], *one)],
        "one process, --jobs 2": [(*files, "--jobs", "2")],
    }
    for engine in (engine for engine in arguments.engine if engine != "lambda"):
        for jobs in ("1", "2"):
            named = ("--engine", engine, "--jobs", jobs, "--chunk", "64")
            ways[f"{engine}, {jobs}"] = [(*files, *named)]
    found = compare(folder, ways)
    print(f"\n{arguments.mb} MB in {_FILES} files, chunks of 64 MB\n")
    print("| read by | seconds | MB/s | CPU s | times one worker |\n|---|---|---|---|---|")
    for name, (seconds, used) in found.items():
        engine = name.partition(",")[0]
        base = found.get(f"{engine}, 1", found["one process"])[0]
        print(
            f"| {name} | {seconds:.2f} | {arguments.mb / seconds:.0f} | {used:.1f} "
            f"| {base / seconds:.2f} |"
        )


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engine", nargs="+", default=["local"])
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--mb", type=int, default=1000, help="0: chunks only")
    parser.add_argument("--scheduler", help="with lambda: ARN of the machine")
    parser.add_argument("--bucket", help="with lambda: where the copies of the files go")
    parser.add_argument("--store", help="with lambda: the store of the machine")
    arguments = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.chunks:
            measure_chunks(Path(scratch), arguments)
        if arguments.mb:
            measure_workers(Path(scratch), arguments)


if __name__ == "__main__":
    main()
