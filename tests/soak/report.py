"""What a soak test did: counts by kind, and the promises that were broken."""

import threading
from collections import Counter
from dataclasses import dataclass, field

TITLES = {
    "done": "commands that succeeded",
    "retry": "commands that were repeated",
    "kill": "processes that were killed",
    "full disk": "commands with a full disk",
    "disk full": "of these, commands that failed",
    "s3": "faults of S3",
    "clock": "changes of clocks",
    "harvest": "harvests",
}
"""What is counted, in the order of the table."""


@dataclass
class Report:
    """Counts of one store. Actors may add at the same time."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    seconds: float = 0.0
    records: int = 0
    """Records of the store in the end."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, title: str, kind: str, count: int = 1) -> None:
        """Count something of a title of TITLES."""
        assert title in TITLES
        with self._lock:
            self.counts[title, kind] += count

    def fail(self, promise: str) -> None:
        """Note a promise that was broken."""
        with self._lock:
            self.broken.append(promise)

    def total(self, title: str) -> int:
        """Return how often something of a title happened."""
        return sum(count for (one, _), count in self.counts.items() if one == title)


def table(reports: dict[str, Report]) -> str:
    """Return a table with a row for each thing counted and a column for each store."""
    kinds = {key for report in reports.values() for key in report.counts}
    order = list(TITLES)
    rows = [["", *reports]]
    for title, kind in sorted(kinds, key=lambda key: (order.index(key[0]), key[1])):
        cells = [str(report.counts[title, kind]) for report in reports.values()]
        rows.append([f"{TITLES[title]}: {kind}", *cells])
    rows.append(["records in the end", *(str(report.records) for report in reports.values())])
    rows.append(["seconds", *(f"{report.seconds:.0f}" for report in reports.values())])
    rows.append(["broken promises", *(str(len(r.broken)) for r in reports.values())])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )
