"""Errors of the user's input: each is one line, with exit status 2."""

from collections.abc import Iterator
from contextlib import contextmanager

from functions.snapshot.errors import SheafError, describe_failure


class UsageError(SheafError):
    """Invalid arguments or input of a command."""


@contextmanager
def explaining(place: object, done: str, kind: type[SheafError] = UsageError) -> Iterator[None]:
    """Raise an error of the operating system as `kind`: the place cannot be `done`, and why."""
    try:
        yield
    except OSError as error:
        raise kind(f"{place} cannot be {done}: {describe_failure(error)}") from error
