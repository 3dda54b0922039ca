"""Speed and memory of an ingest of ReDIF, compared with reading the lines.

    python -m bench.ingest_redif [--templates 20000] [--jobs 2] [--folder /tmp]

The papers are those of bench.redif: 1.4 KB each, half of them one a file and half 500 a file, in
series of a thousand. Each figure of `sheaf ingest` is of processes of their own: seconds by the
clock, those of processors, and the most memory that all of them together have had, looked at five
times a second. The first ingest stores all of it; the second finds nothing new; before the third
one template in a hundred was changed.
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.redif import paper
from builder.sources.redif.tree import tree_members

_SERIES = 1000  # templates
_TOGETHER = 500
_PAUSE = 0.2


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock, those of processors, and megabytes."""

    wall: float
    cpu: float
    peak: float


def _handled(number: int, draw: random.Random, changed: bool) -> bytes:
    own = f"RePEc:aaa:s{number // _SERIES:05}:{number}".encode()
    text = paper(number, draw).replace(f"RePEc:aaa:wpaper:{number}".encode(), own)
    return text.replace(b"Title: ", b"Title: New ") if changed else text


def _files(count: int, share: int | None) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the tree; of each `share` templates one is changed."""
    yield (
        "aaaarch.rdf",
        (
            b"Template-Type: ReDIF-Archive 1.0\nName: A\nMaintainer-Email: a@example.org\n"
            b"URL: http://example.org/\nHandle: RePEc:aaa\n"
        ),
    )
    yield (
        "aaaseri.rdf",
        b"\n".join(
            f"Template-Type: ReDIF-Series 1.0\nName: Series {n}\nProvider-Name: P\n"
            f"Maintainer-Email: a@example.org\nHandle: RePEc:aaa:s{n:05}\n".encode()
            for n in range(-(-count // _SERIES))
        ),
    )
    draw = random.Random(1)
    held: list[bytes] = []
    for number in range(count):
        text = _handled(number, draw, bool(share) and number % (share or 1) == 0)
        series = f"s{number // _SERIES:05}"
        if number % _SERIES < _SERIES - _TOGETHER:
            yield f"{series}/{number}.rdf", text
            continue
        held.append(text)
        if len(held) == _TOGETHER or number == count - 1:
            yield f"{series}/all.rdf", b"".join(held)
            held = []


def _tree(folder: Path, count: int, share: int | None = None) -> None:
    made: set[Path] = set()
    for name, data in _files(count, share):
        path = folder / "RePEc" / "aaa" / name
        if path.parent not in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.add(path.parent)
        if share is None or path.read_bytes() != data:
            path.write_bytes(data)


def _lines(folder: Path) -> int:
    found = 0
    for member in tree_members(folder):
        with member.opened() as file:  # type: ignore[union-attr]
            for line in file:
                found += line.decode("latin-1").rstrip()[:14].lower() == "template-type:"
    return found


def _resident(number: int) -> float:
    """Return the megabytes of a process and of those it began."""
    try:
        status = Path(f"/proc/{number}/statm").read_text().split()
        own = int(status[1]) * resource.getpagesize() / 1e6
        below = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except (OSError, IndexError):
        return 0.0
    return own + sum(_resident(int(child)) for child in below)


def _ingested(folder: Path, jobs: int) -> Cost:
    line = [sys.executable, "-m", "builder", "ingest", "--jobs", str(jobs), str(folder / "RePEc")]
    (folder / "sheaf.toml").touch()
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    peak = 0.0
    with subprocess.Popen(
        [*line, "--config", str(folder / "sheaf.toml")], stdout=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None:
            peak = max(peak, _resident(process.pid))
            time.sleep(_PAUSE)
        told = process.stdout.read() if process.stdout else ""
    print("\n".join(f"    {one}" for one in told.splitlines()[:2]), file=sys.stderr)
    assert process.returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.monotonic() - begun, cpu, peak)


def _row(what: str, count: int, cost: Cost) -> None:
    print(
        f"| {what} | {cost.wall:,.1f} | {cost.cpu:,.1f} | {count / cost.wall:,.0f} | "
        f"{cost.peak:,.0f} |",
        flush=True,
    )


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--templates", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    count = arguments.templates
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        _tree(folder, count)
        begun, cpu = time.monotonic(), time.process_time()
        assert _lines(folder / "RePEc") >= count
        lines = Cost(time.monotonic() - begun, time.process_time() - cpu, 0)
        print("| what | s | processor s | templates/s | MB at most |\n|---|---|---|---|---|")
        _row("lines alone", count, lines)
        _row("ingest, all new", count, _ingested(folder, arguments.jobs))
        _row("again, nothing new", count, _ingested(folder, arguments.jobs))
        _tree(folder, count, 100)
        _row("1 in 100 changed", count, _ingested(folder, arguments.jobs))


if __name__ == "__main__":
    main()
