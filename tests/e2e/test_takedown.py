"""Withdrawing and expiring from the command line, and what harvesters then see."""

import gzip
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.conftest import Home, warc
from tests.e2e.harvester import harvest

pytestmark = pytest.mark.shared(2)

PAGES = {
    "http://www.knihovna.cz/": b"<html lang=cs><title>Knihovna</title>",
    "http://www.knihovna.cz/akce": b"<title>Akce</title>",
    "http://blog.knihovna.cz/": b"<title>Blog</title>",
    "http://www.archiv.org/": b"<title>Archiv</title>",
}


@pytest.fixture(scope="module")
def original(lasting_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """For tests that change nothing."""
    lasting_home.publish_pages(tmp_path_factory.mktemp("archives") / "one.warc.gz", PAGES)
    return lasting_home


def identifier(home: Home, url: str) -> str:
    found = home("query", "--json", f"SELECT identifier FROM captures WHERE url = '{url}'").json
    return str(found["identifier"])


def test_withdrawing_by_set_is_what_a_harvester_learns(published: Home) -> None:
    name = identifier(published, "http://blog.knihovna.cz/")
    with published.served() as url:
        done = published("withdraw", "--set", "domain:cz:knihovna", "--reason", "owner's wish")
        assert done.code == 0, done.err
        assert "3 withdrawn" in done.out
        summary = harvest(url)
        assert (summary.records, summary.deleted) == (4, 3)
        left = identifier(published, "http://www.archiv.org/")
        assert left in summary.identifiers
        assert left not in done.out
        query = f"{url}?verb=GetRecord&metadataPrefix=oai_dc&identifier={name}"
        with urllib.request.urlopen(query) as answer:
            text = answer.read().decode()
    assert '<header status="deleted">' in text
    assert "<setSpec>domain:cz:knihovna:blog</setSpec>" in text
    assert "Blog" not in text
    assert "wish" not in text
    row = published("query", "--json", "SELECT DISTINCT reason FROM records WHERE deleted").json
    assert row["reason"] == "owner's wish"


def test_withdrawn_items_stay_so_when_their_archive_comes_again(
    published: Home, tmp_path: Path
) -> None:
    name = identifier(published, "http://blog.knihovna.cz/")
    assert published("withdraw", "--identifier", name, "--reason", "why").code == 0
    published("ingest", tmp_path / "one.warc.gz")
    again = published("publish", "--json").json
    assert (again["new"], again["changed"]) == (0, 0)
    deleted = published("query", "--json", "SELECT identifier FROM records WHERE deleted").json
    assert deleted["identifier"] == name
    none = published("withdraw", "--identifier", name, "--dry-run").out
    assert none == "0 items: these are already withdrawn\n"
    once_more = published("withdraw", "--identifier", name, "--reason", "another")
    assert "are already withdrawn, with the reason: why\n" in once_more.out
    preview = published("reinstate", "--identifier", name, "--dry-run").out
    assert "2007-11-05T12:00:00Z  http://blog.knihovna.cz/\n" in preview
    back = published("reinstate", "--identifier", name, "--json").json
    assert (back["reinstated"], back["identifiers"]) == (1, [name])
    assert identifier(published, "http://blog.knihovna.cz/") == name


def test_a_dry_run_names_the_items_and_changes_nothing(original: Home) -> None:
    found = original("withdraw", "--url-prefix", "http://www.", "--dry-run", "--json").json
    assert found["count"] == 3
    assert found["hosts"] == [
        {"host": "www.knihovna.cz", "items": 2},
        {"host": "www.archiv.org", "items": 1},
    ]
    first = found["items"][0]
    assert first == {
        "identifier": identifier(original, "http://www.knihovna.cz/"),
        "url": "http://www.knihovna.cz/",
        "date": "2007-11-05T12:00:00Z",
        "host": "www.knihovna.cz",
        "kind": "capture",
        "title": first["title"],
    }
    shown = original("withdraw", "--url-prefix", "http://www.", "--dry-run").out
    assert shown.startswith("3 items\n          2  www.knihovna.cz\n          1  www.archiv.org\n")
    assert f"  2007-11-05T12:00:00Z  {first['url']}\n" in shown
    assert first["identifier"] in shown
    assert original("status", "--json").json["snapshot"]["snapshot"] == 1
    nothing = original("reinstate", "--url-prefix", "http://www.", "--dry-run")
    assert nothing.code == 2
    assert "none of these items is withdrawn" in nothing.err


def test_expiring_keeps_what_the_pointer_names(published: Home) -> None:
    done = published("withdraw", "--set", "domain:cz", "--reason", "why", "--json").json
    expired = published("expire", "--keep", "1", "--json").json
    # readers with a slow clock may still go by the snapshot before, for a minute
    assert expired == {"retired": [], "kept": [1, done["snapshot"]], "objects": 0}
    assert published("expire", "--keep", "1", "--older-than", "14d").code == 0


def test_a_dry_run_shows_the_first_items_and_counts_all_hosts(home: Home, tmp_path: Path) -> None:
    pages = {f"http://a{number:02}.cz/": b"<title>x</title>" for number in range(24)}
    home.publish_pages(tmp_path / "many.warc.gz", pages)
    text = home("withdraw", "--set", "domain", "--dry-run").out
    assert text.startswith("24 items\n          1  a00.cz\n")
    assert "         14  on other hosts\n" in text
    assert text.count("http://") == 20
    assert text.endswith("  … and 4 more; --json gives all\n")
    assert len(home("withdraw", "--set", "domain", "--dry-run", "--json").json["items"]) == 24


def test_nothing_of_a_record_stays_where_its_file_is_compressed_as_a_whole(
    home: Home, tmp_path: Path
) -> None:
    """Such a record has no place in the file by which its faults could be told."""
    whole = gzip.decompress(warc(tmp_path / "one.warc.gz", PAGES).read_bytes())
    mark = b"WARC-Payload-Digest: sha1:"
    before, last = whole.rsplit(mark, 1)  # the first record alone has a place
    told = before + mark + b"SECRET" + last
    path = tmp_path / "two.warc.gz"
    path.write_bytes(gzip.compress(told))
    assert home("ingest", path).code == 0
    assert home("publish").code == 0
    details = "SELECT count(*) AS n FROM faults WHERE contains(detail, 'SECRET')"
    assert home("query", "--json", details).json == {"n": 1}
    for _ in range(2):
        taken = home("withdraw", "--set", "domain:org:archiv", "--reason", "x", "--purge")
        assert taken.code == 0, taken.err
        assert home("query", "--json", details).json == {"n": 0}
        assert home("ingest", "--again", path).code == 0
        assert home("publish").code == 0
        assert home("query", "--json", details).json == {"n": 0}


def test_a_collection_counts_archives_that_were_read(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    folder.mkdir()
    warc(folder / "one.warc.gz", PAGES)
    (folder / "README.txt").write_text("about this crawl")
    assert home("ingest", folder, "--collection", "crawl").code == 0
    assert home("publish").code == 0
    found = home("query", "--json", "SELECT document ->> '$.files' AS files FROM collections")
    assert found.json == {"files": "1"}
