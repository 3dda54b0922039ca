"""Every number on a page is what its own SQL gives, after any changes of a store."""

import csv
import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from lxml import etree

from builder.commands.demo import samples
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from functions.site.assembly import site_over
from functions.site.site import TABLES
from tests.clock import CLOCK
from tests.e2e.conftest import Home, warc
from tests.extent import ALL
from tests.functions.oai.client import event, respond

_PAGES = (
    "/charts",
    "/sets",
    "/sets?under=domain:cz",
    "/sets?under=mime",
    "/sets?under=RePEc:lip",
    "/publishes",
    "/captures?url=h1.cz&match=domain",
    "/captures?url=http://www.h2.cz/2&match=exact",
)
_FIGURES = {
    # path: the statement of the figures at its top, in their order; see written_figures
    "/charts": "SELECT count(*) FILTER (WHERE NOT deleted), "
    "(SELECT sum(content_length)::BIGINT FROM captures), "
    "(SELECT left(min(fetch_date), 4) || '–' || left(max(fetch_date), 4) FROM captures),"
    "(SELECT count(DISTINCT url_host_name) FROM captures), (SELECT count(*) FROM sets), "
    "(SELECT count(*) FROM snapshots) FROM records",
    "/sets?under=domain:cz": "SELECT live, records - live FROM sets WHERE set_spec = 'domain:cz'",
    "/captures?url=h1.cz&match=domain": (
        "SELECT count(*) FROM captures WHERE url_host_registered_domain = 'h1.cz'"
    ),
    "/records": "SELECT list(count ORDER BY kind) FROM "
    "(SELECT kind, count(*) AS count FROM records GROUP BY kind)",
}
_TABLES = (
    *_PAGES,
    "/collections",
    "/records",
    "/records?kind=capture&rest=1&record=1",
    "/records?kind=capture&status=2xx&type=text/&year=2009",
    "/records?kind=template&year=2026",
    "/captures?url=h1.cz&match=domain&status=2xx&type=text/&year=2009",
    "/captures?url=h2.cz&match=domain&from=2007-11&to=20090201",
    "/sets?under=collection:a",
    "/sets?under=domain&after=domain:c",
    "/source?name=0.warc.gz",
)
"""Pages of which each table has files."""
_COLLECTION = """
SELECT count(*), sum(content_length)::BIGINT, count(DISTINCT url_host_name), (
    SELECT count(DISTINCT source) FROM sources
    WHERE list_bool_or([starts_with(s || ':', '{0}:') FOR s IN collections])
) FROM captures WHERE list_bool_or([starts_with(s || ':', '{0}:') FOR s IN sets])
"""
"""The figures of a collection with that setSpec."""
_DATES = ("2007-11-05T12:00:00Z", "2009-02-01T00:00:00Z", "2009-12-31T23:59:59Z")


def read_tables(tree: etree._Element) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the statement of each table of a page, and the table's values as texts."""
    for query in tree.findall(".//details[@class='query']"):
        table = next(one for one in query.itersiblings(preceding=True) if one.tag != "p")
        if table.tag in ("ul", "form") or "captures" in (table.get("class") or ""):
            continue  # a list of records, which test_every_table_is_to_be_had compares
        if table.tag != "table":
            (table,) = table.iter("table")
        rows = []
        for row in table.find("tbody").iter("tr"):
            cells = [
                one
                for one in row
                if one.tag in ("th", "td") and one.get("class") not in ("bar", "label")
            ]
            rows.append([one.get("data-value") or "".join(one.itertext()) for one in cells])
        yield "".join(query.find("pre").itertext()), rows


def list_files(tree: etree._Element) -> Iterator[str]:
    """Yield the address of the JSON of each table of a page that has SQL."""
    for details in tree.findall(".//details[@class='query']"):
        for link in details.iter("a"):
            if ".json" in link.get("href") and details.find("pre") is not None:
                yield link.get("href")


def read_figures(path: str, tree: etree._Element) -> list[str]:
    """Return the figures of a page that stand outside tables."""
    if path == "/records":
        found = [
            "".join(a.itertext()).rpartition("(")[2] for a in tree.iterfind(".//ul[@class]//a")
        ]
        return [one.rstrip(")") for one in found if one.endswith(")")]
    if path.startswith("/captures"):
        (total,) = tree.iterfind(".//p[@class='total']/data")
        return [str(total.text)]
    cells = tree.iterfind(".//dl[@class]/div/dd")
    return [one.get("data-value") or "".join(one.itertext()) for one in cells]


def read_collections(tree: etree._Element) -> Iterator[tuple[str, list[str]]]:
    """Yield the setSpec and the figures of each collection."""
    for card in tree.iterfind(".//article"):
        spec = parse_qs(urlsplit(card.find("h2/a").get("href")).query)["under"][0]
        yield spec, read_figures("", card)


def query(home: Home, sql: str) -> list[str]:
    """Return the values of the only row of a statement, as a page has them."""
    (row,) = [home("query", "--json", f"SELECT * FROM ({sql})").json]
    values = [v for one in row.values() for v in (one if isinstance(one, list) else [one])]
    return written(values, sql)


def change(home: Home, draw: random.Random, folder: Path, turn: int) -> None:
    """Make one change of the store: an ingest, or a withdrawal, or its undoing."""
    hosts = [f"{www}h{n}.cz" for www in ("", "www.") for n in range(5)]
    urls = [f"http://{draw.choice(hosts)}/{draw.randrange(6)}" for _ in range(9)]
    pages = {url: f"<title>{draw.random()}</title>".encode() for url in urls}
    path = warc(folder / f"{turn}.warc.gz", pages, draw.choice(_DATES))
    extra = ("--collection", draw.choice(("a:x", "a:y", "b")))
    assert home("ingest", path, *extra).code == 0
    papers = folder / "RePEc"
    if turn == 0:
        samples.write_papers(papers, "http://papers.example.org")
    if turn == 2:
        samples.revise_papers(papers, "http://papers.example.org")
    assert home("ingest", papers).code == 0
    assert home("publish").code == 0
    deed = draw.choice((("withdraw", "--reason", "x"), ("reinstate",), ()))
    if turn and deed:
        home(*deed, "--url-prefix", f"http://h{draw.randrange(5)}.cz/")


@contextmanager
def asking(home: Home) -> Iterator[Callable[[str], str]]:
    """Open the store as a server has it; give what returns a page or another file."""
    values = configuration.parse(home.config.read_text(), {}).relative_to(home.folder)
    repository = DuckRepository(FolderStore(home.folder / "store"))
    application = Application(
        repository, values, lambda: CLOCK.now() + timedelta(hours=1), pages=site_over(repository)
    )

    def ask(path: str) -> str:
        parts = urlsplit(path)
        reply = respond(application, event(parts.query, path=parts.path))
        assert reply["statusCode"] == 200, path
        return str(reply["body"])

    try:
        yield ask
    finally:
        repository.close()


@contextmanager
def reading(home: Home) -> Iterator[Callable[[str], etree._Element]]:
    """Open the store as a server has it; give what returns a page as a tree."""
    with asking(home) as ask:
        yield lambda path: parse(ask(path))


def parse(page: str) -> etree._Element:
    return etree.fromstring(page.encode(), etree.HTMLParser(encoding="utf-8"))


def ask_rows(home: Home, sql: str) -> list[dict[str, Any]]:
    """Return the rows of a statement as `sheaf query` gives them."""
    result = home("query", "--json", sql)
    assert result.code == 0, (sql, result.err)
    return [json.loads(line) for line in result.out.splitlines()]


def written(row: list[Any], sql: str) -> list[str]:
    """Return a row of SQL as a page has it; bytes of media types are shown with a unit."""
    cells = ["" if v is None else f"{v:,}" if isinstance(v, int) else str(v) for v in row]
    if sql.startswith("SELECT sequence"):
        cells[0] = cells[0].replace(",", "")
    return cells


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(2))
def test_numbers_are_those_of_their_statements(home: Home, tmp_path: Path, seed: int) -> None:
    draw, compared = random.Random(seed), 0
    for turn in range(4 if ALL else 2):
        change(home, draw, tmp_path, turn)
        if not turn % 2:
            continue  # the changes of two turns are compared at once
        with reading(home) as read:
            for path in _PAGES:
                for sql, rows in read_tables(read(path)):
                    wanted = [written([*row.values()], sql) for row in ask_rows(home, sql)]
                    assert rows == wanted, (path, sql)
                    compared += 1
            for path, sql in _FIGURES.items():
                assert read_figures(path, read(path)) == query(home, sql), path
            for spec, figures in read_collections(read("/collections")):
                assert figures == query(home, _COLLECTION.format(spec)), spec
    assert compared > (20 if ALL else 10)


def test_every_table_is_to_be_had_as_csv_and_json(home: Home, tmp_path: Path) -> None:
    """Both have the rows that the statement gives to `sheaf query`, in its order."""
    draw, seen = random.Random(7), dict[str, int]()
    pages = dict.fromkeys(("http://a.cz/1", "http://b.cz/2"), b"<title>x</title>")
    damaged = bytearray(warc(tmp_path / "0.warc.gz", pages).read_bytes())
    (tmp_path / "0.warc.gz").write_bytes(damaged[:-20])
    assert home("ingest", tmp_path / "0.warc.gz").code in (0, 1)
    for turn in range(2):
        change(home, draw, tmp_path, 2 * turn)
    with asking(home) as ask:
        for path in _TABLES:
            for address in list_files(parse(ask(path))):
                table = json.loads(ask(address))
                assert table["rows"] == ask_rows(home, table["sql"]), (path, table["sql"])
                lines = list(csv.reader(io.StringIO(ask(address.replace(".json", ".csv")))))
                texts = [["" if v is None else str(v) for v in r.values()] for r in table["rows"]]
                assert lines[1:] == texts
                seen[table["table"]] = max(len(texts), seen.get(table["table"], 0))
    assert seen.keys() == TABLES.keys() - {"checks", "dumps", "files", "formats"}  # without SQL
    assert all(seen.values()), seen


def test_a_page_that_has_the_last_capture_has_no_next_one(home: Home, tmp_path: Path) -> None:
    urls = [f"http://a.cz/{n}" for n in range(101)]
    long = f"http://b.cz/q?{'x' * 600}"
    for turn, some in enumerate(([*urls[:100], long], urls[100:])):
        pages = dict.fromkeys(some, b"<title>x</title>")
        home.publish_pages(tmp_path / f"{turn}.warc.gz", pages)
        with reading(home) as read:
            page = read("/captures?url=a.cz&match=host")
            more = page.xpath("//a[@rel='next']/@href")
            assert len(page.xpath("(//tbody)[last()]/tr")) == 100
            assert len(more) == turn
            if more:
                assert len(read(more[0]).xpath("(//tbody)[last()]/tr")) == 1
            assert read_figures("/captures", read(f"/captures?url={long}&match=exact")) == ["1"]
