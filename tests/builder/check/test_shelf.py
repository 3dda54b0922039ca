"""Report cards that `sheaf update` keeps: when they are due, what is written, what a line says."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.check.comparison import join
from builder.check.shelf import describe_card, renew_card
from builder.check.text import Document
from builder.sources.harvest import night
from builder.sources.harvest.night import Standing
from tests.builder.check.cards import HOSTILE, make_card, make_check
from tests.clock import CLOCK


@pytest.mark.parametrize(("days", "due"), [(0, False), (1, True), (7, True), (8, False)])
def test_a_check_is_due_after_so_many_days(days: int, due: bool) -> None:
    now = CLOCK.now()
    standing = Standing(night.WHOLE).note_card("clean", now - timedelta(7))
    assert standing.needs_check(now, days) is due
    assert Standing(night.WHOLE).needs_check(now, days) is (days > 0)
    assert not Standing(night.FAILED).needs_check(now, days)


def test_a_card_is_kept_and_compared_with_the_one_before(tmp_path: Path) -> None:
    cards: list[Document | None] = []

    def visit(before: Document | None) -> dict[str, Any]:
        cards.append(before)
        return join(before, make_card(name="Another library")) if before else make_card()

    line = renew_card(tmp_path, "a", visit)
    assert line.startswith("Harvesters fail here, or lose records. breaks harvesters: L104; ")
    assert "C07" not in line
    assert "C07" in renew_card(tmp_path, "a", visit)
    assert cards == [None, make_card()]
    report = json.loads((tmp_path / "cards" / "a.check.json").read_bytes())
    assert report["comparison"]["begun"] == "2026-11-01T00:00:00Z"
    assert "<h1>Another library</h1>" in (tmp_path / "cards" / "a.html").read_text("utf-8")


def test_a_damaged_card_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards" / "a.check.json").write_text("{")
    assert renew_card(tmp_path, "a", lambda _: make_card())


def test_a_line_has_the_worst_checks_and_nothing_hostile() -> None:
    checks = [make_check(f"L10{n}") for n in range(5)] + [make_check(HOSTILE, "advice")]
    line = describe_card(make_card(checks=checks))
    assert "breaks harvesters: L100, L101, L102 and 2 more; advice: " in line
    assert line.isprintable()
