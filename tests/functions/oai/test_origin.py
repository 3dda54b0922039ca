"""Requests that bypass the proxy in front of the API: who has no secret is refused."""

from typing import Any

import pytest

from functions.http import origin
from functions.http.http_message import Call
from tests.functions.oai.client import call_of
from tests.functions.oai.gateways import KINDS

SECRET = "aVeryLongSecretOfThirtyTwoLetters"
HERE = {origin.VARIABLE: SECRET}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "DELETE"])
def test_only_who_sends_the_secret_is_trusted(kind: Any, method: str) -> None:
    def call(headers: dict[str, str]) -> Call:
        return call_of(kind("verb=Identify", method, headers=headers))

    for sent in ({}, {origin.HEADER: ""}, {origin.HEADER: SECRET[:-1]}, {origin.HEADER: "\ud800"}):
        assert not origin.is_trusted(call(sent), HERE)
        assert origin.is_trusted(call(sent), {})  # nothing stands in front
    assert origin.is_trusted(call({origin.HEADER: SECRET}), HERE)
