"""The pointer: which snapshot is in effect at which instant; and the witness beside it.

The pointer is written before its newest snapshot takes effect. It therefore also names the snapshot
before, and readers choose by the clock. Publishing and expiring also share their state in it.

The pointer alone cannot show that an old copy of it was restored. Therefore a publish also writes
the witness, a second object with the newest snapshot, always after the pointer. A pointer that is
behind the witness is an old copy. If a publish dies in between, the witness is behind. This is
harmless, and the next publish updates it. Both contain the store's id. The witness gets it first,
so a pointer with an id has a witness.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from functions.snapshot import instant, layout
from functions.snapshot.errors import (
    RELEASE,
    VERSION,
    DamagedStore,
    NothingPublished,
    check_version,
)
from functions.snapshot.seal import Instant, Struct, build, refuse_damage, to_values

REMEMBERED = timedelta(minutes=1)
"""How long the pointer names a snapshot after it was superseded."""
DIGEST = "sha256"
_OPTIONAL = ("store", "expiries", "retired", "expiry", "copied")
_KEYS = {"schema", "sheaf", "snapshots", "settled", *_OPTIONAL, DIGEST}
_WITNESS_KEYS = {"schema", "store", "snapshot", "effective", "manifest", DIGEST}
_UNPUBLISHED = "nothing is published in this store yet: run `sheaf publish`"
_BY_HAND = "restore a copy of it, or write one that names the newest snapshot"
REMEDY = "`sheaf verify` shows the correct content, and `sheaf verify --repair` writes it"


class PointerEntry(Struct, frozen=True):
    """A snapshot's number and the instant from which it is in effect."""

    snapshot: int
    effective: Instant


class Expiry(Struct, frozen=True):
    """An expiry in progress: the snapshots that it removes, and its deadline.

    After the deadline `until` it counts as dead, and the next process completes it. `holder`
    distinguishes it from another expiry that begins in the same second.
    """

    snapshots: tuple[int, ...]
    until: Instant
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
    copied: Instant | None = None
    expiries: int = 0
    store: str = ""

    def at(self, when: datetime) -> PointerEntry:
        """Return the entry in effect at `when`. Raises NothingPublished if it is missing."""
        for entry in reversed(self.entries):
            if entry.effective <= when:
                return entry
        raise NothingPublished(_UNPUBLISHED)

    def newest(self) -> PointerEntry | None:
        """Return the entry that was written last, in effect or not."""
        return self.entries[-1] if self.entries else None

    def require_newest(self) -> PointerEntry:
        """Return the same. Raises NothingPublished if it is missing."""
        if not self.entries:
            raise NothingPublished(_UNPUBLISHED)
        return self.entries[-1]

    def is_retired(self, snapshot: int) -> bool:
        """Return whether the snapshot was removed or is being removed."""
        is_expiring = self.expiry is not None and snapshot in self.expiry.snapshots
        return is_expiring or any(first <= snapshot <= last for first, last in self.retired)

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
        entries = (*self.trim(now).entries, entry)
        return replace(self, entries=entries, settled=False, copied=None, store=store or self.store)

    def trim(self, now: datetime) -> "Pointer":
        """Drop the entries superseded more than REMEMBERED ago.

        The delay serves readers whose clock is behind the publisher's. No snapshot that a pointer
        names may be retired.
        """
        limit = now - REMEMBERED
        superseded = {e for e, later in pairwise(self.entries) if later.effective <= limit}
        return replace(self, entries=tuple(e for e in self.entries if e not in superseded))

    def to_json(self) -> bytes:
        """Return the pointer as JSON for the store."""
        members = to_values(self)
        document = {"schema": VERSION, "sheaf": RELEASE, "snapshots": members["entries"]}
        document["settled"] = self.settled
        document |= {name: members[name] for name in _OPTIONAL if members[name]}
        return encode_with_digest(document)

    @staticmethod
    def from_json(data: bytes) -> "Pointer":
        """Parse the output of `to_json`. Raises NewerSchema, OlderSchemaError or DamagedStore.

        The digest may be missing, so that a pointer can be written by hand. It must not be wrong.
        """
        with refuse_damage("current.json", _BY_HAND):
            document = json.loads(data)
            check_version(document["schema"], document.get("sheaf"))
            _check_consistent(document)
            # Both are required, although the fields have defaults.
            entries, settled = document["snapshots"], document["settled"]
            pointer = build(Pointer, {**document, "entries": entries, "settled": settled})
            if any(
                a.effective >= b.effective or a.snapshot >= b.snapshot
                for a, b in pairwise(pointer.entries)
            ):
                raise ValueError("its snapshots are not in order")
            return pointer


def spans(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the first and last number of each run of consecutive numbers, ascending."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return tuple(runs)


def digest(document: dict[str, Any]) -> str:
    """Return the SHA-256 of all keys and values except `sha256`, independent of their layout."""
    rest = {key: value for key, value in document.items() if key != DIGEST}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def encode_with_digest(document: dict[str, Any]) -> bytes:
    """Return a document as indented JSON with its digest; instants are written as text."""
    document = json.loads(json.dumps(to_values(document), default=instant.to_text))
    return json.dumps({**document, DIGEST: digest(document)}, indent=1).encode()


def _check_consistent(document: dict[str, Any]) -> None:
    """Raise DamagedStore if the pointer was changed after it was written."""
    unknown = sorted(document.keys() - _KEYS)
    if unknown:
        raise DamagedStore(f"current.json is damaged: it has {unknown}; {_BY_HAND}")
    if DIGEST in document and document[DIGEST] != digest(document):
        raise DamagedStore(
            f"current.json is damaged: it does not match its {DIGEST}; {_BY_HAND}, or, if you "
            f"changed it yourself, remove {DIGEST} from it"
        )


class Witness(Struct, frozen=True):
    """The store's id and the newest snapshot that the pointer ever named (None before any).

    `manifest` is a copy of that snapshot's, so that a reader that begins need not read it too. A
    witness of 0.2.0 has none, nor one that was written by hand.
    """

    store: str
    newest: PointerEntry | None = None
    manifest: str = ""

    @property
    def number(self) -> int:
        """The number of the newest snapshot; 0 before the first."""
        return self.newest.snapshot if self.newest else 0

    def covers(self, pointer: Pointer) -> bool:
        """Return whether the witness is up to date with this pointer."""
        newest = pointer.newest()
        number = newest.snapshot if newest else 0
        return self.number > number or (self.number == number and pointer.store in ("", self.store))

    def to_json(self) -> bytes:
        """Return the witness as JSON for the store."""
        document = {"schema": VERSION, "store": self.store}
        document |= to_values(self.newest) if self.newest else {}
        return encode_with_digest(document | ({"manifest": self.manifest} if self.manifest else {}))

    @staticmethod
    def from_json(data: bytes) -> "Witness":
        """Parse the output of `to_json`. Raises NewerSchema, OlderSchemaError or DamagedStore.

        The digest may be missing, so that a witness can be written by hand.
        """
        with refuse_damage(layout.WITNESS, REMEDY):
            document = json.loads(data)
            check_version(document["schema"])
            unknown = sorted(document.keys() - _WITNESS_KEYS)
            if unknown:
                raise ValueError(f"it has {unknown}")
            if document.get(DIGEST, digest(document)) != digest(document):
                raise ValueError(f"it does not match its {DIGEST}")
            newest = document if "snapshot" in document else None
            manifest = document.get("manifest", "")
            members = {"store": document["store"], "newest": newest, "manifest": manifest}
            return build(Witness, members)


class Contradiction(Struct, frozen=True):
    """A contradiction between pointer and witness: code of `sheaf verify`, object, description."""

    code: str
    object: str
    problem: str

    def error(self) -> DamagedStore:
        """Return the error that a reader raises."""
        return DamagedStore(f"{self.object}: {self.problem}: {REMEDY}")


def contradiction(pointer: Pointer, witness: Witness | None) -> Contradiction | None:
    """Return how the pointer contradicts the witness, or None.

    The pointer was read after the witness; it is empty if the store has no pointer. A witness that
    is behind is not a contradiction: a publish is in progress, or died.
    """
    if witness is None:
        if not pointer.store:
            return None  # a store from before there were witnesses
        problem = f"it is missing, though {layout.POINTER} was written with one"
        return Contradiction("witness-missing", layout.WITNESS, problem)
    if pointer.copied is not None and not pointer.store:
        return None  # written by hand for a copy that is served (docs/operations/deploy.md)
    newest = pointer.newest()
    number = newest.snapshot if newest else 0
    if number < witness.number:
        names = f"names {number} as the newest" if number else "names no snapshot"
        problem = f"it {names}, but {witness.number} was published: an old copy was restored"
        return Contradiction("pointer-behind", layout.POINTER, problem)
    is_foreign = pointer.store and pointer.store != witness.store
    if number == witness.number and (is_foreign or (newest and newest != witness.newest)):
        problem = f"it belongs to another store: {layout.WITNESS} names another snapshot {number}"
        return Contradiction("pointer-foreign", layout.POINTER, problem)
    return None
