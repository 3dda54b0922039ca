"""A search finds what a comparison with each record finds, and reads little of a bucket."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from builder.intake.captures import Capture
from builder.publish.selection import Selection
from builder.publish.withdraw import withdraw
from functions.kinds import KINDS
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import PublishedRecord, RecordSelection
from functions.search import postings, search, words
from functions.search.place import SearchPlace, parse_place
from functions.search.query import WordQuery, parse
from functions.search.search import NoWordsError, SearchPage, WordSearch
from functions.snapshot import layout
from functions.snapshot.manifest import Manifest, Span
from tests.builder.conftest import World, capture
from tests.builder.snapshot.test_url_index import damage

pytestmark = pytest.mark.shared(2)

_WORDS = ("Knižnice", "knihy", "zprávy", "東京都", "京都の", "mapa", "Straße", "mapa mapa", "v")
_HOSTS = ("www.a.cz", "knihy.a.cz", "www.xn--bcher-kva.de", "b.org")
_QUERIES = (
    "kniznice",
    "kni*",
    "zpravy mapa",
    '"mapa mapa"',
    '"zpravy mapa"',
    "京都",
    "京",
    "東京都",
    "strasse -mapa",
    "www.a.cz",
    "a.cz/knihy",
    "bucher kni*",
    "v",
    "nonesuch",
    "mapa nonesuch",
    "kniz* -knihy zpr*",
    "x1 knihy",
    "serials",
    "http://www.a.cz/x7",
    "19*",
    '"京都 の"',
)


def drawn(dice: random.Random, number: int) -> Capture:
    host = dice.choice(_HOSTS)
    url = f"http://{host}/{dice.choice(_WORDS[1:3])}/x{number % 7}"
    title = " ".join(dice.choices(_WORDS, k=dice.randrange(5))) or None
    return capture(
        number,
        url=url,
        url_host_name=host,
        title=title,
        fetch_date=f"{1996 + number % 5}-01-01",
        url_surtkey=f"{host})/{number % 7 or ''}",
        fetch_status=404 if number % 11 == 1 else 200,
        fetch_time=None,
    )


def filled(world: World, seed: int) -> None:
    """Publish, change and withdraw, several times."""
    dice = random.Random(seed)
    collections = ("collection:serials",)
    for turn in range(5):
        numbers = dice.sample(range(90), dice.choice((5, 40, 60)))
        world.add([drawn(dice, n) for n in numbers], collections if turn % 2 else ())
        chosen = [f"oai:archive.example.org:{capture(n).identity}" for n in numbers[:2]]
        if turn in (1, 3):
            selection = Selection(identifiers=tuple(chosen))
            withdraw(world.store, world.configuration(), world.runtime(), selection, "asked")


def live(repository: DuckRepository, manifest: Manifest) -> Sequence[PublishedRecord]:
    selection = RecordSelection(tuple(KINDS), Span(1, manifest.last_position))
    page = repository.page(manifest, selection, 10_000, headers=False)
    return [record for record in page if not record.deleted]


def texts_of(record: PublishedRecord) -> list[list[str]]:
    known = record.fields
    if record.kind == "capture":
        return [
            words.units(words.pieces(known["title"] or "")),
            words.units(words.url_pieces(known["url_host_name"], known["url"])),
        ]
    texts = (known["name"], known["set_spec"], record.identifier)
    return [words.units(words.pieces(text)) for text in texts]


def matches(record: PublishedRecord, query: WordQuery) -> bool:
    """Compare as texts, in place of units."""
    date = record.fields.get("fetch_date") or record.fields.get("last_date") or ""
    if query.kind not in (None, record.kind) or not query.holds(date):
        return False
    if query.set and not any(f"{s}:".startswith(f"{query.set}:") for s in record.sets):
        return False
    fields = ["\t".join(["", *units, ""]) for units in texts_of(record)]
    return all(
        any("\t".join(["", *t.units]) + ("" if t.prefix else "\t") in f for f in fields)
        != t.excluded
        for t in query.terms
    )


def pages(
    searching: WordSearch, manifest: Manifest, query: WordQuery, limit: int
) -> Iterator[SearchPage]:
    after = None
    while True:
        page = searching.find(manifest, query, after, limit)
        yield page
        assert len(page.hits) <= limit
        if page.after is None:
            return
        assert after is None or rest_of(page.after) < rest_of(after)
        after = parse_place(page.after.to_text())


def rest_of(place: SearchPlace) -> tuple[int, ...]:
    """Return a number of what is left behind a place, which falls from page to page."""
    return place.rank, place.high, 0 if place.points else 1, place.points or 1, place.position


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(3))
def test_a_search_finds_what_each_record_has(
    world: World, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "GROUP_ROWS", 8)
    monkeypatch.setattr(layout, "WORD_GROUP_ROWS", 8 + seed)
    monkeypatch.setattr(layout, "WORD_FILE_GROUPS", 2)
    monkeypatch.setattr(postings, "PROBE_GROUPS", 2)
    monkeypatch.setattr(postings, "_FEW", 4 * seed)
    monkeypatch.setattr(search, "PREFIX_GROUPS", 2 * seed)
    monkeypatch.setattr(search, "_DENSE", 8 * seed)
    monkeypatch.setattr(search, "_WINDOW", 16 * seed)
    monkeypatch.setattr(search, "_AT_ONCE", 6)
    filled(world, seed)
    repository, manifest = world.repository(), world.newest()
    searching = WordSearch(repository.catalogue, repository.files)
    records, dice = live(repository, manifest), random.Random(seed)
    if seed == 0:
        assert damage(world) == set()
    for text in _QUERIES[seed::2]:
        query = parse(
            text,
            dice.choice((None, None, "collection:serials", "domain:cz:example")),
            dice.choice((None, None, "capture", "collection")),
            dice.choice((None, None, 1998)),
            dice.choice((None, 1999)),
        )
        wanted = {record.identifier: record for record in records if matches(record, query)}
        found = list(pages(searching, manifest, query, dice.choice((2, 5, 50))))
        hits = [hit for page in found for hit in page.hits]
        assert sum(hit.captures for hit in hits) == len(wanted), (text, query)
        assert {hit.identifier for hit in hits} <= wanted.keys()
        urls = {(r.kind, r.fields.get("url_surtkey") or r.identifier) for r in wanted.values()}
        assert len(urls) <= len(hits)
        if found[0].after is None:
            assert found[0].total == len(hits)
        for hit in hits:
            record = wanted[hit.identifier]
            assert (hit.position, hit.kind, hit.sets) == (record.position, record.kind, record.sets)
            assert hit.url == record.fields.get("url")


def rows(world: World) -> set[str]:
    """Return the words that the files of the newest snapshot hold."""
    manifest = world.newest()
    repository = world.repository()
    return {
        word.rstrip("\1\2\3\4")
        for file in repository.catalogue.files(manifest, "words")
        for (word,) in repository.files.rows("SELECT word FROM read_parquet($file)", file)
    }


def test_what_is_withdrawn_leaves_no_word(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do its former versions, and its neighbours keep theirs."""
    monkeypatch.setattr(layout, "GROUP_ROWS", 4)
    monkeypatch.setattr(layout, "WORD_GROUP_ROWS", 4)
    same = {"url_host_name": "www.one.cz", "url_surtkey": "cz,one)/"}
    some = [capture(n, title=f"only{n} shared", **same) for n in range(40)]
    world.add(some)
    world.add([replace(item, title=f"later{n} shared") for n, item in enumerate(some[:9])])
    assert {"only3", "later3", "one"} <= rows(world)
    identifier = f"oai:archive.example.org:{capture(3).identity}"
    selection = Selection(identifiers=(identifier, "oai:archive.example.org:" + some[12].identity))
    withdraw(world.store, world.configuration(), world.runtime(), selection, "asked")
    left = rows(world)
    assert not left & {"only3", "later3", "only12"}
    assert {"only2", "later4", "only11", "only13", "one"} <= left
    assert damage(world) == set()
    repository = world.repository()
    searching = WordSearch(repository.catalogue, repository.files)
    found = list(pages(searching, world.newest(), parse("one shared"), 100))
    assert sum(hit.captures for page in found for hit in page.hits) == 38


def test_a_store_gets_and_loses_its_words(world: World) -> None:
    off = {"SHEAF_SEARCH_WORDS": "false"}
    world.add([capture(n) for n in range(9)], **off)
    assert "words" not in world.newest().tables
    repository = world.repository()
    searching = WordSearch(repository.catalogue, repository.files)
    with pytest.raises(NoWordsError):
        searching.find(world.newest(), parse("page"), None, 10)
    assert world.publish(**off).manifest is None
    world.ingest([capture(n) for n in range(9, 12)])
    world.publish()  # all records get their words
    assert len(searching.find(world.newest(), parse("page"), None, 50).hits) == 12
    assert world.publish(**off).manifest is not None
    assert "words" not in world.newest().tables
    assert world.publish().manifest is not None  # there is nothing else to publish
    assert len(searching.find(world.newest(), parse("page"), None, 50).hits) == 12
    assert world.publish().manifest is None
    assert damage(world) == set()
