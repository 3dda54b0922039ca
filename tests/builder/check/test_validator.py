"""The checks of the official validator are a subset: each of its tests is in our table."""

import re
from pathlib import Path

import pytest

from builder.check.checks import load_checks
from tests.e2e.conftest import SHARED

VALIDATOR = SHARED / "validator" / "lib" / "HTTP" / "OAIPMH" / "Validator.pm"
DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "checks.md"


def rows() -> dict[str, set[str]]:
    """Return the checks of each test of the validator, as the document has them."""
    section = DOCUMENT.read_text("utf-8").partition("## The official validator")[2]
    table = section.partition("\n## ")[0]
    return {
        name: {*re.findall(r"`(\w+)`", checks)}
        for names, checks in re.findall(r"^\| (`[^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    }


def test_the_checks_of_the_table_exist() -> None:
    assert set().union(*rows().values()) <= {*load_checks()}


def test_each_test_that_the_validator_can_fail_is_in_the_table() -> None:
    if not VALIDATOR.is_file():
        pytest.skip("shared/data/validator is not here")
    name, failing = "", set[str]()
    for line in VALIDATOR.read_text("utf-8").splitlines():
        if match := re.match(r"sub (\w+)", line):
            name = match[1]
        if re.search(r"log->(fail|warn)\(|self->abort\(", line):
            failing.add(name)
    # These two only stop it, and count.
    assert failing - {"abort", "failures"} == {*rows()}
