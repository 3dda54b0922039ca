"""The page of a search: what names one thing leads to its page, and filters are links."""

import base64
from urllib.parse import quote

import pytest

from functions.reading.duck_repository import DuckRepository
from functions.site.assembly import site_over
from tests.builder.conftest import World, capture
from tests.functions.oai.client import Client
from tests.functions.oai.client import Clock as StandingClock
from tests.functions.oai.conftest import holding
from tests.functions.reading.memory import Item
from tests.functions.site.crawl import ROOT, Crawl

_DIGEST = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
_HEX = base64.b32decode(_DIGEST).hex()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> DuckRepository:
    world = World(tmp_path_factory.mktemp("search") / "store")
    changes: dict[int, dict[str, object]] = {
        3: {"title": "Soil 10.5281/zenodo.77", "content_digest": _DIGEST},
        6: {
            "title": "Page 10.5281/zenodo.a1234567890",
            "content_digest_declared": "md5:" + "0" * 32,
        },
        7: {"url": "http://www.nkp.cz/foo", "url_surtkey": "cz,nkp)/foo"},
        9: {"title": "Page 1234-5678"},
    }
    pages = [
        {
            "url_surtkey": f"cz,example,h{n % 17})/{n}",
            "title": f"Page {n}",
            "content_mime_type": "text/html" if n % 3 else "image/png",
            "fetch_date": f"{2007 + n % 2}-11-05T00:00:00Z",
        }
        for n in range(30)
    ]
    world.add([capture(n, **pages[n] | changes.get(n, {})) for n in range(30)])
    return world.repository()


@pytest.fixture(scope="module")
def crawl(repository: DuckRepository) -> Crawl:
    return Crawl(Client(repository, StandingClock(), pages=site_over(repository)))


def goal(crawl: Crawl, text: str) -> str | None:
    """Return where a search leads, None if it is a page of results."""
    reply = crawl.client.raw(f"q={quote(text)}", path="/search")
    assert reply["statusCode"] in (200, 302), reply
    return reply["headers"]["Location"].removeprefix(ROOT) if reply["statusCode"] == 302 else None


def own(number: int) -> str:
    """Return the identifier of a capture."""
    return f"oai:archive.example.org:{capture(number).identity}"


def test_what_names_one_thing_leads_to_its_page(crawl: Crawl) -> None:
    assert capture(5).url == "http://h5.example.cz/5"
    record, captures = f"/record/{own(3)}", f"/captures?url={capture(5).url}&match=exact"
    library = "/captures?url={}nkp.cz/foo&match=exact"
    texts = {
        own(3): record,
        own(3).removeprefix("oai:"): record,
        capture(3).identity: record,
        f"{ROOT}/record/{own(3)}": record,
        f"{ROOT}/content/{own(3)}": record,
        f"{ROOT}/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier={own(3)}": record,
        **dict.fromkeys(("10.5281/zenodo.77", "doi:10.5281/ZENODO.77"), record),
        "https://doi.org/10.5281/zenodo.77": record,
        "hdl:10.5281/zenodo.77": record,
        "https://hdl.handle.net/10.5281/zenodo.77": record,
        "10.5281/zenodo.a1234567890": f"/record/{own(6)}",
        **dict.fromkeys((_DIGEST, f"sha1:{_DIGEST}", f"SHA1:{_HEX}", _HEX.upper()), record),
        f"md5:{'0' * 32}": f"/record/{own(6)}",
        capture(5).url: captures,
        capture(5).url.removeprefix("http://"): captures,
        "www.nkp.cz/foo": library.format("http://www."),
        "nkp.cz/foo": library.format("http://"),
        "https://nkp.cz/foo": library.format("https://"),
    }
    assert {text: goal(crawl, text) for text in texts} == texts
    for text in (
        *("page", "http://nowhere.cz/", "oai:archive.example.org:x", "10.5281/x", "a.b/c d"),
        *("1234-5678", "A" * 32, "sha1:x", "2007 page", "robots.txt", "10.5281/zenodo.b1234567890"),
    ):
        assert goal(crawl, text) is None, text


def test_an_address_of_replay_leads_to_the_capture_of_its_time(crawl: Crawl) -> None:
    url = capture(5).url
    stamps = "20071105000000", "2008", "20140325121833id_", "2014im_"
    for place in ("", "/web/", "https://web.archive.org/web/", "https://wayback.example.cz/uk/"):
        for stamp in stamps:
            assert goal(crawl, f"{place}{stamp}/{url}") == f"/record/{own(5)}", (place, stamp)
        assert goal(crawl, f"{place}*/{url}") == f"/captures?url={url}&match=exact"
        assert goal(crawl, f"{place}2014/http://nowhere.cz/2007/") is None
    assert goal(crawl, f"20071105000000 {url}") == f"/record/{own(5)}"
    assert goal(crawl, f"2014 {url[7:]}") == f"/record/{own(5)}"
    assert goal(crawl, f"{ROOT}/web/{url}") == f"/captures?url={url}&match=exact"
    assert goal(crawl, f"/web/2008/{quote(url, safe='')}") == f"/record/{own(5)}"
    long = f"https://web.archive.org/web/2014/{url}?{'x' * 500}"
    assert goal(crawl, long) is None


def test_an_address_of_replay_leads_to_the_page_where_it_is_shown(
    repository: DuckRepository,
) -> None:
    pages, url = site_over(repository), capture(5).url
    shown = Crawl(Client(repository, StandingClock(), pages=pages, content_serve=True))
    assert goal(shown, f"/web/2014/{url}") == f"/web/20081105000000/{url}"
    assert goal(shown, url) == f"/captures?url={url}&match=exact"


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
