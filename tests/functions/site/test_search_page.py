"""The page of a search: what names one thing leads to its page, and filters are links."""

from urllib.parse import quote

import pytest

from functions.site.assembly import site_over
from tests.builder.conftest import World, capture
from tests.functions.oai.client import Client
from tests.functions.oai.client import Clock as StandingClock
from tests.functions.oai.conftest import holding
from tests.functions.reading.memory import Item
from tests.functions.site.crawl import ROOT, Crawl


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    world = World(tmp_path_factory.mktemp("search") / "store")
    world.add(
        [
            capture(
                n,
                url_surtkey=f"cz,example,h{n % 17})/{n}",
                title="Soil 10.5281/zenodo.77" if n == 3 else f"Page {n}",
                content_mime_type="text/html" if n % 3 else "image/png",
                fetch_date=f"{2007 + n % 2}-11-05",
            )
            for n in range(30)
        ]
    )
    repository = world.repository()
    return Crawl(Client(repository, StandingClock(), pages=site_over(repository)))


def goal(crawl: Crawl, text: str) -> str | None:
    """Return where a search leads, None if it is a page of results."""
    reply = crawl.client.raw(f"q={quote(text)}", path="/search")
    assert reply["statusCode"] in (200, 302), reply
    return reply["headers"]["Location"].removeprefix(ROOT) if reply["statusCode"] == 302 else None


def test_what_names_one_thing_leads_to_its_page(crawl: Crawl) -> None:
    own = f"oai:archive.example.org:{capture(3).identity}"
    assert capture(5).url == "http://h5.example.cz/5"
    record, captures = f"/record/{own}", f"/captures?url={capture(5).url}&match=exact"
    assert goal(crawl, own) == record
    for text in ("10.5281/zenodo.77", "doi:10.5281/ZENODO.77", "https://doi.org/10.5281/zenodo.77"):
        assert goal(crawl, text) == record
    assert goal(crawl, capture(5).url) == captures
    assert goal(crawl, capture(5).url.removeprefix("http://")) == captures
    for text in ("page", "http://nowhere.cz/", "oai:archive.example.org:x", "10.5281/x", "a.b/c d"):
        assert goal(crawl, text) is None


def test_a_handle_leads_to_its_record() -> None:
    item = Item(("RePEc:aaa",), "template", {"handle": "RePEc:aaa:s:1", "fields": {}})
    reader = Crawl(Client(holding({"oai:example.org:RePEc:aaa:s:1": item}), StandingClock()))
    for text in ("RePEc:aaa:s:1", "repec:AAA:s:1", "oai:RePEc:aaa:s:1"):
        assert goal(reader, text) == "/record/oai:example.org:RePEc:aaa:s:1"


def test_links_filter_and_take_the_filter_off(crawl: Crawl) -> None:
    page = crawl.read("/search?q=page")
    assert "Results: 29" in page.text
    links = [link.removeprefix(ROOT) for link in page.links() if "/search?" in link]
    for filters, total in (("media=image/png", 9), ("since=2008&until=2008", 14)):
        path = f"/search?q=page&{filters}"
        assert path in links
        chosen = crawl.read(path)
        assert f"Results: {total}" in chosen.text
        assert f"{ROOT}/search?q=page" in list(chosen.links())


def test_pages_of_results_follow_each_other(crawl: Crawl) -> None:
    first = crawl.read("/search?q=page")
    (more,) = [a.get("href") for a in first.tree.iter("a") if a.get("rel") == "next"]
    rows = [page.tree.findall(".//ul[@class='records']/li") for page in (first, crawl.read(more))]
    assert [len(items) for items in rows] == [20, 9]
    for wrong in ("x", "9.1", "1", "1.2.3.4.5.6", "٣.1"):
        assert "no such place" in crawl.read(f"/search?q=page&after={quote(wrong)}").text


def test_words_that_begin_so_are_better_than_nothing(crawl: Crawl) -> None:
    for text, total in (("pag", 29), ("soi zenodo", 1), ("x pag", 0), ('"pag"', 0), ("pa", 0)):
        page = crawl.read(f"/search?q={quote(text)}")
        assert f"Results: {total}" in page.text
        assert ("These begin so" in page.text) == (total > 0)
