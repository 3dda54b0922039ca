"""The memory of the whole process that archives datasets, from its start to its end."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.builder.sources.datasets.body import Body, Generated
from tests.builder.sources.datasets.command import Command
from tests.builder.sources.datasets.invenio import Site, reach
from tests.builder.sources.datasets.server import Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is told as Linux does")

_MB = 1_000_000
_MOST = 100 * _MB
# A process counts for its own what the one had that started it: so that one has to be small.
_RUNNER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=sys.stderr)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
"""


@dataclass
class Measured(Site):
    """The site, and the command in a folder of its own."""

    command: Command

    def peak(self, *arguments: str, bundle: str = "never") -> tuple[int, list[dict[str, Any]]]:
        """Run the command; return the most memory that it had, in bytes, and its results."""
        self.command.configure(fileset__strategy=f'{{ backend = "s3", bundle = "{bundle}" }}')
        done = subprocess.run(
            [sys.executable, "-S", "-c", _RUNNER, sys.executable, "-m", "builder", *arguments],
            cwd=self.command.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        code, most = map(int, done.stdout.split())
        assert code == 0, done.stderr
        lines = [line for line in done.stderr.splitlines() if line.startswith("{")]
        return most, [json.loads(line) for line in lines]


@pytest.fixture
def site(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Measured:
    return Measured(server, Command(server, tmp_path, capsys, reach(server)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("bodies", "bundle", "strategy"),
    [
        ({"large.bin": Generated(150 * _MB)}, "never", "s3-file"),
        ({f"{n}.bin": Generated(3 * _MB, n) for n in range(20)}, "always", "s3-fileset-bundled"),
        ({f"{n}.bin": Generated(3 * _MB, n) for n in range(20)}, "never", "s3-fileset"),
    ],
    ids=["large", "bundle", "files"],
)
def test_a_process_takes_less_than_100_mb_in_all(
    site: Measured, bodies: Mapping[str, Body], bundle: str, strategy: str
) -> None:
    url = site.record("hives-1", bodies)
    most, (result, *_) = site.peak("fileset", "--json", url, bundle=bundle)
    assert (result["hit"], result["ingest_strategy"]) == (True, strategy)
    assert list((site.command.folder / "store" / "intake").glob("*/filesets-1.jsonl.gz"))
    print(f"{strategy}: {most / _MB:.1f} MB")
    assert most < _MOST


def test_what_names_no_command_loads_none(site: Measured) -> None:
    most, _ = site.peak("--help")
    assert most < _MOST // 2
