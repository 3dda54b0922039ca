"""Faults of the archives of an import, for the log of its first run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from builder.obi.content import FaultRow

VAULT_FAULTS: Mapping[str, str] = {
    "no-original": "the capture with the bytes of a revisit is in none of the archives",
    "no-target": "the URL that a redirect leads to is in none of the archives",
    "not-as-indexed": "a record cannot be read again, or is another one by now",
    "undated": "the date of a capture cannot be read",
}
"""Codes of faults that only an import has, with their meaning; others are those of ingest."""
_MOST = 10_000


@dataclass(slots=True)
class FaultList:
    """The faults so far: rows of the first ones, and the number of each code."""

    rows: list[FaultRow] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, source: str, place: int | None, code: str, detail: str, done: str) -> None:
        """Add a fault of the archive `source`, at the offset `place`."""
        self.counts[code] += 1
        if len(self.rows) < _MOST:
            self.rows.append(
                FaultRow(
                    source=source, place=place, code=code, field=None, detail=detail, done=done
                )
            )

    def take_rows(self) -> list[FaultRow]:
        """Return the rows that no run has yet."""
        rows, self.rows = self.rows, []
        return rows
