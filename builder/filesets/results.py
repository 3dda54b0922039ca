"""Result log: writes outcomes to the journal at once, and to the intake in batches."""

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
    """Return whether an outcome goes into the intake."""
    return outcome.status != "cancelled" and request.is_asked(outcome.request)


@dataclass(slots=True)
class Keeping:
    """Collects outcomes. Calls `settled` for each once an intake run has it, without its item.

    A `cancelled` outcome is not stored: it would hide the earlier result. The outcome of an invalid
    line is not stored either.
    """

    results: Results
    journal: Journal
    settled: Callable[[IngestOutcome], None] = lambda outcome: None
    clock: Callable[[], float] = time.monotonic
    runs: list[str] = field(init=False, default_factory=list)
    _held: list[IngestOutcome] = field(init=False, default_factory=list)
    _since: float = field(init=False, default=0.0)

    def recover(self) -> int:
        """Put the journal of earlier processes into the intake; return the number of outcomes."""
        many = 0
        for outcome in self.journal.outcomes():
            self.results.add(outcome)
            many += 1
        self._commit()
        return many

    def add(self, outcome: IngestOutcome) -> None:
        """Add an outcome. Raises StoreError."""
        if is_kept(outcome):
            self.journal.add(outcome)
            self.results.add(outcome)
        if not self._held:
            self._since = self.clock()
        self._held.append(replace(outcome, resource=None, item=None, archived=None))
        self.tick()

    def tick(self) -> None:
        """Commit if a minute has passed or 1,000 outcomes are waiting. Raises StoreError."""
        if self._held and (len(self._held) >= _MANY or self.clock() - self._since >= _SECONDS):
            self.commit()

    def commit(self) -> None:
        """Commit the waiting outcomes as an intake run. Raises StoreError."""
        self._commit()
        held, self._held = self._held, []
        for outcome in held:
            self.settled(outcome)

    def _commit(self) -> None:
        run = self.results.commit()
        if run is not None:
            self.runs.append(run.name)
        self.journal.clear()
