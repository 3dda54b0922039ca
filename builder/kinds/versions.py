"""Versions that a kind adds to a publish, and those that they replace."""

from functions.snapshot import schema
from functions.store import engine


def add_versions(
    connection: engine.Connection, revised: str, kind: str = ""
) -> tuple[int, int, int]:
    """Add the rows of the table `revised` to `prepared_versions`, and return their numbers.

    The versions at their `old_position`, which is NULL for new items, go to
    `superseded_versions`. With `kind`, which is that of all rows, their content is left out: the
    kind adds it later. The numbers are those of the new, the changed and the deleted items.
    """
    columns = "identifier, kind, deleted, reason, sets, left_sets, document"
    if kind:
        columns = f"identifier, {engine.quote(kind)} AS kind, deleted"
    connection.execute(f"INSERT INTO prepared_versions BY NAME SELECT {columns} FROM {revised}")
    connection.execute(
        f"INSERT INTO superseded_versions BY NAME SELECT {schema.SUPERSEDED} FROM listed_versions "
        f"WHERE position IN (SELECT old_position FROM {revised})"
    )
    ((new, changed, deleted),) = connection.execute(
        "SELECT count(*) FILTER (WHERE old_position IS NULL), count(old_position), "
        f"count(*) FILTER (WHERE deleted) FROM {revised}"
    ).fetchall()
    return int(new), int(changed), int(deleted)
