"""The gate: nothing unsorted is ever published. Pure."""

from collections.abc import Sequence
from typing import Any

from functions.snapshot import schema
from functions.snapshot.errors import SheafError


class UnsortedTable(SheafError):
    """Rows came in another order than their table's; a fault of Sheaf, not of its input."""


class Gate:
    """Refuses row groups of a table that are out of order, by their first and last rows' `keys`."""

    def __init__(self, table: str) -> None:
        self._table = table
        self.keys: Sequence[str] = schema.ORDER[table][: schema.KEY[table]]
        if table == "records":  # positions are often counted here, so look at what they follow
            self.keys = ("sequence", "kind", "url_surtkey", "position")
        self._last: tuple[Any, ...] | None = None

    def check(self, first: tuple[Any, ...], last: tuple[Any, ...]) -> None:
        """Let a row group pass that begins and ends so. Raises UnsortedTable."""
        first, last = (
            tuple("\U0010ffff" if value is None else value for value in key)
            for key in (first, last)
        )
        if first > last or (self._last is not None and first < self._last):
            raise UnsortedTable(f"the rows of {self._table} are not in order near {first}")
        self._last = last
