"""Table of checks, and the card on which a visit notes what it saw."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One violation: what was seen, in one line, where, and in which exchange of the visit.

    `where` is an identifier, a token, a set, or "".
    """

    check: str
    seen: str
    where: str = ""
    request: int | None = None


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """State of a check: passed, failed or not checked; `reason` says why it was not.

    `count` is of all findings, of which `findings` has the first MOST.
    """

    check: Check
    state: str
    reason: str = ""
    count: int = 0
    findings: tuple[CheckFinding, ...] = ()


@dataclass(slots=True)
class CheckCard:
    """Notes of a visit: which checks were applied, and what violates them."""

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
            self.add(CheckFinding(check, seen, where, request))
        return bool(right)

    def add(self, finding: CheckFinding) -> None:
        """Note a finding."""
        self.applied.add(finding.check)
        self.counts[finding.check] += 1
        noted = self.findings.setdefault(finding.check, [])
        if len(noted) < MOST:
            seen, where = (
                line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
                for line in (" ".join(text.split()) for text in (finding.seen, finding.where))
            )
            noted.append(CheckFinding(finding.check, seen, where, finding.request))

    def leave(self, reason: str, *checks: str) -> None:
        """Note why checks could not be applied; they may have been applied elsewhere."""
        for check in checks:
            self.reasons.setdefault(check, reason)

    def outcomes(self, checks: Mapping[str, Check], reason: str) -> Iterator[CheckOutcome]:
        """Yield the outcome of each check; `reason` is why those without a note are not checked."""
        for number, check in checks.items():
            if count := self.counts[number]:
                yield CheckOutcome(check, FAILED, "", count, tuple(self.findings[number]))
            elif number in self.applied:
                yield CheckOutcome(check, PASSED)
            else:
                yield CheckOutcome(check, NOT_CHECKED, self.reasons.get(number, reason))
