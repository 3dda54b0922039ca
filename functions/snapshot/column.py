"""Description of a table's column."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, DuckDB type, meaning, and an example as SQL would print it."""

    name: str
    type: str
    meaning: str
    example: str
