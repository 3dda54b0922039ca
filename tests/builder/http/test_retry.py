"""How long servers ask to be left alone, in each of the ways in which they say so."""

import itertools
import re
import threading

import pytest

from builder.http import limits, politeness
from builder.http.errors import FetchError
from builder.http.politeness import HostPolicy, HostQueue

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {}, None),
        (429, {"retry-after": "7"}, 7),
        (503, {"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30),
        (429, {"retry-after": "Thu, 14 Jan 2027 08:00:00 GMT"}, 0),
        (429, {"retry-after": "soon"}, None),
        (429, {"x-ratelimit-reset": "40"}, 40),
        (429, {"x-ratelimit-reset": "1800000050"}, 50),
        (429, {"x-ratelimit-reset": "1800000050.5"}, 50),
        (429, {"x-ratelimit-reset": "1800000050000"}, 50),
        (429, {"x-ratelimit-reset": "9" * 5000}, None),
        (429, {"x-ratelimit-reset": "1800000050", "retry-after": "3"}, 3),
        (200, {"x-ratelimit-reset": "40"}, None),
        (403, {"x-ratelimit-reset": "40"}, None),
        (403, {"x-ratelimit-reset": "40", "x-ratelimit-remaining": "1"}, None),
        (403, {"x-ratelimit-reset": "40", "x-ratelimit-remaining": "0"}, 40),
    ],
)
def test_the_seconds_that_are_asked_for(
    status: int, headers: dict[str, str], seconds: float | None
) -> None:
    found = limits.find_wish(headers, status, NOW)
    if len(headers.get("x-ratelimit-reset", "")) > 1000:  # any number of years
        assert found is not None
        assert found > 1e9
    else:
        assert found == seconds


def test_a_host_that_rests_is_announced_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(politeness, "_TICK", 0.001)
    seconds = itertools.count(100)
    clock = lambda: float(next(seconds))  # noqa: E731
    hosts = HostQueue(HostPolicy(rest=30), threading.Event(), clock)
    hosts.fail("a.cz", FetchError("server-error", "HTTP status 500"))
    with hosts.slot("a.cz"):
        pass
    lefts = [re.fullmatch(r"a.cz: (.*): asking again in (\d+) s", text) for text in caplog.messages]
    assert {left[1] for left in lefts if left} == {"server-error: HTTP status 500"}
    assert [int(left[2]) for left in lefts if left] == [27, 15]
