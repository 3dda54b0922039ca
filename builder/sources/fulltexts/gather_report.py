"""Report of what runs recorded of files, and of what is left."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from builder.obi.content import APPEARANCE, FailureRow, Incidence, Redirect, Row, SeenRow, Version
from builder.obi.run import Committed
from builder.sources.fulltexts.incidences import SOFT_404
from builder.sources.fulltexts.state import HostEstimate


@dataclass(slots=True)
class GatherReport:
    """The results of a session: `counts` by kind, and `failures` by code.

    `soft_404` counts pages of HTML that were stored in place of PDFs.
    `planned` files were due, and `left` files of `left_hosts` still are. `put_off` files wait,
    because they failed before. `hosts` have an estimate of each host, the slowest first.
    """

    runs: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    left: int = 0
    left_hosts: int = 0
    put_off: int = 0
    planned: int = 0
    excluded: int = 0
    hosts: Sequence[HostEstimate] = ()

    def add(self, run: Committed, rows: Iterable[Row]) -> None:
        """Count the rows of a run."""
        self.runs.append(run.tist)
        for row in rows:
            if isinstance(row, Version):
                self.bytes += row.bytes
                if SOFT_404 in row.flags:
                    self.counts["soft_404"] += 1
            elif isinstance(row, Incidence):
                again = "re" if row.again and row.what == APPEARANCE else ""
                self.counts[f"{again}{row.what}s"] += 1
            elif isinstance(row, FailureRow):
                self.failures[row.code] += 1
            elif isinstance(row, SeenRow):
                self.counts["seen"] += 1
            elif isinstance(row, Redirect):
                self.counts["redirects"] += 1

    def note_plan(self, hosts: Sequence[HostEstimate]) -> None:
        """Count what is due at the beginning."""
        self.planned = sum(host.work.due for host in hosts)
        self.excluded = sum(host.work.excluded for host in hosts)
        self.hosts = hosts

    def note_rest(self, hosts: Sequence[HostEstimate]) -> None:
        """Count what the session leaves."""
        self.hosts = hosts
        self.left = sum(host.work.due for host in hosts)
        self.left_hosts = sum(bool(host.work.due) for host in hosts)
        self.put_off = sum(host.work.put_off for host in hosts)
