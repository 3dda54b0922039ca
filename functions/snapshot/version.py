"""The version of the store schema that this Sheaf reads and writes."""

from typing import Any

from functions.snapshot.errors import NewerSchema, OlderSchemaError

VERSION = 2
"""Written into every JSON document of a store. It rises when a table gets another column."""


def check_version(version: Any) -> None:
    """Check that a document of that version can be read.

    Raises NewerSchema, OlderSchemaError, or ValueError if the version is invalid.
    """
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"schema is {version!r}")
    if version > VERSION:
        raise NewerSchema(
            f"the store has schema {version}, but this Sheaf reads up to {VERSION}: install a "
            "later Sheaf"
        )
    if version < VERSION:
        raise OlderSchemaError(
            f"the store has schema {version} of an earlier Sheaf, but this Sheaf reads {VERSION}: "
            "ingest its sources into a new store"
        )
