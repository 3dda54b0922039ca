"""Sheaf's own endpoint, harvested while it publishes, and published again by another archive."""

import json
import subprocess
import sys
import threading
from pathlib import Path

from ..clock import CLOCK
from ..whole.conftest import Home, make_home, sheaf, warc
from .kept import kept

ROOT = Path(__file__).parents[2]
QUICK = ("--rest", "0.1", "--overlap", "10", "--json")


def listed(home: Home) -> dict[str, bool]:
    out = home("query", "--json", "SELECT identifier, deleted FROM records").out
    return {row["identifier"]: row["deleted"] for row in map(json.loads, out.splitlines())}


def published(home: Home, number: int) -> list[int]:
    """Publish some captures, half of which were not there before; return the exit codes."""
    pages = {f"http://a.cz/{n}": b"<title>A</title>" for n in range(number * 5, number * 5 + 10)}
    archive = warc(home.folder / f"{number}.warc.gz", pages, f"2007-11-0{number + 1}T12:00:00Z")
    return [
        subprocess.run(
            [sys.executable, "-m", "builder", *arguments, "--config", home.config],
            cwd=ROOT, capture_output=True, check=False,
        ).returncode
        for arguments in (["ingest", str(archive)], ["publish"])
    ]  # fmt: skip


def test_what_is_published_meanwhile_is_had_and_can_be_published_again(
    home: Home, tmp_path: Path
) -> None:
    codes = published(home, 0)
    harvests = tmp_path / "harvests"
    with CLOCK.real(), home.served(SHEAF_PAGES_RECORDS="3") as base:
        publisher = threading.Thread(
            target=lambda: codes.extend(code for n in (1, 2) for code in published(home, n))
        )
        publisher.start()
        while publisher.is_alive():
            assert sheaf("harvest", base, harvests, *QUICK).code == 0
        assert codes == [0] * 6
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
