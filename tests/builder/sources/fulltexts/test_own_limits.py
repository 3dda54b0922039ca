"""Failures that another configuration would not cause."""

import pytest

from builder.http.addresses import PublicAddresses, networks
from builder.http.errors import OUTCOMES
from builder.http.limits import Limits
from builder.sources.fulltexts.choice import OwnLimits

GUARD = PublicAddresses(frozenset({80, 8080}), networks(["10.0.0.0/8", "fd00::/8"]))
OWN = OwnLimits(GUARD, Limits(bytes=10_000), obey=True)


@pytest.mark.parametrize(
    ("code", "detail", "expected"),
    [
        ("address-refused", "10.0.0.1", True),
        ("address-refused", "10.0.0.1 is 10.0.0.1", True),
        ("address-refused", "a.org is 127.0.0.1, 10.0.0.1", True),
        (
            "address-refused",
            "not requested: a could not be reached 3 times: a is fd00::1%eth0",
            True,
        ),
        ("address-refused", "a.org is 127.0.0.1, ::1", False),
        ("address-refused", "a.org is ", False),
        ("port-refused", "a.org:8080", True),
        ("port-refused", "a.org:80801", False),
        ("port-refused", "::1:22", False),
        ("port-refused", "a.org:0", False),
        ("too-large", "10,000 bytes", True),
        ("too-large", "10,001 bytes", False),
        ("too-large", "more than 9,999 bytes", True),
        ("too-large", "more than 10,000 bytes", False),
        ("too-large", ", bytes", False),
        ("robots-disallowed", "http://a.org/robots.txt", False),
        ("not-found", "a.org:80", False),
    ],
)
def test_it_is_lifted(code: str, detail: str, expected: bool) -> None:
    assert OWN.lift(code, detail) == expected


def test_each_outcome_of_our_own_can_be_lifted() -> None:
    free = OwnLimits(GUARD, Limits(bytes=10_000), obey=False)
    detail = "a.org is 10.0.0.1, more than 9 bytes"
    for code, outcome in OUTCOMES.items():
        said = "a.org:80" if code == "port-refused" else detail
        assert free.lift(code, said) == outcome.ours
