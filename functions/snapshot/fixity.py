"""Reports of checks: what `sheaf verify --record` read, when, and what it found.

fixity.jsonl                      a line of JSON for each check, the newest last

`builder.verify.record` writes it, and the pages read it. It is no part of a snapshot.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from functions.snapshot import instant
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.seal import check_seal, seal
from functions.snapshot.store import Reader

FIXITY = "fixity.jsonl"
KEPT = 400
"""Reports that are kept: more than a year of daily ones."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A check: when it began and ended (UTC), what it read, and what it found.

    `part` is K of N as text such as "3/365"; "" if the check read everything, or a sample of
    `percent`. `read` of `objects` objects were read, and `read_bytes` of
    data files. `codes` counts the findings by
    code, of which `damage` are damage.
    """

    began: datetime
    ended: datetime
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
        times = {"began": instant.to_text(self.began), "ended": instant.to_text(self.ended)}
        return seal(json.dumps({**asdict(self), **times}).encode()) + b"\n"

    @staticmethod
    def from_json(line: bytes) -> "CheckReport":
        """Build it from a line of `to_json`; members that are unknown are left out.

        Raises ValueError, KeyError or TypeError.
        """
        check_seal(line)
        found: dict[str, Any] = json.loads(line)
        some = {name: found[name] for name in CheckReport.__slots__ if name in found}
        times = {name: instant.from_text(found[name]) for name in ("began", "ended")}
        return CheckReport(**{**some, **times})


def read_reports(reader: Reader) -> tuple[CheckReport, ...]:
    """Return the reports in a store, the oldest first. Raises StoreError."""
    try:
        data = reader.read(FIXITY)
    except MissingObject:
        return ()
    try:
        return tuple(map(CheckReport.from_json, data.splitlines()))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedStore(f"{FIXITY} is damaged: {error!r}; remove it") from error


def write_reports(reports: Sequence[CheckReport]) -> bytes:
    """Return the object of these reports, without those before the newest KEPT."""
    return b"".join(report.to_json() for report in reports[-KEPT:])


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
