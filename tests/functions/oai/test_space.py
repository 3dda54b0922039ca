"""A large space of requests, each answer of which is held against a model of the protocol."""

import base64
from collections import Counter
from functools import cache
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.extent import LONG, examples
from tests.functions.oai import protocol, world
from tests.functions.oai.client import Page, content, event, respond
from tests.functions.oai.protocol import Ask
from tests.functions.oai.space import SUBJECTS, Sent, request
from tests.functions.oai.validity import codes, valid
from tests.functions.oai.verdict import right
from tests.functions.oai.world import World

pytestmark = pytest.mark.shared(2)

FORM = {"content-type": "application/x-www-form-urlencoded"}
TOGETHER = 40
"""Requests of one example: (25 + 6 + 6) * 40 for each of eight subjects are 11,840."""
# As in tests/interleaving: only the long profile takes other examples each time.
BUDGET = settings(
    deadline=None,
    database=None,
    derandomize=not LONG,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@cache
def rich() -> World:
    return world.world(world.RICH)


@cache
def bare() -> World:
    return world.world(world.BARE, 2)


@cache
def empty() -> World:
    return world.world(world.EMPTY)


def answered(sent: Sent, place: World) -> None:
    """Ask, and hold that the answer is right."""
    reply = respond(place.client.application, sent.event(), None)
    if reply["statusCode"] != 200:
        outcomes = protocol.expected(sent.ask, place.description, place.given)
        assert any(reply["statusCode"] in o.statuses for o in outcomes), (sent.ask, reply)
        return
    assert reply["headers"]["Content-Type"] == "text/xml; charset=utf-8"
    if sent.ask.method == "HEAD":
        assert reply["body"] == ""
        head, reply = reply, respond(place.client.application, sent.event("GET"), None)
        assert head["headers"] == reply["headers"], sent.ask
    right(Page(valid(content(reply))), sent.ask, place)


def explored(place: World, subject: str, examples: int) -> None:
    """Ask `examples` times by `TOGETHER` requests that one seed picks."""

    @settings(BUDGET, max_examples=examples * (100 if LONG else 1))
    @given(st.integers(0, 2**64))
    def every(start: int) -> None:
        pick = Random(start)
        for _ in range(TOGETHER):
            answered(request(pick, place, subject), place)

    every()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_request_to_a_rich_repository_is_answered_right(subject: str):
    explored(rich(), subject, 25)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_request_to_one_without_sets_is_answered_right(subject: str):
    explored(bare(), subject, 6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_request_to_an_empty_one_is_answered_right(subject: str):
    explored(empty(), subject, 6)


@pytest.mark.parametrize(
    "query",
    [
        "verb=ListRecords&resumptionToken=%00",
        "verb=ListSets&resumptionToken=%ED%A0%80",
        "verb=ListIdentifiers&resumptionToken=a%EF%BF%BE",
        "verb=ListRecords&resumptionToken=%FF",
        "verb=ListRecords&resumptionToken=a%09b",
        "verb=ListRecords&resumptionToken=%F0%9F%98%80",
        "verb=ListRecords&resumptionToken=",
        "verb=GetRecord&metadataPrefix=oai_dc&identifier=http://user@example.org/",
        "verb=GetRecord&metadataPrefix=oai_dc&identifier=ftp://a:b;c@example.org:21/x",
        "verb=ListMetadataFormats&identifier=http://a@b@c/",
        "verb=GetRecord&metadataPrefix=oai_dc&identifier=+",
        "verb=GetRecord&metadataPrefix=marc&identifier=oai:none:1",
        "verb=ListRecords&metadataPrefix=marc&set=nope",
        "verb=ListRecords&metadataPrefix=oai_dc&from=2026-03-01&until=2026-03-01T00:00:00Z",
        "verb=ListRecords&metadataPrefix=oai_dc&until=0001-01-01",
        "verb=ListRecords&metadataPrefix=oai_dc&from=9999-12-31T23:59:59Z",
    ],
)
def test_what_was_wrong_once_or_is_easily_wrong(query: str):
    for method in ("GET", "HEAD"):
        answered(Sent(Ask(method, query)), rich())


@example(b"verb=GetRecord&identifier=%00&metadataPrefix=oai_dc")
@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_answered(query: bytes):
    text = query.decode("latin-1")
    for call in (
        event(text),
        event(method="POST", headers=FORM, body=text),
        event(method="POST", headers=FORM, body=base64.b64encode(query).decode(), encoded=True),
    ):
        reply = respond(rich().client.application, call)
        assert reply["statusCode"] == 200
        assert codes(valid(content(reply)))


def test_the_space_holds_each_kind_of_answer():
    """By the model alone: what is never asked for is never tested."""
    counts: Counter[str] = Counter()
    for subject in SUBJECTS:
        for place, many in ((rich(), 600), (bare(), 100), (empty(), 100)):
            pick = Random(subject)
            for _ in range(many):
                sent = request(pick, place, subject)
                outcome = protocol.expected(sent.ask, place.description, place.given)[-1]
                counts.update(outcome.required or [outcome.attributes["verb"]])
    kinds = {*protocol.VERBS, "badVerb", "badArgument", "badResumptionToken", "idDoesNotExist"}
    kinds |= {"cannotDisseminateFormat", "noRecordsMatch", "noMetadataFormats", "noSetHierarchy"}
    assert set(counts) == kinds
    assert min(counts.values()) >= 20, counts
