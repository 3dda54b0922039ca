"""Harvesters that other people wrote, and every kind of page size."""

import json
from collections.abc import Callable, Iterator

import pytest
from oaipmh_scythe import Scythe
from sickle import Sickle

from tests.e2e.conftest import ARCHIVES, Home, make_home
from tests.e2e.harvester import harvest

pytestmark = pytest.mark.shared(2)

PAGE_SIZES = ("1", "7", "1000")


def by_sickle(url: str, **arguments: str) -> list[str]:
    records = Sickle(url).ListRecords(metadataPrefix="oai_dc", **arguments)
    return [r.header.identifier for r in records if not r.header.deleted]


def by_scythe(url: str, **arguments: str) -> list[str]:
    names = {"set": "set_", "from": "from_"}
    with Scythe(url) as scythe:
        records = scythe.list_records(
            metadata_prefix="oai_dc", **{names.get(k, k): v for k, v in arguments.items()}
        )
        return [r.header.identifier for r in records if not r.header.deleted]


CLIENTS = pytest.mark.parametrize("client", [by_sickle, by_scythe])
Client = Callable[..., list[str]]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A store of two publishes, the second of which changes some items of the first."""
    home = make_home(tmp_path_factory.mktemp("clients"))
    folder = tmp_path_factory.mktemp("crawls")
    for number in range(2):
        pages = {
            f"http://www.h{n % 5}.cz/{n}": f"<title>{n}</title>".encode()
            for n in range(20 + 10 * number)
        }
        home.publish_pages(folder / f"{number}.warc.gz", pages, "--collection", "ab"[number])
    return home


@pytest.mark.sampled(5)
@CLIENTS
@pytest.mark.parametrize("size", PAGE_SIZES)
def test_each_record_once(published: Home, client: Client, size: str) -> None:
    with published.served(SHEAF_PAGES_RECORDS=size) as url:
        found = client(url)
        assert len(found) == len(set(found)) == 32  # with the collections
        assert len(client(url, set="collection:a")) == 21
        assert len(client(url, set="collection:b")) == 31
        assert len(client(url, set="domain:cz:h1")) == 6


@CLIENTS
def test_an_incremental_harvest_gets_what_changed(published: Home, client: Client) -> None:
    rows = published("query", "--json", "FROM snapshots ORDER BY sequence").out.splitlines()
    stamps = [json.loads(row)["datestamp"] + "Z" for row in rows]
    with published.served(SHEAF_PAGES_RECORDS="7") as url:
        everything = client(url)
        # Each page of the first twenty is in both collections now, so all of them changed; the
        # first collection is what it was.
        same = {name for name in everything if name.endswith(":collection,a")}
        assert len(same) == 1
        assert set(client(url, **{"from": stamps[1]})) == set(everything) - same
        assert sorted(client(url, until=stamps[1])) == sorted(everything)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    if not ARCHIVES.is_dir():
        pytest.skip(f"no real archives at {ARCHIVES}")
    home = make_home(tmp_path_factory.mktemp("core"))
    result = home("ingest", "--json", "--jobs", "1", ARCHIVES / "core")
    assert result.code == 0, result.err
    for source in result.json["sources"]:  # each ends in items or named faults
        assert source["captures"] + source["skipped"] + source["faults"] > 0, source
    assert home("publish").code == 0
    return home


YEARS = "SELECT count(*) FROM captures WHERE fetch_time >= TIMESTAMP '2026-01-01'"


@pytest.mark.thorough
@CLIENTS
@pytest.mark.parametrize("size", PAGE_SIZES)
def test_all_real_archives(core: Home, client: Client, size: str) -> None:
    rows = core("query", "SELECT identifier FROM records WHERE NOT deleted").out.split()[1:]
    assert len(rows) > 1000
    assert core("query", YEARS).out.split() == ["count_star()", "0"]
    with core.served(SHEAF_PAGES_RECORDS=size) as url:
        found = client(url)
    assert len(found) == len(set(found)) == len(rows)
    assert set(found) == set(rows)


@pytest.mark.thorough
def test_real_sets_have_the_sizes_that_they_claim(core: Home) -> None:
    """Every set of every hierarchy, harvested, has as many records as its listing says."""
    claimed = dict(
        line.split(",")
        for line in core("query", "SELECT set_spec, records FROM sets").out.split()[1:]
    )
    roots = [spec for spec in claimed if spec.count(":") < 2]
    with core.served() as url:
        for spec in roots:
            assert harvest(url, set=spec).records == int(claimed[spec]), spec


_UKWA = "ukwa-suite__IAH-20080430204825-00000-blackbook-truncated"
TWINS = {
    ("aut__example.arc.gz", "nas__fyensdk.arc"): (
        ("ipwb__IAH-20080430204825-00000-blackbook.warc.gz", "nas__fyensdk.warc"),
    ),
    # In a store of its own, for it is the beginning of the crawl above.
    (f"{_UKWA}.arc",): tuple((f"{_UKWA}.{other}",) for other in ("arc.gz", "warc", "warc.gz")),
}
"""What is published first, and then the same crawls in other containers, publish by publish."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rules", ["[]", '["redirects", "errors"]'])
@pytest.mark.parametrize("first", TWINS, ids=lambda names: names[0][:12])
def test_a_twin_changes_nothing(
    home: Home, first: tuple[str, ...], rules: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One crawl in two containers: no new item, no changed item, no datestamp moved."""
    if not ARCHIVES.is_dir():
        pytest.skip(f"no real archives at {ARCHIVES}")
    monkeypatch.setenv("SHEAF_DOCUMENTS_INCLUDE", rules)
    question = "SELECT identifier, position, datestamp FROM records ORDER BY position"
    home("ingest", "--jobs", "1", *(ARCHIVES / "core" / name for name in first))
    assert home("publish", "--json").json["new"] > 0
    before = home("query", question).out
    for twins in TWINS[first]:
        home("ingest", "--jobs", "1", *(ARCHIVES / "core" / name for name in twins))
        published = home("publish", "--json").json
        assert (published["new"], published["changed"]) == (0, 0)
        assert published["unchanged"] == len(before.splitlines()) - 1
        assert home("query", question).out == before
