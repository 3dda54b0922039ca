"""Sheaf's own endpoint, harvested while it publishes, and published again by another archive."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builder.sources.harvest.kept import kept
from tests.clock import CLOCK
from tests.e2e.conftest import Home, make_home, sheaf, warc

ROOT = Path(__file__).parents[4]
QUICK = ("--overlap", "10", "--json")


def listed(home: Home) -> dict[str, bool]:
    out = home("query", "--json", "SELECT identifier, deleted FROM records").out
    return {row["identifier"]: row["deleted"] for row in map(json.loads, out.splitlines())}


def archive(home: Home, number: int) -> Path:
    """Return an archive of some captures, half of which the one before it has, too."""
    pages = {f"http://a.cz/{n}": b"<title>A</title>" for n in range(number * 5, number * 5 + 10)}
    return warc(home.folder / f"{number}.warc.gz", pages, f"2007-11-0{number + 1}T12:00:00Z")


PUBLISHER = """
import sys

from builder.commands.cli import main
for path in sys.argv[2:]:
    for arguments in (["ingest", path], ["publish"]):
        assert main([*arguments, "--config", sys.argv[1]]) == 0
"""


def publisher(home: Home, *numbers: int) -> "subprocess.Popen[bytes]":
    """Begin to publish archives, one after the other."""
    given = [home.config, *(archive(home, number) for number in numbers)]
    return subprocess.Popen(
        [sys.executable, "-c", PUBLISHER, *given],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.thorough
def test_what_is_published_meanwhile_is_had_and_can_be_published_again(
    home: Home, tmp_path: Path
) -> None:
    # What comes too late takes effect later, which is as good here.
    home.config.write_text(home.config.read_text().replace("lead = 5", "lead = 1"))
    assert home("ingest", archive(home, 0)).code == 0
    assert home("publish").code == 0
    harvests = tmp_path / "harvests"
    with CLOCK.real(), home.served(SHEAF_PAGES_RECORDS="3") as base:
        with publisher(home, 1, 2) as process:
            while process.poll() is None:
                assert sheaf("harvest", base, harvests, *QUICK).code == 0
            assert process.returncode == 0
        (gone, *_) = listed(home)
        assert home("withdraw", "--identifier", gone, "--reason", "asked for").code == 0
        done = sheaf("harvest", base, harvests, *QUICK)
        assert done.code == 0, done.err
        assert sheaf("harvest", base, harvests, *QUICK).json[0]["new"] == 0
    found = kept(harvests)
    assert found.doubled == []
    assert {row.identifier: row.deleted for row in found.rows} == listed(home)

    other = make_home(tmp_path / "other")
    other.config.write_text(other.config.read_text().replace('"b.cz"', '"c.cz"'))
    assert other("ingest", harvests).code == 0
    assert other("publish").code == 0
    assert other("verify").code == 0
    assert listed(other) == listed(home)
