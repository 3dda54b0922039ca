"""Every number on a page is what its own SQL gives, after any changes of a store."""

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
from tests.clock import CLOCK
from tests.e2e.conftest import Home, warc
from tests.extent import ALL
from tests.functions.oai.client import event, respond

_PAGES = (
    "/",
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
    "/": "SELECT count(*) FILTER (WHERE NOT deleted), (SELECT sum(content_length)::BIGINT FROM "
    "captures), (SELECT left(min(fetch_date), 4) || '–' || left(max(fetch_date), 4) FROM captures),"
    "(SELECT count(DISTINCT url_host_name) FROM captures), (SELECT count(*) FROM sets), "
    "(SELECT count(*) FROM snapshots) FROM records",
    "/sets?under=domain:cz": "SELECT live, records - live FROM sets WHERE set_spec = 'domain:cz'",
    "/captures?url=h1.cz&match=domain": (
        "SELECT count(*) FROM captures WHERE url_host_registered_domain = 'h1.cz'"
    ),
    "/records": "SELECT list(count ORDER BY kind) FROM "
    "(SELECT kind, count(*) AS count FROM records GROUP BY kind)",
}
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
def reading(home: Home) -> Iterator[Callable[[str], etree._Element]]:
    """Open the store as a server has it; give what returns a page as a tree."""
    values = configuration.parse(home.config.read_text(), {}).relative_to(home.folder)
    repository = DuckRepository(FolderStore(home.folder / "store"))
    application = Application(
        repository, values, lambda: CLOCK.now() + timedelta(hours=1), pages=site_over(repository)
    )

    def read(path: str) -> etree._Element:
        parts = urlsplit(path)
        reply = respond(application, event(parts.query, path=parts.path))
        assert reply["statusCode"] == 200, path
        return etree.fromstring(reply["body"].encode(), etree.HTMLParser(encoding="utf-8"))

    try:
        yield read
    finally:
        repository.close()


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
                    found = home("query", "--json", sql)
                    assert found.code == 0, (sql, found.err)
                    values = [json.loads(line) for line in found.out.splitlines()]
                    wanted = [written([*row.values()], sql) for row in values]
                    assert rows == wanted, (path, sql)
                    compared += 1
            for path, sql in _FIGURES.items():
                assert read_figures(path, read(path)) == query(home, sql), path
            for spec, figures in read_collections(read("/collections")):
                assert figures == query(home, _COLLECTION.format(spec)), spec
    assert compared > (20 if ALL else 10)


def test_a_page_that_has_the_last_capture_has_no_next_one(home: Home, tmp_path: Path) -> None:
    urls = [f"http://a.cz/{n}" for n in range(101)]
    long = f"http://b.cz/q?{'x' * 600}"
    for turn, some in enumerate(([*urls[:100], long], urls[100:])):
        pages = dict.fromkeys(some, b"<title>x</title>")
        home.publish_pages(tmp_path / f"{turn}.warc.gz", pages)
        with reading(home) as read:
            page = read("/captures?url=a.cz&match=host")
            more = [a.get("href") for a in page.iter("a") if "after=" in (a.get("href") or "")]
            assert len(page.xpath("(//tbody)[last()]/tr")) == 100
            assert len(more) == turn
            if more:
                assert len(read(more[0]).xpath("(//tbody)[last()]/tr")) == 1
            assert read_figures("/captures", read(f"/captures?url={long}&match=exact")) == ["1"]
