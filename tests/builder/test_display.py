"""What commands count, in one and in many."""

import re
from pathlib import Path

import pytest

from builder.text import tally


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (tally(1, "run"), "1 run"),
        (tally(0, "run"), "0 runs"),
        (tally(1200, "run"), "1,200 runs"),
        (tally(1, "further copy", "further copies"), "1 further copy"),
        (tally(2, "further copy", "further copies"), "2 further copies"),
    ],
)
def test_one_is_one_and_all_else_is_many(text: str, expected: str) -> None:
    assert text == expected


def test_no_command_counts_otherwise() -> None:
    """A number and the plural of a noun, side by side in a text, would be wrong for one."""
    nouns = "runs|snapshots|files|objects|records|captures|sets|faults|items|rows|pages|bytes"
    for path in (Path(__file__).parents[2] / "builder" / "commands").rglob("*.py"):
        assert not re.findall(rf"\}} (?:[a-z]+ )?(?:{nouns})\b", path.read_text("utf-8")), path
