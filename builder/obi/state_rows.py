"""Rows of logs that tell how states follow on each other, so that an older one can be added.

A later run says what it read only by its differences from the state before. With an older state
between them, the differences are others. These rows make it possible to find them again.
"""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentRow:
    """A ReDIF file that was there before, and that this reading of its archive has not."""

    row: ClassVar[str] = "absent"
    id: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRow:
    """How an ingest read its sources: what it needs to be compared with an older state.

    `accepted` has the archives whose losses were accepted, or `*` for all. `encodings` has the
    encodings that were named, as `archive=encoding`.
    """

    row: ClassVar[str] = "reading"
    accepted: tuple[str, ...] = ()
    encodings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneRow:
    """Rows of earlier runs that do not count any more: those of `what` about `id`, of one time."""

    row: ClassVar[str] = "undone"
    what: str
    id: str
