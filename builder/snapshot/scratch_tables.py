"""Scratch tables of a publish, a withdrawal and a reinstatement that several packages share.

They exist in the DuckDB database of one change and are gone with it. Modules create and read them
by name, so this list is their contract. A table that one folder alone makes and reads is not here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from functions.snapshot import obi, schema


@dataclass(frozen=True, slots=True)
class ScratchTable:
    """A table or view: its columns as in CREATE TABLE, and what it holds."""

    columns: str
    holds: str


def create(name: str) -> str:
    """Return the statement that makes the table anew, without rows."""
    return f"CREATE OR REPLACE TABLE {name} ({TABLES[name].columns})"


def ensure(name: str) -> str:
    """Return the statement that makes the table, without rows, if it does not exist."""
    return f"CREATE TABLE IF NOT EXISTS {name} ({TABLES[name].columns})"


def columns_of(columns: Iterable[schema.Column]) -> str:
    """Return columns as in CREATE TABLE."""
    return ", ".join(f"{column.name} {column.type}" for column in columns)


_TYPES = {column.name: column.type for column in schema.TABLES["records"]}
RECORD = columns_of(schema.TABLES["records"])
"""The columns of a listed version, as in CREATE TABLE."""
_VERSION = columns_of(
    column for column in schema.TABLES["records"] if column.name not in ("position", "sequence")
)

TABLES = {
    "listed_versions": ScratchTable(
        RECORD, "The listed versions of the items that were looked up last."
    ),
    "prepared_versions": ScratchTable(
        _VERSION,
        "Versions to publish, except captures as the intake has them; templates without content.",
    ),
    "intake_versions": ScratchTable(
        _VERSION, "View of new captures that are published as they are in the intake; often empty."
    ),
    "new_versions": ScratchTable(
        _VERSION, "View of all versions to publish: `prepared_versions` and `intake_versions`."
    ),
    "superseded_versions": ScratchTable(
        ", ".join(f"{name} {_TYPES[name]}" for name in schema.SUPERSEDED.split(", ")),
        "The listed versions that `new_versions` replace.",
    ),
    "withdrawn_places": ScratchTable(
        "source VARCHAR, place BIGINT",
        "File and offset of records of withdrawn items: details of their faults are not published.",
    ),
    "added_sources": ScratchTable(
        columns_of(schema.TABLES["sources"]), "The files read that the last snapshot lacks."
    ),
    "revisit_matches": ScratchTable(
        "identifier VARCHAR, rule INTEGER, goal BIGINT, original BIGINT",
        "Original of each revisit, the rule that found it, and the original's date as `goal`.",
    ),
    "repository_set_names": ScratchTable(
        "listing VARCHAR, name VARCHAR", "Names that repositories give to their sets."
    ),
    "withdrawn_items": ScratchTable(
        RECORD, "Those to withdraw; in a reinstatement, those that are withdrawn."
    ),
    "item_versions": ScratchTable(
        "position BIGINT, sets VARCHAR[], source VARCHAR, place BIGINT, surt VARCHAR, stamp BIGINT",
        "All versions whose metadata is removed, with their places and keys of URLs.",
    ),
    "recovered_versions": ScratchTable(RECORD, "Last versions with metadata in older snapshots."),
}
"""By name. Names here have two words, so that they are found by their text."""
NEW_VERSIONS = "CREATE VIEW new_versions AS FROM intake_versions UNION ALL FROM prepared_versions"
"""Makes the view `new_versions`; where both have rows, `intake_versions` is mostly the larger."""
NO_INTAKE_VERSIONS = "CREATE VIEW intake_versions AS SELECT * FROM prepared_versions WHERE false"
"""Makes an empty view `intake_versions`, for when all rows are in `prepared_versions`."""
REPLAYED = (*obi.TABLES, "archive", "seen", "fault", "logged", "undone")
"""Made of the obi store's logs by builder.obi.replay, which has their columns."""
