"""Rows of logs that Sheaf 0.2 wrote to add an older state between others. They are only read."""

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
