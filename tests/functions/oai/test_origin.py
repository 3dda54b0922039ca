"""Requests that bypass the proxy in front of the API: who has no secret is refused."""

from typing import Any

import pytest

from functions.http import origin
from tests.functions.oai.gateways import KINDS

SECRET = "aVeryLongSecretOfThirtyTwoLetters"
HERE = {origin.VARIABLE: SECRET}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "DELETE"])
def test_only_who_sends_the_secret_is_trusted(kind: Any, method: str) -> None:
    for sent in ({}, {origin.HEADER: ""}, {origin.HEADER: SECRET[:-1]}, {origin.HEADER: "\ud800"}):
        assert not origin.is_trusted(kind("verb=Identify", method, headers=sent), HERE)
    event = kind("verb=Identify", method, headers={origin.HEADER: SECRET})
    assert origin.is_trusted(event, HERE)


@pytest.mark.parametrize("event", [None, [], {}, {"headers": None}, {"headers": {"a": []}}, "x"])
def test_an_event_of_any_form_is_refused_and_never_raises(event: object) -> None:
    assert not origin.is_trusted(event, HERE)
    assert origin.is_trusted(event, {})  # nothing stands in front
    assert origin.is_trusted(event, {origin.VARIABLE: ""})
