"""Every bench runs to its end, at a size at which its figures say nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.harvest import published

ROOT = Path(__file__).parents[1]
BENCHES = {
    # module: its arguments, of which FOLDER is an empty folder and STORE a published store
    "ceiling": "RatePerSecond=2",
    "change": "--captures 2000 --small 2",
    "client": "--help",
    "cold": "--captures 13000 --runs 1",
    "cold.latency": "--help",
    "cold.proofs": "--captures 2000 --bundles 2",
    "cold.reads": "--captures 2000 --wait 0",
    "cold.runs": "--runs 3 --wait 0 --rounds 1",
    "cold.scale": "--captures 4000 --folder FOLDER",
    "cold.search": "--captures 2000 --runs 1 --folder FOLDER",
    "cold.templates": "--templates 100",
    "fileset": "--mb 1 --gigabytes 0.01 --rounds 1",
    "gather.one_file": "FOLDER --files 50 --calls 1",
    "harvest": "--captures 6000 --baseline 3000 --runs 1",
    "harvester": "--captures 2000 --runs 1",
    "house": "",
    "index": "--lines 2000 --rounds 1",
    "ingest": "--mb 1 --rounds 1",
    "ingest_redif": "--templates 100",
    "lookup": "--captures 500 --requests 2 --rounds 1",
    "machines.commit": "--chunks 20 --workers 8 --wait 0",
    "machines.crowd": "--captures 5000 --seconds 1 --harvesters 2",
    "machines.engines": "--chunks 2 --mb 1",
    "machines.static": "--records 3000 --seconds 1",
    "machines.template_pages": "STORE --runs 1",
    "pages": "--captures 3000 --runs 2 --page 100",
    "publish": "--captures 2000 --runs 1",
    "records": "--records 300 --changed 3",
    "redif": "--templates 100 --rounds 1",
    "resume": "--mb 2 --files 2 --rounds 1",
    "site": "--records 500 --folder FOLDER",
    "walks": "",
    "workers": "--captures 3000 --pages 3 --runs 1 --clients 2",
    "zstd": "--mb 1 --rounds 1",
}
"""By what it measures: one that serves another is only asked for its help."""
_MAIN = 'if __name__ == "__main__"'


def test_every_bench_is_run() -> None:
    paths = [p for p in (ROOT / "bench").rglob("*.py") if _MAIN in p.read_text("utf-8")]
    names = {".".join(path.relative_to(ROOT / "bench").with_suffix("").parts) for path in paths}
    assert {name.removesuffix(".__main__") for name in names} - {"cold.invoke"} == BENCHES.keys()


@pytest.mark.sampled(15)
@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_runs_to_its_end(name: str, tmp_path: Path) -> None:
    store = published(tmp_path, 2000) if "STORE" in BENCHES[name] else tmp_path
    places = {"FOLDER": str(tmp_path), "STORE": str(store)}
    arguments = [places.get(word, word) for word in BENCHES[name].split()]
    command = [sys.executable, "-m", f"bench.{name}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() or "SKIPPED" in done.stderr
