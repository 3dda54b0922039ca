"""A harvest from data files beside one by pages: seconds, and CPU of all processes.

    python -m bench.machines.files [--captures N] [--format FORM] [--runs N]

Needs nginx (Debian: nginx-light), which gives the data files. All processes share the machine, so
compare ratios. Beside other work only those of CPU mean something.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.harvest import published
from bench.server import Server, nginx, sheaf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--format", default="parquet")
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    if shutil.which("nginx") is None:
        sys.exit("nginx is not installed: apt-get install nginx-light")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = published(folder, arguments.captures)
        print("| By | Seconds | Records/s | CPU s of the harvester | of the server |")
        print("|---|---|---|---|---|", flush=True)
        with (
            nginx(store, folder) as url,
            sheaf(store, folder, SHEAF_IDENTIFY_DATA_URL=url) as server,
        ):
            for _ in range(arguments.runs):
                for by in ("pages", "files"):
                    measure(server, by, folder / "out", arguments.format)


def measure(server: Server, by: str, folder: Path, form: str) -> None:
    """Harvest everything, and print a row."""
    command = [sys.executable, "-m", "builder", "harvest", server.url, str(folder), "--json"]
    before, own, start = _children_cpu(), server.cpu(), time.perf_counter()
    done = subprocess.run(
        [*command, "--by", by, "--format", form], check=True, stdout=subprocess.PIPE, text=True
    )
    seconds = time.perf_counter() - start
    (report,) = json.loads(done.stdout)
    assert (report["pages"] > 0) == (by == "pages"), report["notes"]
    shutil.rmtree(folder)
    print(
        f"| {by} | {seconds:.1f} | {report['records'] / seconds:,.0f} | "
        f"{_children_cpu() - before:.1f} | {server.cpu() - own:.1f} |",
        flush=True,
    )


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
