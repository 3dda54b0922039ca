"""What readers of each kind of archive type has the page that they mean among the first three."""

import json
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import pytest

from builder.sources.datasets.results import Results
from builder.store.folder import FolderStore
from functions.reading.duck_repository import DuckRepository
from functions.site.assembly import site_over
from tests.builder.sources.datasets.outcomes import DESCRIPTION, item, outcome
from tests.builder.sources.redif.trees import archive, tree
from tests.e2e.conftest import CLOCK, make_home, warc
from tests.functions.oai.client import Client, Clock
from tests.functions.site.crawl import Crawl

_PAPERS = (
    # author, title, JEL
    ("Nováková, Žofie", "Prices of bread in small towns", "D12; E31"),
    ("Novák, Jan", "Prices and wages", "E31"),
    ("Bread, Thomas", "Monetary policy", "E52"),
    ("Keynes, John Maynard", "The general theory of employment", "E12; E24"),
    ("Müller, Jörg", "Employment after Keynes", "J21"),
    ("Ōta, Naoko", "Household saving", "D14; E21"),
)
_RECORDS = {
    "b1": ("Dějiny knihovny", "Čapek, Karel", "978-80-7050-123-4"),
    "b2": ("Dějiny města", "Čapek, Josef", "9788020012345 (brož.)"),
    "b3": ("Časopis knihovny", "Knihovna", "1234-567X"),
    "b4": ("Karel Čapek: a reader's life", "Doe, Jane", "urn:x:4"),
}
_PAGES = {
    "http://www.nkp.cz/": "Národní knihovna",
    "http://www.nkp.cz/sluzby": "Služby čtenářům",
    "http://www.nkp.cz/clanek/20190123456": "Knihovníci a čtenáři",
    "http://www.narodni-listy.cz/": "Národní listy",
    "http://blog.example.org/2019/novak": "Jan Novák on prices",
}
_DATA = {
    "41": ("Heights of larches", "10.5072/trees.41"),
    "42": ("Prices of timber, 1990–2020", "10.5072/trees.42"),
}
_QUERIES = {
    "RePEc:aaa:wpaper:0": [
        "novakova bread",
        "Nováková prices",
        "prices bread",
        "D12",
        '"small towns"',
    ],
    "RePEc:aaa:wpaper:1": ["novak wages", "jan novák prices", "NOVAK prices wages"],
    "RePEc:aaa:wpaper:2": ["bread monetary", '"Thomas Bread"', "E52"],
    "RePEc:aaa:wpaper:3": ["keynes general theory", "keynes", "employ* keynes", "E12", "e24"],
    "RePEc:aaa:wpaper:4": ["muller employment", "Jörg Müller", "J21 employment"],
    "RePEc:aaa:wpaper:5": ["ota saving", "Ota Naoko", "household sav*"],
    "RePEc:aaa:wpaper": ["working papers"],
    "b1": ["capek dejiny", "dějiny knihov*", "978-80-7050-123-4", "urn:isbn:978-80-7050-123-4"],
    "b2": ["josef capek", "dějiny města", "isbn:978-80-2001-234-5", "9788020012345"],
    "b3": ["casopis knihovny", "1234-567x", "ISSN 1234567X"],
    "b4": ["karel capek", '"karel čapek" reader'],
    "http://www.nkp.cz/": ["národní knihovna", "narodni knihovna", "NKP", "národní", "knihovna"],
    "http://www.nkp.cz/sluzby": ["sluzby", "nkp služby", '"služby čtenářům"'],
    "http://www.nkp.cz/clanek/20190123456": ["knihovnici", "nkp knihovn*"],
    "http://www.narodni-listy.cz/": ["listy", "narodni-listy.cz", "národní listy"],
    "http://blog.example.org/2019/novak": ["blog novak", "example.org prices"],
    "41": ["larches", "vrba heights", "trees.41"],
    "42": ["prices timber", '"timber 1990"'],
}
"""Ends of identifiers, or URLs, and what readers type who want them."""
_TABLE = """
[[records]]
name = "books"
files = "books.jsonl"
identifier = "id"
fields = { title = "title", creator = "creator", identifier = "number" }
formats = { oai_dc = "fields-oai_dc" }
"""


def paper(number: int) -> bytes:
    author, title, jel = _PAPERS[number]
    return (
        f"Template-Type: ReDIF-Paper 1.0\nAuthor-Name: {author}\nTitle: {title}\n"
        f"Classification-JEL: {jel}\nHandle: RePEc:aaa:wpaper:{number}\n"
    ).encode()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    home = make_home(tmp_path_factory.mktemp("readers") / "home")
    papers = {f"aaa/wpaper/{n}.rdf": paper(n) for n in range(len(_PAPERS))}
    tree(home.folder / "RePEc", archive() | papers)
    fields = ("id", "title", "creator", "number")
    rows = [dict(zip(fields, (name, *row), strict=True)) for name, row in _RECORDS.items()]
    (home.folder / "books.jsonl").write_text("\n".join(map(json.dumps, rows)))
    home.config.write_text(home.config.read_text() + _TABLE)
    pages = {
        url: f"<html><title>{title}</title><p>.</html>".encode() for url, title in _PAGES.items()
    }
    warc(home.folder / "pages.warc.gz", pages)
    for source in ("RePEc", "books.jsonl", "pages.warc.gz"):
        done = home("ingest", "--jobs", "1", home.folder / source)
        assert done.code == 0, done.err
    results = Results(FolderStore(home.folder / "store"), home.folder / "scratch", CLOCK.now)
    for number, (title, doi) in _DATA.items():
        description = replace(DESCRIPTION, title=title, doi=doi)
        results.add(outcome(item("a.csv", platform_id=number, description=description)))
    results.commit()
    done = home("publish")
    assert done.code == 0, done.err
    repository = DuckRepository(FolderStore(home.folder / "store"))
    clock = Clock()
    clock.now = CLOCK.now()
    yield Crawl(Client(repository, clock, pages=site_over(repository)))
    repository.close()


def goals(reader: Crawl, text: str) -> list[str]:
    """Return where a search leads, or the identifiers and URLs of its first three hits."""
    reply = reader.client.raw(f"q={quote(text)}", path="/search")
    if reply["statusCode"] == 302:
        return [reply["headers"]["Location"]]
    rows = reader.read(f"/search?q={quote(text)}").tree.findall(".//ul[@class='records']/li")
    return [
        "".join(row.xpath("span[@class='url']//text()")) + row.find("a").get("href")
        for row in rows[:3]
    ]


def is_meant(goal: str, item: str) -> bool:
    ends = f":{item}", f",{item}"
    return goal.startswith(f"{item}/") if "://" in item else goal.endswith(ends)


def test_readers_have_their_page_among_the_first_three(reader: Crawl) -> None:
    meant = {text: item for item, texts in _QUERIES.items() for text in texts}
    hits = {text: goals(reader, text) for text in meant}
    lost = {text for text in hits if not any(is_meant(goal, meant[text]) for goal in hits[text])}
    assert {text: hits[text] for text in lost} == {}
    assert len(meant) > 50
