"""A large space of requests, each answer of which is held against a model of the protocol."""

import os
from functools import cache
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from . import protocol, world
from .client import Page, content
from .space import SUBJECTS, Sent, request
from .validity import valid
from .verdict import right
from .world import World

TOGETHER = 25
"""Requests of one example: (80 + 10 + 10) * 25 for each of eight subjects are 20,000."""
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
# As in tests/machine: only the long profile takes other examples each time.
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
    reply = place.client.application(sent.event(), None)
    if reply["statusCode"] != 200:
        outcomes = protocol.expected(sent.ask, place.description, place.given)
        assert any(reply["statusCode"] in o.statuses for o in outcomes), (sent.ask, reply)
        return
    assert reply["headers"]["Content-Type"] == "text/xml; charset=utf-8"
    if sent.ask.method == "HEAD":
        assert reply["body"] == ""
        head, reply = reply, place.client.application(sent.event("GET"), None)
        assert head["headers"] == reply["headers"], sent.ask
    right(Page(valid(content(reply))), sent.ask, place)


def explored(place: World, subject: str, examples: int) -> None:
    """Ask `examples` times by `TOGETHER` requests that one seed picks."""

    @settings(BUDGET, max_examples=examples * (50 if LONG else 1))
    @given(st.integers(0, 2**64))
    def every(start: int) -> None:
        pick = Random(start)
        for _ in range(TOGETHER):
            answered(request(pick, place, subject), place)

    every()


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_request_to_a_rich_repository_is_answered_right(subject: str):
    explored(rich(), subject, 80)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_request_to_one_without_sets_is_answered_right(subject: str):
    explored(bare(), subject, 10)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_request_to_an_empty_one_is_answered_right(subject: str):
    explored(empty(), subject, 10)
