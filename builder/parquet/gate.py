"""Check of the row order, so that no unsorted data file is published. Pure."""

from collections.abc import Sequence
from typing import Any

from functions.snapshot import schema
from functions.snapshot.errors import SheafError


class UnsortedTable(SheafError):
    """Rows are not in their table's order: an error in Sheaf, not in its input."""


class Gate:
    """Checks the order of a table's row groups by the `keys` of their first and last rows."""

    def __init__(self, table: str) -> None:
        self._table = table
        self.keys: Sequence[str] = schema.ORDER[table][: schema.KEY[table]]
        if table == "records":  # positions are often assigned here, so check what they derive from
            self.keys = ("sequence", "kind", "url_surtkey", "position")
        self._last: tuple[Any, ...] | None = None

    def check(self, first: tuple[Any, ...], last: tuple[Any, ...]) -> None:
        """Check a row group by its first and last row. Raises UnsortedTable."""
        first, last = (
            tuple("\U0010ffff" if value is None else value for value in key)
            for key in (first, last)
        )
        if first > last or (self._last is not None and first < self._last):
            raise UnsortedTable(f"the rows of {self._table} are not in order near {first}")
        self._last = last
