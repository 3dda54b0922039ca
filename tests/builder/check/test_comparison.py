"""What only two visits show: each change between them is named by one check, and by no other."""

import json
from pathlib import Path
from typing import Any

import pytest

from builder.check.checks import load_checks
from builder.check.comparison import compare, describe_changes, join, read_report
from builder.errors import UsageError
from tests.builder.check.cards import make_card, make_check, make_record

Report = dict[str, Any]
LATE = "2026-11-02T00:00:00Z"
"""A datestamp after the first visit."""
MISSING = {"identifier": "oai:a:2", "prefix": "oai_dc", "missing": "idDoesNotExist"}


def rows(*changed: Report, most: int = 3) -> list[Report]:
    """Return the sample with the records that changed in place of the ones of their number."""
    own = {row["identifier"]: row for row in [make_record(n) for n in range(1, most + 1)]}
    return [*(own | {row["identifier"]: row for row in changed}).values()]


def formats(**fields: str) -> Report:
    return {"formats": [make_card()["facts"]["formats"][0] | fields]}


def marcxml(**fields: Any) -> Report:
    return make_record(2, prefix="marcxml", **fields)


CHANGES: dict[str, tuple[list[str], Report, Report]] = {
    # name: checks that fail, what the second visit saw, what the facts of both are
    "nothing": ([], {}, {}),
    "changed": ([], {"sample": rows(make_record(2, datestamp=LATE, digest="other"))}, {}),
    "deleted": ([], {"sample": rows(make_record(2, datestamp=LATE, digest="", deleted=True))}, {}),
    "new": ([], {"sample": [*rows(), make_record(4, datestamp=LATE)]}, {"new": {"records": 4}}),
    "vanished": (["C01"], {"sample": rows(MISSING)}, {"new": {"records": 2}}),
    "vanished, as announced": (
        ["C02"],
        {"sample": rows(MISSING)},
        {"both": {"deleted_record": "no"}},
    ),
    "deleted as one format": (
        ["C03"],
        {"sample": [*rows(), marcxml(datestamp=LATE, digest="", deleted=True)]},
        {"sample": [*rows(), marcxml()]},
    ),
    "appeared late": (["C04"], {"sample": rows(most=4)}, {}),
    "changed late": (
        ["C04"],
        {"sample": rows(make_record(2, datestamp="2025-02-01T00:00:00Z", digest="other"))},
        {},
    ),
    "late by days": (
        ["C04"],
        {"sample": [*rows(), make_record(4, datestamp="2026-10-30")]},
        {},
    ),
    "new on the day of the visit": (
        [],
        {"sample": [*rows(), make_record(4, datestamp="2026-11-01")]},
        {},
    ),
    "of a longer list": (
        [],
        {"sample": rows(most=4)},
        {"both": {"walked": {"prefix": "oai_dc", "pages": 9, "records": 900, "ended": False}}},
    ),
    "renumbered": (
        ["C05"],
        {"sample": rows(MISSING, make_record(4, identifier="oai:b:2", digest="d2"))},
        {},
    ),
    "another repository": (
        ["C05"],
        {
            "sample": [
                *(MISSING | {"identifier": f"oai:a:{n}"} for n in (1, 2, 3)),
                make_record(9, identifier="oai:b:9"),
            ]
        },
        {},
    ),
    "moved": (["C06"], {"url": "http://b/oai"}, {}),
    "renamed": (["C07"], {"name": "Another library"}, {}),
    "other rule for deletions": (["C07"], {}, {"new": {"deleted_record": "no"}}),
    "restored": (["C08"], {"sample": rows(make_record(2, datestamp="2024-01-01"))}, {}),
    "clock mended": (["C09"], {}, {"old": {"clock": 46_800}}),
    "clock ahead": ([], {}, {"new": {"clock": 46_800}}),
    "fewer records": (["C10"], {}, {"new": {"records": 2}}),
    "format gone": (["C11"], {}, {"new": formats(prefix="mods")}),
    "other schema": (["C12"], {}, {"new": formats(schema="https://a/s")}),
    "changed unseen": (["C13"], {"sample": rows(make_record(2, digest="other"))}, {}),
    "metadata gone": (["C14"], {"sample": rows(make_record(2, datestamp=LATE, digest=""))}, {}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_named_by_its_check_alone(name: str) -> None:
    numbers, fields, facts = CHANGES[name]
    old, new = make_card(), make_card(begun="2026-11-03T00:00:00Z", **fields)
    old["facts"] |= facts.get("both", {}) | facts.get("old", {})
    new["facts"] |= facts.get("both", {}) | facts.get("new", {})
    old["sample"] = facts.get("sample", old["sample"])
    assert [number for number, *_ in compare(old, new)] == numbers
    assert {*numbers} <= {*load_checks()}


def test_each_check_of_two_visits_is_shown_by_a_change() -> None:
    shown = {number for numbers, *_ in CHANGES.values() for number in numbers}
    assert shown == {name for name in load_checks() if name[0] == "C"}


def test_the_new_report_says_what_got_better_and_worse() -> None:
    old, new = make_card(), make_card(name="Another library")
    new["checks"] = [make_check("H101"), make_check("L104", state="passed")]
    new["facts"]["records"] = 9
    changes = describe_changes(old, new)
    assert [row["number"] for row in changes["worse"]] == ["H101"]
    assert [row["number"] for row in changes["better"]] == ["L104"]
    assert changes["counts"] == [{"name": "records", "old": 3, "new": 9}]
    joined = join(old, new)
    states = {check["number"]: check["state"] for check in joined["checks"]}
    assert (states["C07"], states["C01"]) == ("failed", "passed")
    assert joined["summary"]["verdict"] == "breaks"
    assert joined["summary"]["advice"] == 1
    assert json.loads(json.dumps(joined)) == joined


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 2}', "\xff", None])
def test_what_is_no_report_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "old.json"
    if content is not None:
        path.write_text(content, "latin-1")
    with pytest.raises(UsageError, match=r"old\.json"):
        read_report(path)
