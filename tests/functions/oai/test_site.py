"""The page for people."""

from datetime import timedelta

import pytest
from lxml import etree

from tests.functions.oai.client import BASE, START, Client, content
from tests.functions.oai.memory import MemoryRepository, capture


def shown(client: Client) -> etree._Element:
    reply = client.raw(path="/")
    assert reply["statusCode"] == 200
    assert reply["headers"]["Content-Type"] == "text/html; charset=utf-8"
    return etree.HTML(content(reply).decode())


def texts(page: etree._Element, path: str) -> list[str]:
    return ["".join(e.itertext()).strip() for e in page.findall(path)]


def test_the_page_says_what_there_is(client: Client):
    page = shown(client)
    assert texts(page, ".//h1") == ["An unnamed repository"]
    assert texts(page, ".//dd")[0].startswith("2, in effect since 2026-03-01T11:30:00Z")
    assert texts(page, ".//dd")[1] == "2026-03-01T11:00:00Z to 2026-03-01T11:30:00Z"
    assert texts(page, ".//section[1]//tr/td")[:2] == ["capture", "10"]
    assert texts(page, ".//section[2]//code") == ["domain", "mime"]


def test_the_page_says_how_many_records_are_deleted(client: Client):
    page = shown(client)
    (told,) = texts(page, ".//section[1]/p")
    assert told == "9 records, and 1 deleted, of which only the header is left."
    assert texts(page, ".//section[1]//tr/th")[1] == "Records, with deleted ones"
    numbers = texts(page, ".//section[2]//tr/td[@class='number']")
    assert numbers == ["8", "2", "9", "1"]  # one has left its domain


def test_where_nothing_is_deleted_nothing_is_said_of_it(clock):
    repository = MemoryRepository()
    repository.publish({"oai:example.org:a": capture("http://a/")}, START - timedelta(hours=1))
    page = shown(Client(repository, clock))
    assert texts(page, ".//section[1]/p") == ["1 record."]
    assert texts(page, ".//section[1]//tr/th")[1] == "Records"


def test_the_page_links_to_all_verbs_and_each_link_works(client: Client):
    links = [str(a.get("href")) for a in shown(client).findall(".//a")]
    links = [link for link in links if link.startswith(BASE)]
    for link in links:
        reply = client.raw(link.partition("?")[2])
        assert b"<error" not in content(reply)
    verbs = {link.partition("verb=")[2].partition("&")[0] for link in links}
    assert len(verbs) == 6


def test_the_page_loads_nothing_from_elsewhere(client: Client):
    page = shown(client)
    for tag in ("script", "img", "link", "iframe", "object"):
        assert page.findall(f".//{tag}") == []


def test_names_are_text(repository):
    client = Client(
        repository,
        repository_name="<script>alert(1)</script>",
        sets_names={"mime": "<img src=x onerror=alert(1)>"},
    )
    page = shown(client)
    assert texts(page, ".//h1") == ["<script>alert(1)</script>"]
    assert page.findall(".//script") == page.findall(".//img") == []


@pytest.mark.parametrize("specs", [(), ("mime-x:a", "mime:a:b", "mime", "a!20b", "z:y:x", "m(:q")])
def test_sets_at_the_top_are_found_among_all(clock, specs):
    repository = MemoryRepository()
    items = {f"oai:example.org:{n}": capture("http://a/", s) for n, s in enumerate(specs)}
    repository.publish(
        {"oai:example.org:z": capture("http://z/"), **items}, START - timedelta(hours=1)
    )
    page = shown(Client(repository, clock))
    found = texts(page, ".//section[2]//td/a/code") if specs else []
    assert found == sorted({s.partition(":")[0] for s in specs})


def test_a_snapshot_of_nothing_has_a_page(clock):
    repository = MemoryRepository()
    repository.publish({}, START - timedelta(hours=1))
    client = Client(repository, clock)
    assert texts(shown(client), ".//h1") == ["An unnamed repository"]
    assert client.get("Identify").codes == []
    assert client.get("ListRecords", metadataPrefix="oai_dc").codes == ["noRecordsMatch"]
