"""Errors of the user's input: each is one line, with exit status 2."""

from functions.snapshot.errors import SheafError


class UsageError(SheafError):
    """Invalid arguments or input of a command."""
