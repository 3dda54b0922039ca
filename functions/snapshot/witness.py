"""The witness: a second object that names the newest snapshot, besides the pointer.

The pointer alone cannot show that an old copy of it was restored. Therefore a publish also writes
the witness, always after the pointer. A pointer that is behind the witness is an old copy. If a
publish dies in between, the witness is behind. This is harmless, and the next publish updates it.

Both contain the store's id. The witness gets it first, so a pointer with an id has a witness.
"""

import json
from dataclasses import dataclass
from typing import Any

from functions.snapshot import instant, layout
from functions.snapshot.errors import VERSION, DamagedStore, check_version
from functions.snapshot.pointer import DIGEST, Pointer, PointerEntry, digest

_KEYS = {"schema", "store", "snapshot", "effective", DIGEST}
REMEDY = "`sheaf verify` shows the correct content, and `sheaf verify --repair` writes it"


@dataclass(frozen=True, slots=True)
class Witness:
    """The store's id and the newest snapshot that the pointer ever named (None before any)."""

    store: str
    newest: PointerEntry | None = None

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
        document: dict[str, Any] = {"schema": VERSION, "store": self.store}
        if self.newest:
            document["snapshot"] = self.newest.snapshot
            document["effective"] = instant.to_text(self.newest.effective)
        return json.dumps({**document, DIGEST: digest(document)}, indent=1).encode()

    @staticmethod
    def from_json(data: bytes) -> "Witness":
        """Parse the output of `to_json`. Raises NewerSchema, OlderSchemaError or DamagedStore.

        The digest may be missing, so that a witness can be written by hand.
        """
        try:
            document = json.loads(data)
            check_version(document["schema"])
            unknown = sorted(document.keys() - _KEYS)
            if unknown:
                raise ValueError(f"it has {unknown}")
            if document.get(DIGEST, digest(document)) != digest(document):
                raise ValueError(f"it does not match its {DIGEST}")
            newest = None
            if "snapshot" in document:
                effective = instant.from_text(document["effective"])
                newest = PointerEntry(int(document["snapshot"]), effective)
            return Witness(str(document["store"]), newest)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise DamagedStore(f"{layout.WITNESS} is damaged: {error!r}; {REMEDY}") from error


@dataclass(frozen=True, slots=True)
class Contradiction:
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
        came = f"{witness.number} was published"
        problem = f"it {names}, but {came}: an old copy was restored"
        return Contradiction("pointer-behind", layout.POINTER, problem)
    is_of_other = pointer.store and pointer.store != witness.store
    if number == witness.number and (is_of_other or (newest and newest != witness.newest)):
        problem = f"it belongs to another store: {layout.WITNESS} names another snapshot {number}"
        return Contradiction("pointer-foreign", layout.POINTER, problem)
    return None
