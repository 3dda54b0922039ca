"""Formats that are made otherwise from some instant on: datestamps, selections and lists."""

from datetime import timedelta

import pytest

from functions.snapshot import instant
from tests.functions.oai.client import START, Client, Page
from tests.functions.reading.memory import MemoryRepository, capture

HOUR = timedelta(hours=1)
OLD, REMADE, NEW = START - 3 * HOUR, START - 2 * HOUR, START - HOUR


def text(when) -> str:
    return instant.to_text(when)


def stamps(page: Page) -> dict[str, str]:
    names = [name[-2:] for name in page.identifiers]
    return dict(zip(names, page.text("datestamp"), strict=True))


def published(repository: MemoryRepository, numbers: range, when) -> None:
    changes = {f"oai:example.org:{n:02}": capture(f"http://a.cz/{n}", "a:b") for n in numbers}
    repository.publish(changes, when)


@pytest.fixture
def client(clock) -> Client:
    """Two captures; from an hour later on Dublin Core is made otherwise; later there are three."""
    repository = MemoryRepository()
    published(repository, range(2), OLD)
    repository.remake("oai_dc", REMADE)
    published(repository, range(2, 3), NEW)
    return Client(repository, clock)


@pytest.mark.parametrize("verb", ["ListRecords", "ListIdentifiers"])
def test_a_record_is_dated_when_its_format_was_made_otherwise(client, verb):
    expected = {"00": text(REMADE), "01": text(REMADE), "02": text(NEW)}
    assert stamps(client.get(verb, metadataPrefix="oai_dc")) == expected
    own = {"00": text(OLD), "01": text(OLD), "02": text(NEW)}
    assert stamps(client.get(verb, metadataPrefix="mods")) == own
    for prefix, date in (("oai_dc", REMADE), ("mods", OLD)):
        name = "oai:example.org:00"
        page = client.get("GetRecord", identifier=name, metadataPrefix=prefix)
        assert stamps(page) == {"00": text(date)}


def test_dates_select_by_it(client):
    def found(prefix: str, **dates: str) -> list[str]:
        page = client.get("ListIdentifiers", metadataPrefix=prefix, **dates)
        return sorted(stamps(page)) if not page.codes else page.codes

    after = text(REMADE + timedelta(seconds=1))
    assert found("oai_dc", from_=text(REMADE)) == ["00", "01", "02"]
    assert found("oai_dc", from_=after) == ["02"]
    assert found("oai_dc", until=text(REMADE)) == ["00", "01"]
    assert found("oai_dc", until=text(REMADE - timedelta(seconds=1))) == ["noRecordsMatch"]
    assert found("mods", from_=text(REMADE)) == ["02"]
    assert found("mods", until=text(OLD)) == ["00", "01"]
    assert found("oai_dc", from_=text(REMADE), set="a") == ["00", "01", "02"]


def rest(client: Client, page: Page) -> dict[str, str]:
    """Return the datestamps of what comes on the pages behind one, and check their counts."""
    found: dict[str, str] = {}
    count = len(page.identifiers)
    while page.next:
        page = client.get("ListIdentifiers", resumptionToken=page.next)
        assert page.token.get("cursor") == str(count)
        count += len(page.identifiers)
        found |= stamps(page)
    assert page.token.get("completeListSize") == str(count)
    return found


@pytest.mark.parametrize("retired", [False, True])
def test_a_list_gives_all_of_it_again_where_it_is_made_otherwise_meanwhile(clock, retired):
    """Else a harvester that asks next from the last page's date has some of the old ones."""
    repository = MemoryRepository()
    published(repository, range(10), OLD)
    client = Client(repository, clock, pages_identifiers=4)
    page = client.get("ListIdentifiers", metadataPrefix="oai_dc")
    other = client.get("ListIdentifiers", metadataPrefix="mods")
    repository.remake("oai_dc", START + HOUR, START + HOUR)
    if retired:
        repository.retire(1)
    clock.move(7200)
    assert rest(client, page) == {f"{n:02}": text(START + HOUR) for n in range(10)}
    assert rest(client, other) == {f"{n:02}": text(OLD) for n in range(4, 10)}


def test_a_list_that_ends_before_it_is_made_otherwise_ends(clock):
    repository = MemoryRepository()
    published(repository, range(10), OLD)
    client = Client(repository, clock, pages_identifiers=4)
    page = client.get("ListIdentifiers", metadataPrefix="oai_dc", until=text(START))
    repository.remake("oai_dc", START + HOUR, START + HOUR)
    clock.move(7200)
    assert rest(client, page) == {f"{n:02}": text(OLD) for n in range(4, 10)}
