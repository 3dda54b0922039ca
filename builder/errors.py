"""Faults of the user: each one line, and exit status 2."""

from functions.snapshot.errors import SheafError


class UsageError(SheafError):
    """The command was given what it cannot work with."""
