"""Scope: what an ingest compares with the store if only some files of its folder have changed.

The last ingest of the store found the same folder, so whatever it found and has not changed since
agrees with the store. In scope are files that have changed, templates that they have or had
otherwise, and what the last ingest named as restless: it may differ without such a change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.snapshot.sql import Statements
from functions.store import engine

_SQL = Statements(__file__)
WITHIN = "id IN (SELECT id FROM scope)"
"""The condition on rows of logs that they are in scope."""


@dataclass(frozen=True, slots=True)
class ChangeScope:
    """What is needed to make the table `scope`: restless ids, and the sources' roots."""

    restless: Path
    roots: Sequence[str]
    """The places of files and templates follow from the roots: they must be the same."""

    def narrow(self) -> Sequence[str]:
        """Return the statements that make `scope`, and `read_file` and `read_template` in it."""
        return (
            _SQL.get("scope", restless=engine.quote(str(self.restless))),
            _SQL.get("read_template"),
            _SQL.get("read_file"),
        )

    def widen(self, prefix: str) -> Sequence[str]:
        """Return the statements that make `listed_file`, and add files to `scope`.

        `prefix` begins the ids of files. They need `staged_file`.
        """
        return _SQL.get("scoped_files", prefix=engine.quote(prefix)), _SQL.get("listed_file")

    def count(self) -> str:
        """Return the statement that makes `present`; it needs `stood`."""
        return _SQL.get("present")
