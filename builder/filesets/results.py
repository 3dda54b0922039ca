"""Keeping: outcomes go into the journal at once, and from there into the intake, many at a time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from builder.filesets import request
from builder.filesets.item import IngestOutcome
from builder.filesets.journal import Journal
from builder.filesets.run import Results

_MANY = 1000  # outcomes
_SECONDS = 60.0


def is_kept(outcome: IngestOutcome) -> bool:
    """Tell whether an outcome goes into the intake."""
    return outcome.status != "cancelled" and request.is_asked(outcome.request)


@dataclass(slots=True)
class Keeping:
    """Takes outcomes. `settled` is told of each once a run of the intake has it, without its item.

    One that was `cancelled` is not kept: it would hide what was found before it. Nor is that of a
    line which is no request.
    """

    results: Results
    journal: Journal
    settled: Callable[[IngestOutcome], None] = lambda outcome: None
    clock: Callable[[], float] = time.monotonic
    runs: list[str] = field(init=False, default_factory=list)
    _held: list[IngestOutcome] = field(init=False, default_factory=list)
    _since: float = field(init=False, default=0.0)

    def recover(self) -> int:
        """Put what the journal holds of earlier processes into the intake; tell how many."""
        many = 0
        for outcome in self.journal.outcomes():
            self.results.add(outcome)
            many += 1
        self._commit()
        return many

    def add(self, outcome: IngestOutcome) -> None:
        """Take an outcome. Raises StoreError."""
        if is_kept(outcome):
            self.journal.add(outcome)
            self.results.add(outcome)
        if not self._held:
            self._since = self.clock()
        self._held.append(replace(outcome, resource=None, item=None, archived=None))
        self.tick()

    def tick(self) -> None:
        """Commit what was taken, if that is long ago, or much. Raises StoreError."""
        if self._held and (len(self._held) >= _MANY or self.clock() - self._since >= _SECONDS):
            self.commit()

    def commit(self) -> None:
        """Make a run of the intake of what was taken. Raises StoreError."""
        self._commit()
        held, self._held = self._held, []
        for outcome in held:
            self.settled(outcome)

    def _commit(self) -> None:
        run = self.results.commit()
        if run is not None:
            self.runs.append(run.name)
        self.journal.clear()
