"""A site of many records in four formats: its export, and what a publish of a few changes writes.

    python -m bench.site [--records 1000000] [--changed 100] [--folder FOLDER]

Generated captures without sets are published. Each export is the command, in a process of its own.
The baseline is the full export. A second one is killed after half of its time and begun again; it
must give the same files. Then records change in one place of the list, and as many all over it.
"""

import argparse
import filecmp
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bench import change
from bench.generate import captures, fill
from bench.server import CONFIGURATION
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.oai.format import TEMPLATES
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import RecordSelection
from functions.snapshot.manifest import Span

_FORMAT = """[[format]]
prefix = "brief"
schema = "http://www.loc.gov/standards/mods/v3/mods-3-8.xsd"
namespace = "http://www.loc.gov/mods/v3"
crosswalks = { capture = "brief.xml" }
"""


@dataclass(frozen=True, slots=True)
class Export:
    """What an export took: seconds by the wall and of CPU, megabytes at most; what it wrote."""

    wall: float
    cpu: float
    memory: float
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class SiteBench:
    """A store, the folder of its site, and how many captures were made for it."""

    folder: Path
    count: int

    def publish(self, numbers: Sequence[int] = (), title: str = "") -> None:
        """Publish other titles of captures, or all that are generated, with a fourth format."""
        store = FolderStore(self.folder / "store")
        if not numbers:
            (self.folder / "run").mkdir()
            fill(store, self.count, self.folder / "run", has_sets=False)
            formats = self.folder / "formats/crosswalks"
            formats.mkdir(parents=True)
            shutil.copy(TEMPLATES / "crosswalks/capture-mods.xml", formats / "brief.xml")
            (formats.parent / "formats.toml").write_text(_FORMAT)
            more = f"[formats]\ntemplates = '{formats.parent}'\n[site]\npages = 0\n"
            (self.folder / "sheaf.toml").write_text(CONFIGURATION + more)
        else:
            some = captures(self.count, numbers=numbers)
            changed = (replace(capture, title=title, sets=()) for capture in some)
            change.fill(store, f"change-{numbers[0]}", changed)
        runtime = Runtime(lambda: datetime.now(UTC), time.sleep, lambda text: None, {})
        publish(store, configuration.parse(CONFIGURATION, {}), runtime)

    def export(self, name: str, kill_after: float | None = None) -> Export | None:
        """Export the site into a folder; None if it was killed."""
        line = [sys.executable, "-m", "builder", "--config", str(self.folder / "sheaf.toml")]
        line += ["--store", str(self.folder / "store"), "--json"]
        line += ["export", "site", str(self.folder / name)]
        began = time.monotonic()
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(process.pid, signal.SIGKILL)  # even where it has ended
        assert process.stdout is not None
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if kill_after is not None:
            return None
        assert process.returncode == 0
        result, wall = json.loads(text), time.monotonic() - began
        cpu = usage.ru_utime + usage.ru_stime
        return Export(wall, cpu, usage.ru_maxrss / 1024, result["files"], result["bytes"])

    def place(self, changed: int) -> Sequence[int]:
        """Return the numbers of captures that follow each other in the middle of the list."""
        with closing(DuckRepository(FolderStore(self.folder / "store"))) as repository:
            newest = repository.pointer().newest()
            assert newest is not None
            manifest = repository.manifest(newest.snapshot)
            span = Span(self.count // 2, manifest.last_position)
            selection = RecordSelection(("capture",), span)
            page = repository.page(manifest, selection, changed, headers=False)
            return [int(str(r.fields["url"]).rpartition("/")[2].partition(".")[0]) for r in page]

    def work(self, *values: object) -> None:
        """Do `publish` in a process of its own: what it begins starts with its memory."""
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.apply(self.publish, values)


def _compare(whole: Path, resumed: Path) -> int:
    """Return how many files differ or are only in one of two folders."""
    sides = [
        {p.relative_to(root) for p in root.rglob("*") if p.is_file()} for root in (whole, resumed)
    ]
    _, different, failed = filecmp.cmpfiles(whole, resumed, sides[0] & sides[1], shallow=False)
    return len(sides[0] ^ sides[1]) + len(different) + len(failed)


def run(folder: Path, count: int, changed: int) -> None:
    """Export, kill, change, and print the table."""
    bench = SiteBench(folder, count)
    bench.work()
    full = bench.export("site")
    assert full is not None
    print(f"\n{count:,} records, 4 formats\n")
    print("| export | s | CPU s | MB at most | files | MB written | to the full one |")
    print("|---|---|---|---|---|---|---|")

    def row(name: str, cost: Export | None) -> None:
        assert cost is not None
        print(
            f"| {name} | {cost.wall:.1f} | {cost.cpu:.1f} | {cost.memory:,.0f} | {cost.files:,} "
            f"| {cost.size / 1e6:,.1f} | {cost.size / full.size:.1%} |",
            flush=True,
        )

    row("full (baseline)", full)
    bench.export("other", kill_after=full.wall / 2)
    row("after a kill half-way", bench.export("other"))
    print(f"\nFiles that differ after the kill: {_compare(folder / 'site', folder / 'other')}\n")
    shutil.rmtree(folder / "other")
    bench.work(bench.place(changed), "Changed in one place")
    row(f"{changed} changed in one place", bench.export("site"))
    bench.work(range(7, count, count // changed), "Changed all over")
    row(f"{changed} changed all over", bench.export("site"))


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--changed", type=int, default=100)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        run(Path(name), arguments.records, arguments.changed)


if __name__ == "__main__":
    main()
