"""Exceptions for faults in a store or a configuration, and the version of the schema."""

import json
from typing import Any

NO_SPACE = "the disk for scratch files is full: free some space, or set TMPDIR to another folder"
VERSION = 3
"""Written into every JSON document of a store. It rises when a table gets another column."""
RELEASE = "0.2.0"
"""The first release that reads VERSION; the pointer names it for earlier releases.

No earlier release was published."""


class SheafError(Exception):
    """Base of every error that Sheaf raises on purpose; its text is a one-line message."""


class ConfigurationError(SheafError):
    """A configuration key has an invalid value."""


class StoreError(SheafError):
    """The store cannot be read or written, or its content is invalid."""


class StoreUnavailable(StoreError):
    """The store did not answer within the retry time; it may answer later."""


class MissingObject(StoreError):
    """The store holds no object under that key."""


class Conflict(StoreError):
    """Another process wrote the object first: a conditional write did not take place."""


class DamagedStore(StoreError):
    """An object of the store does not match what its snapshot declares."""


class NewerSchema(StoreError):
    """The store was written by a later version of Sheaf."""


class OlderSchemaError(StoreError):
    """The store was written by an earlier version of Sheaf, whose tables have other columns."""


class NothingPublished(StoreError):
    """The store has no snapshot in effect."""


def describe_failure(error: Exception) -> str:
    """Return in words why a file or document cannot be used: never an exception's own name."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON: {error}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1:,} of it is no text in UTF-8"
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]}"
    if isinstance(error, TypeError | AttributeError | IndexError | OverflowError) or not str(error):
        return "it has another form than Sheaf writes"
    return str(error)


def check_version(version: Any, release: Any = None) -> None:
    """Check that a document of that version can be read; `release` is the first that reads it.

    Raises NewerSchema, OlderSchemaError, or ValueError if the version is invalid.
    """
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"schema is {version!r}")
    if version > VERSION:
        raise NewerSchema(
            f"the store has schema {version}, but this Sheaf reads up to {VERSION}: install "
            + (f"Sheaf {release} or later" if isinstance(release, str) else "a later Sheaf")
        )
    if version < VERSION:
        raise OlderSchemaError(
            f"the store has schema {version} of a Sheaf before {RELEASE}, which cannot be read: "
            "make a new store, and ingest the sources again"
        )
