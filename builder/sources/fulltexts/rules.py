"""Rules of the operator: which hosts, publishers and restricted files are excluded or slowed down.

They are the rows of `gather.rules`. The first row that fits a file counts. A row without publisher
and restriction also counts for a host to which a redirect leads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from functions.store import engine

_EXCLUDED = -1


@dataclass(frozen=True, slots=True)
class GatherRule:
    """A row: all its conditions must hold. `seconds` are left between requests to the host.

    `host` is a pattern, `publisher` the handle of an archive or a series.
    """

    host: str | None = None
    publisher: str | None = None
    restricted: bool | None = None
    exclude: bool = False
    seconds: float = 0

    def condition(self) -> str:
        """Return the conditions as SQL on the table of files."""
        conditions = ["true"]
        if self.host is not None:
            conditions.append(f"host GLOB {engine.quote(self.host)}")
        if self.publisher is not None:
            handle = engine.quote(self.publisher)
            below = engine.quote(self.publisher + ":")
            fits = f"list_filter(handles, lambda h: h = {handle} OR starts_with(h, {below}))"
            conditions.append(f"len({fits}) > 0")
        if self.restricted is not None:
            conditions.append("restricted" if self.restricted else "NOT restricted")
        return " AND ".join(conditions)

    def fits_host(self, host: str) -> bool:
        """Return whether the row concerns all files of the host."""
        alone = self.publisher is None and self.restricted is None
        return alone and self.host is not None and fnmatchcase(host, self.host)


@dataclass(frozen=True, slots=True)
class GatherRules:
    """All rows, in order."""

    rows: Sequence[GatherRule] = ()

    @staticmethod
    def parse(value: Sequence[Mapping[str, Any]]) -> "GatherRules":
        """Return the rules of a valid value of `gather.rules`."""
        rows = [dict(row) for row in value]
        for row in rows:
            if "host" in row:
                row["host"] = row["host"].lower()
            if "publisher" in row:
                row["publisher"] = "RePEc:" + row["publisher"][len("RePEc:") :].strip(":").lower()
        return GatherRules(tuple(GatherRule(**row) for row in rows))

    def pause(self) -> str:
        """Return the seconds between requests as SQL on the table of files; -1: excluded."""
        if not self.rows:
            return "0"
        cases = (
            f"WHEN {row.condition()} THEN {_EXCLUDED if row.exclude else row.seconds}"
            for row in self.rows
        )
        return f"(CASE {' '.join(cases)} ELSE 0 END)::DOUBLE"

    def excludes(self, host: str) -> bool:
        """Return whether a host is excluded, whatever leads to it."""
        return next((row.exclude for row in self.rows if row.fits_host(host)), False)

    def seconds(self, host: str) -> float:
        """Return the seconds between requests to a host, whatever leads to it; 0 without a rule."""
        return next((row.seconds for row in self.rows if row.fits_host(host)), 0)


NO_RULES = GatherRules()
