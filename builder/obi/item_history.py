"""History of one object of interest, from the logs of all runs."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from builder.obi import replay
from builder.obi.history import Committed
from builder.obi.row import (
    DELETION,
    ROWS,
    TEMPLATE,
    Incidence,
    Refipo,
    Row,
    SeenRow,
    Version,
)
from functions.database import engine
from functions.snapshot.store import Reader

_ABOUT = "id = $id OR handle = $id OR origin = $id OR target = $id"
_RANK = {Version: 0, Incidence: 1}


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """All log rows that name an object, each with the tist of its run, in order."""

    id: str
    rows: tuple[tuple[int, Row], ...]

    @property
    def known(self) -> bool:
        """True if any run has found the object, or tried to."""
        return bool(self.rows)

    def versions(self) -> list[tuple[int, Version]]:
        """Return its versions, oldest first."""
        return [(t, r) for t, r in self.rows if isinstance(r, Version) and r.id == self.id]

    def events(self) -> list[tuple[int, Row]]:
        """Return the events of the object: all rows but sightings and file blocks."""
        own = [(t, r) for t, r in self.rows if not isinstance(r, SeenRow | Refipo)]
        return [(t, r) for t, r in own if not isinstance(r, Version) or r.id == self.id]

    def blocks(self) -> list[tuple[int, Refipo]]:
        """Return the file blocks that name the object; of a template, its own of its last run."""
        found = [(t, r) for t, r in self.rows if isinstance(r, Refipo)]
        own = [(t, r) for t, r in found if r.handle == self.id]
        if own:
            last = max(t for t, _ in own)
            newest = max((t for t, v in self.versions() if v.kind == TEMPLATE), default=0)
            return [(t, r) for t, r in own if t == last >= newest]
        return found

    def at(self, tist: int) -> tuple[int, Version] | None:
        """Return the version of the object at a time, and the tist that recorded it.

        None before the first version, and while the object was lost.
        """
        before = [one for one in self.versions() if one[0] <= tist]
        happened = [r for t, r in self.rows if isinstance(r, Incidence) and t <= tist]
        if not before or (happened and happened[-1].what == DELETION):
            return None
        return before[-1]


def read(
    connection: engine.Connection,
    store: Reader,
    runs: Sequence[Committed],
    scratch: Path,
    identifier: str,
) -> ItemHistory:
    """Return the history of an object from the logs of `runs`. Raises DamagedStore, StoreError."""
    connection.execute("DROP TABLE IF EXISTS logged")
    replay.read(connection, store, runs, scratch, _ABOUT, {"id": identifier})
    found = connection.execute("SELECT * FROM logged ORDER BY tist")
    names = [column[0] for column in found.description]
    rows = [_row(dict(zip(names, row, strict=True))) for row in found.fetchall()]
    rows.sort(key=lambda one: (one[0], _RANK.get(type(one[1]), 2), repr(one[1])))
    return ItemHistory(identifier, tuple(rows))


def _row(found: dict[str, object]) -> tuple[int, Row]:
    kind = ROWS[str(found["row"])]
    held = {f.name: found[f.name] for f in fields(kind) if found[f.name] is not None}
    if "flags" in held:
        held["flags"] = tuple(held["flags"])  # type: ignore[arg-type]
    return int(str(found["tist"])), kind(**held)
