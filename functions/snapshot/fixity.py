"""Reports of checks: what `sheaf verify --record` read, when, and what it found.

fixity.jsonl                      a line of JSON for each check, the newest last

`builder.verify.report` writes it, and the pages read it. It is no part of a snapshot.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from functions.snapshot import instant
from functions.snapshot.errors import MissingObject
from functions.snapshot.seal import (
    Instant,
    Struct,
    build,
    check_seal,
    field,
    refuse_damage,
    seal,
    to_values,
)
from functions.snapshot.store import Reader

FIXITY = "fixity.jsonl"
KEPT = 400
"""Reports that are kept: more than a year of daily ones."""


class CheckReport(Struct, frozen=True):
    """A check: when it began and ended (UTC), what it read, and what it found.

    `part` is K of N as text such as "3/365"; "" if the check read everything, or a sample of
    `percent`. `read` of `objects` objects were read, and `read_bytes` of
    data files. `codes` counts the findings by
    code, of which `damage` are damage.
    """

    began: Instant
    ended: Instant
    snapshot: int
    part: str = ""
    percent: float | None = None
    objects: int = 0
    read: int = 0
    read_bytes: int = 0
    damage: int = 0
    codes: Mapping[str, int] = field(default_factory=dict)
    version: str = ""

    def to_json(self) -> bytes:
        """Return the report as a line of JSON."""
        return seal(json.dumps(to_values(self), default=instant.to_text).encode()) + b"\n"

    @staticmethod
    def from_json(line: bytes) -> "CheckReport":
        """Build it from a line of `to_json`; members that are unknown are left out.

        Raises ValueError.
        """
        check_seal(line)
        return build(CheckReport, json.loads(line))


def read_reports(reader: Reader) -> tuple[CheckReport, ...]:
    """Return the reports in a store, the oldest first. Raises StoreError."""
    try:
        data = reader.read(FIXITY)
    except MissingObject:
        return ()
    with refuse_damage(FIXITY, "remove it"):
        return tuple(map(CheckReport.from_json, data.splitlines()))


def find_since(reports: Sequence[CheckReport]) -> datetime | None:
    """Return the time since which every object was read by a check; None if some were not.

    The parts of one N cover all objects, as an object never changes its part.
    """
    begun: dict[int, dict[int, datetime]] = {}
    for report in reports:
        if report.percent is None:
            number, _, count = (report.part or "1/1").partition("/")
            begun.setdefault(int(count), {})[int(number)] = report.began
    whole = (min(parts.values()) for count, parts in begun.items() if len(parts) == count)
    return max(whole, default=None)


def next_part(reports: Sequence[CheckReport], count: int) -> int:
    """Return which of `count` parts was checked longest ago, or never; the first of several."""
    begun = {
        int(number): report.began
        for report in reports
        for number, _, of in (report.part.partition("/"),)
        if of == str(count)
    }
    missing = (number for number in range(1, count + 1) if number not in begun)
    return next(missing, 0) or min(begun, key=lambda number: (begun[number], number))
