"""The page of publishes lists the dumps in the store, as far as it can read of them."""

import json
from collections.abc import Callable
from functools import partial

import pytest

from functions.site.site import make_site
from functions.snapshot.dumps import DumpEntry, DumpIndex, FormatEntry
from functions.snapshot.errors import DamagedStore, StoreError
from functions.snapshot.seal import seal
from tests.functions.oai.client import START, Client, Clock
from tests.functions.oai.conftest import ten_captures
from tests.functions.site.crawl import Crawl

COMPLETE = DumpEntry(
    snapshot=1, records=1_234_567, deleted=0, bytes=9_000, name="jsonl/1-c.json", sha256="1"
)
NEWEST = DumpEntry(
    since=1,
    snapshot=2,
    records=11,
    deleted=0,
    bytes=5_000,
    name="jsonl/2-ab(1).jsonl.zst",
    sha256="0",
)
FORMAT = FormatEntry(complete=COMPLETE, newest=NEWEST, list="jsonl/2-d.json")
INDEX = DumpIndex("", "A", 2, START, {"jsonl": FORMAT})


def crawl(read: Callable[[], DumpIndex | None], **settings: object) -> Crawl:
    pages = partial(make_site, dumps=read)
    return Crawl(Client(ten_captures(), Clock(), pages, **{"publish_dumps": ["jsonl"], **settings}))


@pytest.mark.parametrize("root", ["", "https://data.example.org/store/", "s3://bucket/store"])
def test_dumps_are_listed_and_linked_where_their_address_is_known(root: str) -> None:
    pages = crawl(lambda: INDEX, identify_data_url=root)
    visit = pages.read("/publishes")
    assert "jsonl/1-c.json jsonl all records 1 1,234,567" in visit.text
    assert "jsonl/2-ab(1).jsonl.zst jsonl changes since snapshot 1 2 11" in visit.text
    links = [link for link in visit.links() if "/dumps/" in link]
    web = root.startswith("https")
    names = ("jsonl/1-c.json", "jsonl/2-ab%281%29.jsonl.zst", "jsonl/2-d.json", "index.json")
    assert links == [f"{root}dumps/{name}" for name in names if web]
    rows = pages.read_table("/publishes", "dumps")
    assert [(row["since"], row["bytes"], row["sha256"]) for row in rows] == [
        (None, 9_000, "1"),
        (1, 5_000, "0"),
    ]
    assert [row["address"] for row in rows] == (links[:2] or [None, None])


def test_the_heading_is_in_the_language_of_the_reader() -> None:
    assert "všechny záznamy" in crawl(lambda: INDEX).read("/publishes?lang=cs").text


def test_without_dumps_or_their_index_the_page_is_as_ever() -> None:
    def fail() -> DumpIndex | None:
        raise StoreError("403")

    whole = crawl(lambda: None).read("/publishes").text
    assert "Dumps" not in whole
    assert crawl(fail).read("/publishes").text == whole
    # Where there are none, the index is not even read: each request costs.
    assert crawl(lambda: INDEX, publish_dumps=[]).read("/publishes").text == whole


@pytest.mark.parametrize("count", ["records", "deleted", "bytes"])
def test_an_index_that_lacks_a_count_is_damaged(count: str) -> None:
    assert DumpIndex.from_json(INDEX.to_json()) == INDEX
    document = json.loads(INDEX.to_json())
    del document["formats"]["jsonl"]["complete"][count]
    del document["sha256"]
    with pytest.raises(DamagedStore, match=count):
        DumpIndex.from_json(seal(json.dumps(document).encode()))
