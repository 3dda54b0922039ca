"""Cost of publishing templates: the first time, with nothing new, and after a change of one in 100.

    python -m bench.cold.templates [--templates 20000] [--memory 512] [--baseline CHECKOUT]

The templates are those of bench.ingest_redif. Each publish is a process of its own; the system
measures its seconds, those of processors, and its peak of memory. A checkout of an earlier state
ingests and publishes the same templates with its own code.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.ingest_redif import _tree

_CONFIGURATION = '[repository]\nnamespace = "bench.example.org"\n[publish]\nmemory = {}\nlead = 1\n'
_HERE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Measured:
    """Seconds by the clock, those of processors, and megabytes at most."""

    wall: float
    cpu: float
    memory: float


def sheaf(code: Path, store: Path, *arguments: str) -> Measured:
    """Execute a command of the code in a folder, and measure it."""
    line = [sys.executable, "-m", "builder", *arguments, "--config", str(store / "sheaf.toml")]
    begun = time.monotonic()
    process = subprocess.Popen(line, cwd=code, stdout=subprocess.PIPE, text=True)
    told = process.stdout.read() if process.stdout else ""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, told
    print(f"    {told.splitlines()[0] if told else ''}", file=sys.stderr)
    cpu = used.ru_utime + used.ru_stime
    return Measured(time.monotonic() - begun, cpu, used.ru_maxrss / 1e3)


def measure(code: Path, folder: Path, count: int, memory: int) -> dict[str, Measured]:
    """Ingest and publish with the code in a folder."""
    folder.mkdir()
    (folder / "sheaf.toml").write_text(_CONFIGURATION.format(memory))
    found = {}
    _tree(folder, count)
    sheaf(code, folder, "ingest", str(folder / "RePEc"))
    found["first publish"] = sheaf(code, folder, "publish")
    found["nothing new"] = sheaf(code, folder, "publish")
    _tree(folder, count, 100)
    sheaf(code, folder, "ingest", str(folder / "RePEc"))
    found["1 in 100 changed"] = sheaf(code, folder, "publish")
    return found


def show(codes: Sequence[str], found: Sequence[dict[str, Measured]]) -> None:
    """Print a table with the figures of each code side by side."""
    print("| publish |" + "".join(f" {code}: s | CPU s | MB |" for code in codes))
    print("|---|" + "---|---|---|" * len(codes))
    for what in found[0]:
        figures = (one[what] for one in found)
        print(
            f"| {what} |"
            + "".join(f" {f.wall:.1f} | {f.cpu:.1f} | {f.memory:,.0f} |" for f in figures)
        )


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--templates", type=int, default=20_000)
    parser.add_argument("--memory", type=int, default=512, help="publish.memory, megabytes")
    parser.add_argument("--baseline", type=Path, help="a checkout of an earlier state")
    parser.add_argument("--folder", type=Path, help="where to work")
    arguments = parser.parse_args()
    codes = {"now": _HERE} | ({"baseline": arguments.baseline} if arguments.baseline else {})
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        found = [
            measure(code.resolve(), Path(name) / what, arguments.templates, arguments.memory)
            for what, code in codes.items()
        ]
    show(list(codes), found)


if __name__ == "__main__":
    main()
