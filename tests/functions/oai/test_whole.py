"""Whole lists by any pages: what tokens promise, at once, twice, and a week later."""

import re
from datetime import timedelta
from random import Random
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.snapshot import instant
from tests.extent import examples
from tests.functions.oai import world
from tests.functions.oai.client import START, Client, Clock, Page, content
from tests.functions.oai.memory import MemoryRepository, capture
from tests.functions.oai.protocol import Ask, Record, Repository
from tests.functions.oai.space import pairs_of
from tests.functions.oai.test_space import BUDGET, rich, settings
from tests.functions.oai.validity import valid
from tests.functions.oai.verdict import right
from tests.functions.oai.world import DATESTAMPS, KINDS, World

pytestmark = pytest.mark.shared(2)

SETS = ("a", "a:b", "a:b:c", "a-b", "a:d", "~", "mime:text:html")
WEEK = timedelta(days=7).total_seconds()


def raw(client: Client, query: str) -> bytes:
    reply = client.raw(query)
    assert reply["statusCode"] == 200
    return content(reply)


def undated(xml: bytes) -> bytes:
    return re.sub(rb"<responseDate>[^<]*</responseDate>", b"", xml)


def any_repository(pick: Random) -> Repository:
    """Return a description of up to 14 records of any kinds, sets, datestamps."""
    records = []
    for n in range(pick.randint(0, 14)):
        datestamp = pick.choice(DATESTAMPS)
        gone = datestamp != DATESTAMPS[0] and pick.random() < 0.3
        specs = pick.sample(SETS, pick.randint(0, 3))
        specs = [s for s in specs if not any(o.startswith(s + ":") for o in specs)]
        kind = pick.choice([*KINDS])
        records.append(world.record(f"{n:02}", datestamp, *specs, kind=kind, deleted=gone))
    return world.described(records, DATESTAMPS[0])


@settings(BUDGET, max_examples=examples(60))
@given(st.integers(0, 2**32))
def test_any_repository_is_harvested_whole_by_any_pages(seed: int):
    """Making a world harvests its lists; then each page must come again, and be right."""
    pick = Random(seed)
    place = world.world(any_repository(pick), pick.randint(1, 8))
    for token, rest in place.given.items():
        assert len(token) < 200
        query = urlencode({"verb": rest.verb, "resumptionToken": token})
        first = raw(place.client, query)
        place.client.clock.move(pick.choice([1, 60, WEEK]))
        again = raw(place.client, query)
        assert undated(first) == undated(again)
        right(Page(valid(again)), Ask(query=query), place)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("later", [0, 1, 3600, WEEK, 53 * WEEK])
def test_a_token_gives_the_rest_however_late(later: float):
    place = world.world(world.RICH, 2)
    place.client.clock.move(later)
    for token, rest in place.given.items():
        found = []
        for page in place.client.pages(rest.verb, resumptionToken=token):
            assert page.codes == []
            found += page.text("setSpec") if rest.verb == "ListSets" else page.identifiers
        names = {r.identifier if isinstance(r, Record) else r for r in rest.left}
        assert len(found) == len(names)
        assert set(found) == names


def test_the_same_request_gives_the_same_bytes():
    place: World = rich()
    for pairs in pairs_of(place):
        query = urlencode(pairs)
        first = raw(place.client, query)
        place.client.clock.move(1)
        assert undated(first) == undated(raw(place.client, query)), query


def other() -> MemoryRepository:
    """Return another repository, as old and as large as the rich one."""
    repository = MemoryRepository("example.net")
    for n, datestamp in enumerate(DATESTAMPS):
        items = {
            f"oai:example.net:{n}{m}": capture("http://o/", "mime:text:html") for m in range(4)
        }
        repository.publish(items, instant.from_text(datestamp))
    return repository


def test_a_token_of_another_repository_is_bad():
    stranger = world.client(other(), Clock(START), 2)
    for token, rest in rich().given.items():
        if rest.prefix == "simple" or rest.verb == "ListSets":
            page = stranger.get(rest.verb, resumptionToken=token)
            assert page.codes == ["badResumptionToken"], token
            assert page.request == {"verb": rest.verb, "resumptionToken": token}
