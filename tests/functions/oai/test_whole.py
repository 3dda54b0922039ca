"""Whole lists by any pages: what tokens promise, at once, twice, and a year later."""

import re
from datetime import timedelta
from random import Random
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extent import examples
from tests.functions.oai import world
from tests.functions.oai.client import Client, Page, content
from tests.functions.oai.protocol import Ask, Repository
from tests.functions.oai.test_space import BUDGET, settings
from tests.functions.oai.validity import valid
from tests.functions.oai.verdict import right
from tests.functions.oai.world import DATESTAMPS, KINDS

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
        place.client.clock.move(pick.choice([1, 60, WEEK, 53 * WEEK]))
        again = raw(place.client, query)
        assert undated(first) == undated(again)
        right(Page(valid(again)), Ask(query=query), place)
