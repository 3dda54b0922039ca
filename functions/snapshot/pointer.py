"""The pointer: which snapshot is in effect at which instant.

It is written before its newest snapshot takes effect. It therefore also names the snapshot before,
and readers choose by the clock. Publishing and expiring also share their state in it.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from functions.snapshot import instant
from functions.snapshot.errors import (
    RELEASE,
    VERSION,
    DamagedStore,
    NothingPublished,
    check_version,
)

REMEMBERED = timedelta(minutes=1)
"""How long the pointer names a snapshot after it was superseded."""


@dataclass(frozen=True, slots=True)
class PointerEntry:
    """A snapshot's number and the instant from which it is in effect."""

    snapshot: int
    effective: datetime


@dataclass(frozen=True, slots=True)
class Expiry:
    """An expiry in progress: the snapshots that it removes, and its deadline.

    After the deadline `until` it counts as dead, and the next process completes it. `holder`
    distinguishes it from another expiry that begins in the same second.
    """

    snapshots: tuple[int, ...]
    until: datetime
    holder: str = ""


@dataclass(frozen=True, slots=True)
class Pointer:
    """The snapshots in effect now or later, ascending by instant and by number.

    `settled` is true if the newest entry is known to have been written before its instant. If it is
    false, its publish stopped in between, and the next publish gives its changes a new instant.
    `retired` are first and last numbers of removed snapshots, ascending. `copied` is the time when
    the source of a copied store had this pointer. The copy lacks all later changes. Its answers are
    valid as of that instant until a snapshot is published to the copy. `expiries` counts completed
    expiries: a publish that began before one must see a changed pointer. `store` is the store's id;
    a store from before ids existed gets one at its next publish.
    """

    entries: tuple[PointerEntry, ...] = ()
    settled: bool = True
    expiry: Expiry | None = None
    retired: tuple[tuple[int, int], ...] = ()
    copied: datetime | None = None
    expiries: int = 0
    store: str = ""

    def at(self, when: datetime) -> PointerEntry:
        """Return the entry in effect at `when`. Raises NothingPublished if it is missing."""
        for entry in reversed(self.entries):
            if entry.effective <= when:
                return entry
        raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")

    def newest(self) -> PointerEntry | None:
        """Return the entry that was written last, in effect or not."""
        return self.entries[-1] if self.entries else None

    def is_retired(self, snapshot: int) -> bool:
        """Return whether the snapshot was removed or is being removed."""
        going = self.expiry is not None and snapshot in self.expiry.snapshots
        return going or any(first <= snapshot <= last for first, last in self.retired)

    def complete_expiry(self) -> "Pointer":
        """Return this pointer with its expiry completed."""
        done = set(self.expiry.snapshots if self.expiry else ())
        for first, last in self.retired:
            done.update(range(first, last + 1))
        return replace(self, expiry=None, retired=spans(done), expiries=self.expiries + 1)

    def move_to(self, entry: PointerEntry, now: datetime, store: str = "") -> "Pointer":
        """Return this pointer, not settled, with `entry` added and old entries trimmed.

        `store` is the store's new id; if it is empty, the id stays.
        """
        kept = self.trim(now)
        return replace(
            kept,
            entries=(*kept.entries, entry),
            settled=False,
            copied=None,
            store=store or self.store,
        )

    def trim(self, now: datetime) -> "Pointer":
        """Drop the entries superseded more than REMEMBERED ago.

        The delay serves readers whose clock is behind the publisher's. No snapshot that a pointer
        names may be retired.
        """
        followed = {e for e, later in pairwise(self.entries) if later.effective <= now - REMEMBERED}
        return replace(self, entries=tuple(e for e in self.entries if e not in followed))

    def to_json(self) -> bytes:
        """Return the pointer as JSON for the store."""
        document: dict[str, Any] = {
            "schema": VERSION,
            "sheaf": RELEASE,
            "snapshots": [
                {"snapshot": e.snapshot, "effective": instant.to_text(e.effective)}
                for e in self.entries
            ],
            "settled": self.settled,
        }
        if self.store:
            document["store"] = self.store
        if self.expiries:
            document["expiries"] = self.expiries
        if self.retired:
            document["retired"] = [list(span) for span in self.retired]
        if self.expiry:
            document["expiry"] = {
                "snapshots": list(self.expiry.snapshots),
                "until": instant.to_text(self.expiry.until),
                "holder": self.expiry.holder,
            }
        if self.copied:
            document["copied"] = instant.to_text(self.copied)
        return json.dumps({**document, DIGEST: digest(document)}, indent=1).encode()

    @staticmethod
    def from_json(data: bytes) -> "Pointer":
        """Parse the output of `to_json`. Raises NewerSchema, OlderSchemaError or DamagedStore.

        The digest may be missing, so that a pointer can be written by hand. It must not be wrong.
        """
        try:
            document = json.loads(data)
            check_version(document["schema"], document.get("sheaf"))
            _check_consistent(document)
            entries = tuple(
                PointerEntry(int(e["snapshot"]), instant.from_text(e["effective"]))
                for e in document["snapshots"]
            )
            settled = document["settled"]
            expiry = _expiry(document.get("expiry"))
            retired = tuple((int(a), int(b)) for a, b in document.get("retired", ()))
            copied = instant.from_text(document["copied"]) if "copied" in document else None
            expiries = int(document.get("expiries", 0))
            store = str(document.get("store", ""))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise DamagedStore(f"current.json is damaged: {error!r}; {_REMEDY}") from error
        if any(
            a.effective >= b.effective or a.snapshot >= b.snapshot for a, b in pairwise(entries)
        ):
            raise DamagedStore(
                f"current.json is damaged: its snapshots are not in order; {_REMEDY}"
            )
        if not isinstance(settled, bool):
            raise DamagedStore(f"current.json is damaged: settled is {settled!r}; {_REMEDY}")
        return Pointer(entries, settled, expiry, retired, copied, expiries, store)


def spans(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the first and last number of each run of consecutive numbers, ascending."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


DIGEST = "sha256"
_KEYS = {
    "schema",
    "sheaf",
    "snapshots",
    "settled",
    "store",
    "expiries",
    "retired",
    "expiry",
    "copied",
    DIGEST,
}
_REMEDY = "restore a copy of it, or write one that names the newest snapshot"


def digest(document: dict[str, Any]) -> str:
    """Return the SHA-256 of all keys and values except `sha256`, independent of their layout."""
    rest = {key: value for key, value in document.items() if key != DIGEST}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _check_consistent(document: dict[str, Any]) -> None:
    """Raise DamagedStore if the pointer was changed after it was written."""
    unknown = sorted(document.keys() - _KEYS)
    if unknown:
        raise DamagedStore(f"current.json is damaged: it has {unknown}; {_REMEDY}")
    if DIGEST in document and document[DIGEST] != digest(document):
        raise DamagedStore(
            f"current.json is damaged: it does not match its {DIGEST}; {_REMEDY}, or, if you "
            f"changed it yourself, remove {DIGEST} from it"
        )


def _expiry(document: Any) -> Expiry | None:
    if document is None:
        return None
    return Expiry(
        tuple(map(int, document["snapshots"])),
        instant.from_text(document["until"]),
        str(document.get("holder", "")),
    )
