"""Table of checks, and the card on which a visit notes what it saw."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "templates" / "check"
"""Data of the checks."""
SEVERITIES = ("breaks", "specification", "advice")
PASSED, FAILED, NOT_CHECKED = "passed", "failed", "not checked"
MOST = 10
"""Findings of a check that a report has; more are counted."""
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Check:
    """A row of the table: what must hold, and for failures what that means and how to mend it.

    `section` is that of OAI-PMH 2.0, or names a guideline. `software` has remedies by product.
    """

    number: str
    title: str
    section: str
    severity: str
    consequence: str
    mend: str
    software: Mapping[str, str] = field(default_factory=dict)


@cache
def read_table(name: str) -> dict[str, Any]:
    """Return a file of FOLDER."""
    return tomllib.loads((FOLDER / name).read_text("utf-8"))


@cache
def load_checks() -> Mapping[str, Check]:
    """Return the checks by number, in the order of the table."""
    return {row["number"]: Check(**row) for row in read_table("checks.toml")["check"]}


def find_group(number: str) -> str:
    """Return the letter of a check of the table, or the profile of a rule."""
    return number[0] if re.fullmatch(r"[A-Z]\d+", number) else number.rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One violation: what was seen, in one line, where, and in which exchange of the visit.

    `where` is an identifier, a token, a set, or "".
    """

    seen: str
    where: str = ""
    request: int | None = None


@dataclass(slots=True)
class CheckCard:
    """Notes of a visit: which checks were applied, and what violates them.

    `counts` are of all findings, of which `findings` has the first MOST of each check.
    """

    applied: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    findings: dict[str, list[CheckFinding]] = field(default_factory=dict)

    def hold(
        self, check: str, right: object, seen: str = "", where: str = "", request: int | None = None
    ) -> bool:
        """Note that a check was applied, and a finding unless it is `right`; return whether."""
        self.applied.add(check)
        if not right:
            self.counts[check] += 1
            noted = self.findings.setdefault(check, [])
            if len(noted) < MOST:
                noted.append(CheckFinding(_clip(seen), _clip(where), request))
        return bool(right)

    def leave(self, reason: str, *checks: str) -> None:
        """Note why checks could not be applied; they may have been applied elsewhere."""
        for check in checks:
            self.reasons.setdefault(check, reason)

    def withhold(self, reason: str, *checks: str) -> None:
        """Note why checks are not passed, though a part of what they judge was in order."""
        self.applied.difference_update(checks)
        self.leave(reason, *checks)

    def describe(self, checks: Mapping[str, Check], reason: str) -> list[dict[str, Any]]:
        """Return a row of the report for each check: it passed, failed, or was not checked.

        `reason` is why those without a note are not checked.
        """
        rows = []
        for number, check in checks.items():
            state = PASSED if number in self.applied else NOT_CHECKED
            state = FAILED if self.counts[number] else state
            row = asdict(check) | {"state": state}
            row["reason"] = self.reasons.get(number, reason) if state == NOT_CHECKED else ""
            row["count"] = self.counts[number]
            row["findings"] = [asdict(finding) for finding in self.findings.get(number, ())]
            rows.append(row)
        return rows


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
