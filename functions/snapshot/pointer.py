"""The pointer: which snapshot is in effect at which instant.

It is written before its newest snapshot takes effect, so it names the one before it as well, and
readers go by the clock.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from functions.snapshot import instant, schema
from functions.snapshot.errors import DamagedStore, NewerSchema, NothingPublished

REMEMBERED = timedelta(minutes=1)
"""How long the pointer still names a snapshot that is in effect no more."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A snapshot's number and the instant from which it is in effect."""

    snapshot: int
    effective: datetime


@dataclass(frozen=True, slots=True)
class Pointer:
    """The snapshots in effect now or later, ascending by instant and by number."""

    entries: tuple[Entry, ...] = ()

    def at(self, when: datetime) -> Entry:
        """Return the entry in effect at `when`. Raises NothingPublished where there is none."""
        for entry in reversed(self.entries):
            if entry.effective <= when:
                return entry
        raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")

    def newest(self) -> Entry | None:
        """Return the entry that was written last, whether or not it is in effect yet."""
        return self.entries[-1] if self.entries else None

    def moved(self, entry: Entry, now: datetime) -> "Pointer":
        """Return this pointer with `entry` added and what was followed long ago left out.

        An entry stays for REMEMBERED after the next one took effect, for readers whose clock is
        behind the publisher's. No snapshot that a pointer names may be retired.
        """
        followed = {e for e, later in pairwise(self.entries) if later.effective <= now - REMEMBERED}
        return Pointer((*(e for e in self.entries if e not in followed), entry))

    def to_json(self) -> bytes:
        """Return the pointer as the store holds it."""
        entries = [
            {"snapshot": e.snapshot, "effective": instant.to_text(e.effective)}
            for e in self.entries
        ]
        return json.dumps({"schema": schema.VERSION, "snapshots": entries}, indent=1).encode()

    @staticmethod
    def from_json(data: bytes) -> "Pointer":
        """Read what `to_json` wrote. Raises NewerSchema, or DamagedStore for anything else."""
        try:
            document = json.loads(data)
            if document["schema"] > schema.VERSION:
                raise NewerSchema(
                    f"the store has schema {document['schema']}, this Sheaf reads up to "
                    f"{schema.VERSION}: install a later Sheaf"
                )
            entries = tuple(
                Entry(int(e["snapshot"]), instant.from_text(e["effective"]))
                for e in document["snapshots"]
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise DamagedStore(f"current.json is damaged: {error!r}") from error
        if any(
            a.effective >= b.effective or a.snapshot >= b.snapshot for a, b in pairwise(entries)
        ):
            raise DamagedStore("current.json is damaged: its snapshots are not in order")
        return Pointer(entries)
