"""The first page over a store: the largest of all collections, and what was published last."""

from dataclasses import replace
from datetime import timedelta

import pytest

from builder.publish.selection import Selection
from functions.site.assembly import site_over
from tests.builder.conftest import World, capture
from tests.functions.oai.client import Client, Clock
from tests.functions.site.crawl import Crawl, Visit

MANY = 101
"""Collections, more than a page of their list has."""


@pytest.fixture
def front(world: World) -> Crawl:
    """Give the pages of a store with many collections, the last of which are the largest."""
    captures = [
        capture(
            number,
            sets=(f"collection:c{min(number, MANY - 1):03}",),
            fetch_date=f"20{10 + number // MANY}-05-03T10:00:00Z",
        )
        for number in range(MANY + 2)
    ]
    world.add([*captures, replace(captures[0], identity="again", sets=("collection:c050",))])
    return open_pages(world)


def open_pages(world: World) -> Crawl:
    """Return the pages of a store an hour later."""
    repository, clock = world.repository(), Clock(world.clock.now + timedelta(hours=1))
    return Crawl(Client(repository, clock, pages=site_over(repository)))


def list_newest(world: World) -> list[str]:
    """Return the titles of the live captures with the highest positions."""
    live = [str(record.fields["title"]) for record in world.listed() if not record.deleted]
    return live[:-7:-1]


def texts(visit: Visit, section: str, path: str = "//li") -> list[str]:
    items = visit.tree.xpath(f"//section[@aria-labelledby='{section}']{path}")
    return [" ".join(" ".join(item.itertext()).split()) for item in items]


def test_the_largest_collections_are_the_largest_of_all(front: Crawl) -> None:
    visit = front.read("/")
    largest = texts(visit, "collections")
    assert [line.partition(",")[0] for line in largest[:3]] == [
        "Collection c100 3 archived copies",
        "Collection c050 2 archived copies",
        "Collection c000 1 archived copy",
    ]
    assert len(largest) == 6
    assert "The copies were captured from 3 May 2010 to 3 May 2011." in visit.text


def test_all_collections_are_on_pages_that_follow_each_other(front: Crawl) -> None:
    path, names = "/collections", list[str]()
    while path:
        tree = front.read(path).tree
        names += tree.xpath("//article/h2/a/text()")
        path = next(iter(tree.xpath("//a[@rel='next']/@href")), "")
    assert sorted(names) == [f"Collection c{number:03}" for number in range(MANY)]


def test_the_newest_records_are_those_before_all_collections(front: Crawl, world: World) -> None:
    assert texts(front.read("/"), "newest", "//li/a") == list_newest(world)


def test_the_newest_records_are_of_several_urls_however_often_each_was_captured(
    world: World,
) -> None:
    first = [capture(number) for number in range(5)]
    dates = [f"2011-05-{1 + n // 24:02}T{n % 24:02}:00:00Z" for n in range(100)]
    world.add(
        [
            replace(item, identity=f"{item.url} {date}", fetch_date=date)
            for item in first
            for date in dates
        ]
    )
    assert len(texts(open_pages(world).read("/"), "newest", "//li/a")) == 5


def test_the_newest_records_are_found_behind_what_was_withdrawn(world: World) -> None:
    """A publish of removals alone, more than are read at first, hides nothing."""
    world.add([capture(number) for number in range(200)])
    world.withdraw(Selection(set="mime:text:html"))
    assert texts(open_pages(world).read("/"), "newest", "//li/a") == list_newest(world)
