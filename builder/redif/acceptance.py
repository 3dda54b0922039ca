"""Acceptance: the archives whose losses the operator accepts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from builder.errors import UsageError


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Archives whose losses are accepted, however many: all of them, or the named ones.

    For a named archive, losses are accepted even if its folder is absent or lacks its own template.
    `everything` also covers templates outside all archive folders.
    """

    everything: bool = False
    archives: Collection[str] = ()
    """Names of folders, in lower case."""

    @staticmethod
    def of(given: Sequence[str | None]) -> "Acceptance":
        """Return what the values of --accept-loss accept; None: all. Raises UsageError."""
        archives = [one.lower().removeprefix("repec:") for one in given if one]
        for one in archives:
            if not can_be_named(one):
                raise UsageError(
                    f"--accept-loss {one}: expected an archive such as aaa or RePEc:aaa; to accept "
                    "all losses, write --accept-loss after the sources"
                )
        return Acceptance(None in given, frozenset(archives))


def can_be_named(archive: str) -> bool:
    """Return whether a folder is an archive's: a code of three in lower case."""
    return len(archive) == 3 and archive.isascii() and archive.isalnum()
