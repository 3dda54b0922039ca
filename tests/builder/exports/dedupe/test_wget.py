"""A crawl by wget itself, whose second run stores nothing that the first has stored."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import make_home
from tests.listening import QuietHandler, listening

LINKS = "".join(f"<a href=/{n}.html>{n}</a>" for n in range(1, 6))
PAGES = {f"/{n}.html": f"<title>Page {n}</title>{LINKS * (n == 0)}".encode() for n in range(6)}


class _Pages(QuietHandler):
    def do_GET(self) -> None:
        body = PAGES.get(self.path)
        self.reply(404 if body is None else 200, body or b"", {"Content-Type": "text/html"})


@pytest.mark.skipif(shutil.which("wget") is None, reason="wget is not installed")
def test_wget_stores_nothing_twice(tmp_path: Path) -> None:
    def crawl(name: str, *more: object) -> dict[str, list[str]]:
        """Return the URLs of the records that a crawl wrote, by type."""
        options = ("-q", "-r", "-e", "robots=off", f"--warc-file={name}", "--no-warc-compression")
        command = ["wget", *options, *map(str, more), f"{url}/0.html"]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
        data = (tmp_path / f"{name}.warc").read_text("latin-1")
        heads = re.findall(r"WARC/1.0\n(.*?)\n\n", data, re.DOTALL)
        records: dict[str, list[str]] = {}
        for head in heads:
            fields = dict(line.split(": ", 1) for line in head.splitlines())
            records.setdefault(fields["WARC-Type"], []).append(fields.get("WARC-Refers-To", ""))
            names.append(fields["WARC-Record-ID"])
        return records

    home, names = make_home(tmp_path / "home"), list[str]()
    with listening(_Pages) as port:
        url = f"http://127.0.0.1:{port}"
        assert len(crawl("first")["response"]) == len(PAGES)
        ids = {*names}
        assert home("ingest", tmp_path / "first.warc").code == 0
        assert home("publish").code == 0
        done = home("export", "dedupe", tmp_path / "stored.cdx")
        assert done.code == 0, done.err
        second = crawl("second", "--warc-dedup=stored.cdx")
    assert "response" not in second
    assert len(second["revisit"]) == len(PAGES)
    assert {*second["revisit"]} <= ids
    # The revisits lead to what the first crawl stored.
    assert home("ingest", tmp_path / "second.warc").code == 0
    assert home("publish").code == 0
    sql = "SELECT count(refers_to) = 6 FROM captures WHERE warc_record_type = 'revisit'"
    assert "True" in home("query", sql).out
    # Only originals are listed, so that the next crawl refers to them, too.
    assert home("export", "dedupe", tmp_path / "again.cdx").code == 0
    assert (tmp_path / "again.cdx").read_bytes() == (tmp_path / "stored.cdx").read_bytes()
