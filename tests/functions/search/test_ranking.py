"""A reader's query has the page that he wants among its first three hits, in no more reads."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from builder.intake.captures import Capture
from builder.snapshot import words as written
from builder.snapshot.draft import Draft
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.webarchive import ArchiveReader
from functions.search import search
from functions.search.query import parse
from functions.search.search import SearchPage, WordSearch
from tests.builder.conftest import World, capture

_PAGES = {
    "http://www.mestska-knihovna.cz/": ["Městská knihovna Praha", "knihovna", "Knihovna PRAHA"],
    "http://www.mestska-knihovna.cz/katalog": ["Online katalog – Městská knihovna", "katalog"],
    "http://www.mestska-knihovna.cz/oteviraci-doba": ["Otevírací doba", "otevírací doba"],
    "http://www.mestska-knihovna.cz/pobocky/opatov": ["Pobočka Opatov", "pobocka opatov"],
    "http://www.mestska-knihovna.cz/akce/2019/cteni": ["Čtení pro děti", "čtení děti"],
    "http://www.mestska-knihovna.cz/akce/2020/beseda": ["Beseda: čtení, hry, děti, Brno", "beseda"],
    "http://www.novinky.cz/": ["Novinky z Brna", "novinky brn*"],
    "http://www.novinky.cz/clanek/nova-knihovna": ["Brno má knihovnu", '"nova knihovna"'],
    "http://www.novinky.cz/clanek/povoden": ["Povodeň na Svratce", "povoden"],
    "http://www.novinky.cz/clanek/mapa": ["Kde je voda: mapa povodně, Praha a Brno"],
    "http://www.univerzita.cz/": ["Univerzita", "univerzita"],
    "http://www.univerzita.cz/studium": ["Studium na univerzitě", "studium"],
    "http://www.univerzita.cz/studium/doktorske/obory": ["Doktorské studium: obory"],
    "http://www.univerzita.cz/knihovna": ["Knihovna univerzity", "knihovna univerzity"],
    "http://brno.cz/": ["Statutární město", "brno"],
    "http://brno.cz/mapa": ["Mapa města", "mapa"],
    "http://mapy.example.com/": ["Mapy", "mapy"],
    "http://blog.knihy.cz/": ["Blog", "knihy"],
    "http://example.org/": ["Example Domain", "example.org"],
    "http://example.org/docs/api": ["API reference", "example api"],
    "http://lib.example.jp/": ["東京都立図書館", "図書館"],
}
"""URLs, their titles, and the queries of readers who want them."""
_QUERIES = {text: url for url, (_, *texts) in _PAGES.items() for text in texts}
_REAL = Path(__file__).parents[3].parent / "shared" / "data"
_LIBRARY = "reports/people/knihovna.warc.gz"
_PUBLISHED = "webarchive/core/js-wacz__lil-projects.warc.gz", "webarchive/core/pywb__iana.warc.gz"


def page(number: int, url: str, title: str | None, **others: object) -> Capture:
    host, _, path = url.partition("://")[2].partition("/")
    labels = host.removeprefix("www.").split(".")
    fields = {
        "url": url,
        "url_host_name": host,
        "url_host_registered_domain": ".".join(labels[-2:]),
        "url_surtkey": f"{','.join(labels[::-1])})/{path}",
        "title": title,
        "fetch_status": 200,
        "content_mime_type": "text/html" if title else "image/png",
    }
    return capture(number, **fields | others)


def filled(world: World) -> None:
    """Publish pages and many images, which come last, in two publishes."""
    pages = [(url, title) for url, (title, *_) in _PAGES.items()]
    images = [
        page(1000 + n, f"{url}{'' if url.endswith('/') else '/'}img/mapa-{n}.png", None)
        for n, url in enumerate([url for url in _PAGES for _ in range(4)])
    ]
    for turn in range(2):
        world.add(
            [page(n, *pages[n]) for n in range(len(pages)) if n % 2 == turn] + images[turn::2]
        )


def ask(world: World, text: str, limit: int = 3, **filters: str) -> SearchPage:
    repository = world.repository()
    searching = WordSearch(repository.catalogue, repository.files)
    return searching.find(world.newest(), parse(text, **filters), None, limit)  # type: ignore[arg-type]


def lost(world: World) -> Sequence[str]:
    """Return the queries whose page is not among the first three hits."""
    return [
        text for text, url in _QUERIES.items() if url not in [h.url for h in ask(world, text).hits]
    ]


def test_a_query_has_its_page_among_the_first_three(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(world)
    assert lost(world) == []
    monkeypatch.setattr(WordSearch, "_is_one_window", lambda *others: False)  # rank by rank
    assert lost(world) == []
    firsts = ("knihovna", "brno", "mapy", "univerzita", "mapa", "knihy")
    assert [ask(world, text).hits[0].url for text in firsts] == [_QUERIES[text] for text in firsts]


def test_what_answered_comes_before_errors_and_redirects(world: World) -> None:
    hosts = {"a.cz": 200, "b.cz": 404, "c.cz": 301, "d.cz": 503}
    pages = [
        page(n, f"http://{host}/robots.txt", "Nenalezeno", fetch_status=status)
        for n, (host, status) in enumerate(hosts.items())
    ]
    plain = {"content_mime_type": "text/plain", "fetch_date": "2006-01-01T00:00:00Z"}
    pages.append(page(8, "http://www.brno.cz/text/robots.txt", None, **plain))
    pages.append(page(9, "http://www.brno.cz/text/robots.txt", "Chyba", fetch_status=404))
    world.add(pages)
    first, second, *others = ask(world, "robots.txt", 9).hits
    assert (first.url, second.url) == (
        "http://a.cz/robots.txt",
        "http://www.brno.cz/text/robots.txt",
    )
    assert (second.date, second.captures) == ("2006-01-01T00:00:00Z", 2)
    assert len(others) == 3


def test_runs_of_earlier_versions_are_ranked_by_what_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves = Draft.leaves
    with monkeypatch.context() as earlier:
        earlier.setattr(Draft, "leaves", lambda *a, ranked=False: leaves(*a))
        plain = "SELECT rtrim(word, chr(1) || chr(2) || chr(3) || chr(4)) AS word"
        earlier.setattr(written, "_NARROW", written._NARROW.replace("SELECT word", plain))
        filled(world)
    assert not any(leaf.ranked for leaf in world.newest().tables["words"])
    assert lost(world) == []
    world.add([page(n + 500, f"http://www.mestska-knihovna.cz/{n}", "Praha") for n in range(3)])
    assert {leaf.ranked for leaf in world.newest().tables["words"]} == {False, True}
    assert "http://www.mestska-knihovna.cz/" in [h.url for h in ask(world, "knihovna").hits]


def test_totals_are_exact_for_few_hits_and_else_at_least(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(world)
    result = ask(world, "mapa", 2)
    assert (result.total, result.is_whole) == (len(ask(world, "mapa", 999).hits), True)
    assert result.facets["media"] == {"image/png": 4 * len(_PAGES), "text/html": 2}
    monkeypatch.setattr(search, "_WINDOW", 8)
    monkeypatch.setattr(search, "_AT_ONCE", 4)
    some = ask(world, "mapa", 2)
    assert some.total is not None
    assert 2 <= some.total < result.total
    assert not some.is_whole


@pytest.mark.skipif(not (_REAL / _LIBRARY).exists(), reason=f"no {_LIBRARY} at {_REAL}")
def test_the_home_page_of_a_library_comes_first(world: World) -> None:
    for name in (_LIBRARY, *_PUBLISHED):
        with (_REAL / name).open("rb") as file:
            entries = list(ArchiveReader(file, Path(name).name, DocumentRules()))
        world.add([entry for entry in entries if isinstance(entry, Capture)])
    library = "http://www.knihovna-lipova.cz/"
    wanted = dict.fromkeys(("knihovna", "knihovna lipová", "knih*"), library) | {
        "iana": "http://www.iana.org/",
        "lil projects": "https://lil.law.harvard.edu/projects/",
        "root zone": "http://www.iana.org/domains/root",
        "IANA protocols": "http://www.iana.org/protocols",
        "reserved domains": "http://www.iana.org/domains/reserved",
        '"library innovation lab"': "https://lil.law.harvard.edu/projects/",
    }
    assert {text: ask(world, text).hits[0].url for text in wanted} == wanted
