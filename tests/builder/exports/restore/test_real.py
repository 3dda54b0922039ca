"""Real crawls restored: every file is there, by both ways, and has the bytes that were archived."""

import base64
import hashlib
from pathlib import Path

import pytest

from tests.builder.exports.restore.shelf import lines, serving, tree
from tests.e2e.conftest import ARCHIVES, make_home, sheaf

CRAWLS = (
    "webarchivcz__example-20200623-crawler0.warc.gz",
    "jwat__small_BNF.arc",
    "replayweb.page__example.wacz",
    "pywb__iana.warc.gz",
)


@pytest.mark.thorough
@pytest.mark.skipif(not ARCHIVES.is_dir(), reason="the archives are not on this machine")
def test_real_crawls_by_both_ways(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    assert home("ingest", "--jobs", "1", *(ARCHIVES / "core" / crawl for crawl in CRAWLS)).code == 0
    assert home("publish").code == 0
    by_store = sheaf("restore", "--json", home.folder / "store", tmp_path / "store")
    with serving(home) as base:
        by_http = sheaf("restore", "--json", base, tmp_path / "http")
    assert (by_store.code, by_http.code) == (0, 0), by_http.err
    assert tree(tmp_path / "http") == tree(tmp_path / "store")
    told = lines(tmp_path / "store")
    assert lines(tmp_path / "http") == told
    of_urls = (
        "SELECT count(DISTINCT regexp_replace(url, '^https?:|#.*', '', 'g')) AS n FROM captures "
        "WHERE fetch_method IS NULL"
    )
    assert len(told) == by_store.json["restored"] == int(home("query", of_urls).out.split()[1])
    as_archived = 0
    for line in told:
        data = (tmp_path / "store" / line["path"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == line["sha256"]
        digest = base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest())
        as_archived += digest.decode() == line["digest"]
    assert as_archived > len(told) / 3  # the others bore a coding, which was undone
