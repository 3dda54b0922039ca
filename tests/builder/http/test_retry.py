"""How long servers ask to be left alone, in each of the ways in which they say so."""

import pytest

from builder.http import limits

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
