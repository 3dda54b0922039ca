"""The costs that the documentation states are those of the template that is deployed."""

import re
from dataclasses import replace

import pytest

from bench.ceiling import ANSWER, MONTH, TRAFFIC, at_rest, load_limits, price_traffic
from functions.content import cdx, handler
from functions.oai import application
from tests.template import ROOT

PARAMETERS = {"RatePerSecond": "10", "Burst": "100", "Concurrency": "20", "Memory": "1024"}


def test_what_is_stated_at_rest_is_computed() -> None:
    bytes_a_capture = float(_find("README.md", r"all look-ups included \| \[([\d.]+)\]"))
    stated = at_rest(load_limits(), 150e6, bytes_a_capture)
    assert float(_find("README.md", r"\$([\d.]+) a month at rest")) == pytest.approx(
        stated, abs=0.01
    )
    deploy = _find("docs/operations/deploy.md", r"captures cost \$([\d.]+) a month")
    assert float(deploy) == pytest.approx(stated, abs=0.01)


def test_the_largest_answer_is_that_of_the_code() -> None:
    """The ceiling holds only as long as no answer is larger."""
    assert max(application.LARGEST, cdx.LARGEST, handler.PART) == ANSWER


def test_lambda_alone_costs_what_was_found() -> None:
    """Twenty instances of a gigabyte, busy all month: once stated as 340 dollars together."""
    limits = load_limits(**PARAMETERS)
    assert (limits.routes, limits.gigabytes) == (1, 20)
    assert limits.worst_month()["Lambda, all instances busy"] == pytest.approx(714, abs=1)


@pytest.mark.parametrize("name", ["RatePerSecond", "Concurrency", "Memory"])
def test_each_setting_lowers_the_ceiling(name: str) -> None:
    lower = {**PARAMETERS, name: {"RatePerSecond": "5", "Concurrency": "10", "Memory": "512"}[name]}
    before, after = (load_limits(**p).worst_month() for p in (PARAMETERS, lower))
    assert sum(after.values()) < sum(before.values())
    assert all(after[part] <= before[part] for part in before)


def test_without_a_reserve_the_rate_bounds_the_instances() -> None:
    limits = load_limits(**{**PARAMETERS, "Concurrency": "0"})
    assert limits.gigabytes == 10 * 28
    assert limits.requests == 10 * MONTH + 100


def test_content_adds_its_function_and_its_routes() -> None:
    limits = load_limits(**PARAMETERS, Content="yes")
    assert limits.routes > 5
    assert limits.gigabytes > 20
    single = replace(limits, routes=1)
    assert single.worst_month()["traffic"] < limits.worst_month()["traffic"]


def test_traffic_is_priced_by_tiers() -> None:
    first, second, third = (size for size, _ in TRAFFIC[:3])
    assert price_traffic(first) == 0
    assert price_traffic(first + 1) == pytest.approx(0.09)
    assert price_traffic(first + second + third + 1) == pytest.approx(
        second * 0.09 + third * 0.085 + 0.07
    )


def _find(name: str, pattern: str) -> str:
    match = re.search(pattern, (ROOT / name).read_text("utf-8"))
    assert match is not None, pattern
    return match[1]
