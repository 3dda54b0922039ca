"""Files that should give captures and give none: told, counted, kept, and exit status 1."""

import io
import sys
from pathlib import Path

import pytest

from tests.builder.sources.webarchives.containers import warc as record
from tests.e2e.conftest import Home, warc
from tests.e2e.test_commands import PAGES


def _bad(folder: Path) -> dict[str, bytes]:
    """Write files of which a folder of archives expects captures that they do not give."""
    good = warc(folder / "good.warc.gz", PAGES).read_bytes()
    (folder / "good.warc.gz").unlink()
    return {
        "cut.warc.gz": good[:20],
        "empty.warc": b"",
        "lz4.warc.lz4": b"\x04\x22\x4d\x18" + good,
        "text.arc": b"no archive",
        "unnamed": b"WARC/1.0\r\nWARC-Type: resp",
        "zip.wacz": b"PK\x03\x04" + bytes(90),
        "zeros.cdxj": bytes(900),
    }


def test_archives_that_give_nothing_are_failures(home: Home, tmp_path: Path) -> None:
    """They are told in --json and by the exit status, and their faults are kept."""
    crawls = tmp_path / "crawls"
    crawls.mkdir()
    bad = _bad(crawls)
    for name, data in bad.items():
        (crawls / name).write_bytes(data)
    info = record(b"operator: one\r\n", kind=b"warcinfo", url=None)
    (crawls / "only-warcinfo.warc").write_bytes(info)
    warc(crawls / "sound.warc.gz", PAGES)
    whole = (crawls / "sound.warc.gz").read_bytes()
    (crawls / "cut-later.warc.gz").write_bytes(whole[:-40])
    (crawls / "readme.html").write_text("<html>")
    done = home("ingest", "--json", "--jobs", "1", crawls)
    assert done.code == 1
    failed = {source["source"] for source in done.json["sources"] if source["failed"]}
    assert failed == set(bad)
    assert done.json["failed"] == len(bad)
    assert home("publish").code == 0
    told = home("query", "SELECT DISTINCT source FROM faults").out.split()
    assert failed <= set(told)


def test_a_run_without_any_archive_is_committed_with_its_faults(home: Home, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not an archive")
    (tmp_path / "empty.warc").touch()
    done = home("ingest", "--jobs", "1", tmp_path / "notes.txt", tmp_path / "empty.warc")
    assert done.code == 1
    assert done.out.startswith("0 captures from 2 files, ready to publish\n2 files failed: ")
    assert len(home("status", "--json").json["intake"]) == 1
    assert home("publish", "--json").json["faults"] == 2
    rows = home("query", "SELECT source, code FROM faults ORDER BY 1").out.splitlines()[1:]
    assert rows == ["empty.warc,empty-file", "notes.txt,not-an-archive"]
    assert home("publish", "--json").json["snapshot"] is None


def test_standard_input_that_is_no_archive_is_a_failure(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text")))
    done = home("ingest", "--jobs", "1", "-")
    assert done.code == 1
    assert "  -: not-an-archive" in done.out
