"""Tables that crosswalks look values up in: files under tables/, an operator's own ones first."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from functions.oai.format import found
from functions.snapshot.errors import ConfigurationError


class Tables:
    """The tables of some folders, each read once. May be used by many threads at once."""

    def __init__(self, places: Sequence[Path]):
        self._places = places
        self._rows: dict[str, Mapping[str, Any]] = {}
        self._cached = lru_cache(maxsize=4096)(self._looked_up)

    def looked_up(self, value: str | None, table: str) -> str:
        """Return what a table has for a media type, or an empty text.

        Raises ConfigurationError where there is no such table.
        """
        return self._cached(value, table) if value else ""

    def rows(self, table: str) -> Mapping[str, Any]:
        """Return the table tables/`table`.toml. Raises ConfigurationError."""
        if table not in self._rows:
            path = found(self._places, "tables", f"{table}.toml")
            if path is None:
                raise ConfigurationError(f"there is no table tables/{table}.toml")
            try:
                self._rows[table] = tomllib.loads(path.read_text("utf-8"))
            except (OSError, ValueError) as error:
                raise ConfigurationError(f"{path} cannot be read: {error}") from error
        return self._rows[table]

    def _looked_up(self, value: str, table: str) -> str:
        rows = self.rows(table)
        exact = value.partition(";")[0].strip().lower()
        return str(rows.get(exact) or rows.get(exact.partition("/")[0] + "/*") or "")
