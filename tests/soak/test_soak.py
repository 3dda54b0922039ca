"""The soak test itself: its plan is that of its seed, it keeps its counts, and it finds faults."""

import json
import os
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import pytest

from tests.extent import SECONDS
from tests.soak.plan import SKEW, WriterPlan
from tests.soak.promises import CopiedRecord, check_items, read_copy
from tests.soak.report import Report, table
from tests.soak.soak import soak
from tests.soak.stores import open_place

LONG = pytest.mark.skipif("RACE_SECONDS" not in os.environ, reason="RACE_SECONDS is not given")


def test_a_seed_gives_one_plan_in_which_each_step_relies_on_those_before() -> None:
    steps = list(islice(WriterPlan(7, "writer0").steps(), 300))
    assert steps == list(islice(WriterPlan(7, "writer0").steps(), 300))
    assert steps != list(islice(WriterPlan(8, "writer0").steps(), 300))
    withdrawn: set[str] = set()
    there: set[str] = set()
    published: set[str] = set()
    for step in steps:
        names = {item.identifier for item in step.items}
        removed = {item.identifier for item in step.items if item.removed}
        assert removed <= published  # others leave no record behind
        there |= names
        if step.command == "publish":
            published |= there
        if step.command == "withdraw":
            assert not names & withdrawn
            withdrawn |= names
        elif step.command == "reinstate":
            assert names <= withdrawn
            withdrawn -= names
        elif step.items:
            assert not names & withdrawn
        assert abs(step.fault.skew) <= SKEW
    for step, later in pairwise(steps):  # an archive brings back what no kept snapshot has
        comes_again = step.command == "reinstate" and bool(later.archive)
        assert step.goes_on == (comes_again and later.items == step.items)
    assert any(step.goes_on for step in steps)
    # A test of three minutes comes no further than these.
    begun = [step.command for step in steps[:5]]
    assert begun == ["ingest", "ingest", "publish", "withdraw", "reinstate"]


def test_what_a_store_lost_or_a_harvester_stored_twice_is_reported(tmp_path: Path) -> None:
    report = Report()
    (step,) = islice(WriterPlan(7, "writer0").steps(), 1)
    expected = {item.identifier: item for item in step.items}
    fresh = {
        name: CopiedRecord("2026-01-01T00:00:00Z", False, ("mime:text:html",), item.title, "")
        for name, item in expected.items()
    }
    check_items(expected, fresh, report)
    assert not report.broken
    name = next(iter(fresh))
    check_items(expected, {**fresh, name: replace(fresh[name], deleted=True)}, report)
    check_items(expected, {n: r for n, r in fresh.items() if n != name}, report)
    assert len(report.broken) == 2
    row = {"identifier": "a", "datestamp": "b", "deleted": True, "record": "c"}
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "p").write_text(f"{json.dumps(row)}\n" * 2)
    state = {"prefix": "oai_dc", "parts": [{"name": "p"}]}
    (tmp_path / "a" / "harvest.json").write_text(json.dumps(state))
    read_copy(tmp_path, report)
    assert "stored twice" in report.broken[2]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["folder", "moto", pytest.param("seaweedfs", marks=LONG)])
def test_a_short_soak_breaks_no_promise(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writers, an expiry, harvesters and a server at once, each a process that is killed."""
    # Seconds: clocks differ by two, and a pointer is kept for two.
    monkeypatch.setenv("SOAK_REMEMBERED", "6")
    with open_place(name, tmp_path) as place:
        report = soak(place, tmp_path, SECONDS, seed=25)
    print(table({name: report}))
    assert not report.broken
    assert report.counts["done", "publish"] > 1
    assert report.counts["done", "reinstate"]
    assert report.total("harvest") > 2
    assert report.total("kill")
