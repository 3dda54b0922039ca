"""Files of earlier ingests: what is known is not read again, and everything else is."""

import os
from pathlib import Path

import pytest

from builder.sources.readings import NOTHING_NEW
from tests.e2e.conftest import Home, warc
from tests.e2e.test_commands import PAGES

FILES = 3
INFO = (
    b"WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Date: 2007-11-05T12:00:00Z\r\n"
    b"WARC-Record-ID: <urn:uuid:0c1b2c1e-1b0c-4c3a-9f53-3a1f4b7c9a10>\r\n"
    b"Content-Length: 0\r\n\r\n\r\n\r\n"
)


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    (tmp_path / "crawl").mkdir()
    for number in range(FILES):
        warc(tmp_path / "crawl" / f"{number}.warc.gz", PAGES)
    return tmp_path / "crawl"


def read(home: Home, *arguments: object) -> list[str]:
    """Return the names of the files that an ingest reads."""
    done = home("ingest", *arguments, "--json", "--jobs", "1")
    assert done.code == 0, done.err
    return [source["source"] for source in done.json.get("sources", ())]


@pytest.mark.parametrize("published", [True, False])
def test_a_folder_given_again_reads_what_is_new(home: Home, crawl: Path, published: bool) -> None:
    assert len(read(home, crawl)) == FILES
    if published:
        assert home("publish").code == 0
    assert home("ingest", crawl).out == f"{NOTHING_NEW}\n"
    warc(crawl / "new.warc.gz", PAGES)
    done = home("ingest", crawl)
    assert done.err.startswith("already ingested: 3 of 4 files (--again reads them)\n")
    assert done.out.startswith("3 captures from 1 file")
    moved = crawl.rename(crawl.with_name("moved"))
    assert len(read(home, moved)) == FILES + 1  # where their content is now
    assert read(home, moved) == []
    assert len(read(home, moved, "--again")) == FILES + 1


def test_what_differs_is_read_again(home: Home, crawl: Path) -> None:
    read(home, crawl)
    os.utime(crawl / "0.warc.gz", (1, 1))
    with (crawl / "1.warc.gz").open("ab") as file:
        file.write((crawl / "0.warc.gz").read_bytes())
    assert read(home, crawl) == ["0.warc.gz", "1.warc.gz"]
    assert len(read(home, crawl, "--collection", "news")) == FILES
    assert read(home, crawl, "--collection", "news") == []
    settings = home.config.read_text()
    home.config.write_text(settings.replace("[documents]\n", "[documents]\ntitles = false\n"))
    assert len(read(home, crawl)) == FILES


def test_what_failed_is_read_again_and_what_has_no_captures_is_not(home: Home, crawl: Path) -> None:
    (crawl / "info.warc").write_bytes(INFO)
    (crawl / "notes.txt").write_text("none")
    (crawl / "empty.warc.gz").write_bytes(b"")
    done = home("ingest", crawl, "--jobs", "1", "--json")
    assert len(done.json["sources"]) == FILES + 3
    again = home("ingest", crawl, "--jobs", "1", "--json")
    assert [one["source"] for one in again.json["sources"]] == ["empty.warc.gz"]


def test_a_plan_leaves_out_what_is_known(home: Home, crawl: Path) -> None:
    read(home, crawl / "0.warc.gz")
    assert home("ingest", "plan", crawl, "--json").json["files"] == FILES - 1
    done = home("ingest", crawl, "--engine", "local", "--jobs", "1")
    assert done.out.startswith(f"{3 * (FILES - 1)} captures from {FILES - 1} files")
    for arguments in (("plan", crawl), (crawl, "--engine", "local")):
        ended = home("ingest", *arguments)
        assert (ended.code, ended.out) == (0, f"{NOTHING_NEW}\n")
