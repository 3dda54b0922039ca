"""The identity of a store, `store.json`: that this place is a store, and what must be in it.

It lies beside the pointer, which cannot tell that it was lost itself. `sheaf init` or the first
publish writes it. Each publish adds what it wrote first and takes out what the configuration
switched off. The manifests of snapshots say that they have one (Manifest.identified), so that its
own loss is visible too. It is only ever replaced by a conditional write.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from functions.snapshot import dumps, fixity, layout
from functions.snapshot.errors import (
    VERSION,
    Conflict,
    DamagedStore,
    MissingObject,
    check_version,
)
from functions.snapshot.pointer import DIGEST, digest, encode_with_digest
from functions.snapshot.seal import build, refuse_damage
from functions.snapshot.store import Reader, Writer

_TRIES = 8
BEGUN = frozenset({layout.POINTER, layout.WITNESS})
"""What a store has once `sheaf init` or the first publish is complete."""
TRACES = (f"{layout.TABLES}index.json", dumps.INDEX, "log/checkpoint")
"""Objects that only a published store has."""
_MARKS = (layout.RECORDS, layout.SNAPSHOTS, "obi/;", "filesets/", "warcs/", layout.INTAKE)


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """The store's id, the objects (or prefixes with `/`) that must be there, and verifier keys.

    `signers` are the keys that signed the log, as text. They let `sheaf verify` find a damaged
    signature; who distrusts the store names keys of their own.
    """

    store: str
    parts: frozenset[str] = frozenset()
    signers: tuple[str, ...] = ()

    @property
    def is_published(self) -> bool:
        """Whether a snapshot was ever published."""
        return layout.SNAPSHOTS in self.parts

    def to_json(self) -> bytes:
        """Return the identity as JSON for the store."""
        document = {"schema": VERSION, "store": self.store, "parts": sorted(self.parts)}
        if self.signers:
            document["signers"] = list(self.signers)
        return encode_with_digest(document)

    @staticmethod
    def from_json(data: bytes) -> "StoreIdentity":
        """Parse the output of `to_json`. Raises NewerSchema or DamagedStore."""
        with refuse_damage(layout.IDENTITY):
            document = json.loads(data)
            check_version(document["schema"])
            if document[DIGEST] != digest(document):
                raise ValueError(f"it does not match its {DIGEST}")
            return build(StoreIdentity, document)


def read_identity(store: Reader) -> StoreIdentity | None:
    """Return the identity, None if the store has none. Raises DamagedStore and StoreError."""
    try:
        return StoreIdentity.from_json(store.read(layout.IDENTITY))
    except MissingObject:
        return None


def revise_identity(
    store: Writer,
    name: str,
    *,
    parts: Iterable[str] = (),
    off: Iterable[str] = (),
    signers: Iterable[str] = (),
) -> None:
    """Write the identity of the store with the id `name`, with further parts and signers.

    `off` are parts that the store need not have any more. A damaged identity is written anew.
    Raises Conflict if other processes replaced it every time, and StoreError.
    """
    for _ in range(_TRIES):
        tag = store.tag(layout.IDENTITY)
        try:
            before = read_identity(store)
        except DamagedStore:
            before = None
        identity = before or StoreIdentity(name)
        after = StoreIdentity(
            name,
            identity.parts.difference(off).union(parts),
            tuple(dict.fromkeys((*identity.signers, *signers))),
        )
        if after == before:
            return
        try:
            store.replace(layout.IDENTITY, after.to_json(), tag)
        except Conflict:
            continue
        return
    raise Conflict(f"{layout.IDENTITY} was replaced by other processes every time")


def find_trace(store: Writer) -> str | None:
    """Return the key of an object that only a published store has, or None.

    Records of publishes in the obi store do not count: a store can be built anew from these.
    Raises DamagedStore if the reports of checks cannot be read, and StoreError.
    """
    for key in TRACES:
        if store.size(key) is not None:
            return key
    return fixity.FIXITY if any(report.snapshot for report in fixity.read_reports(store)) else None


def has_content(store: Writer) -> bool:
    """Return whether the place has an object of a store besides what `sheaf init` writes."""
    if any(store.size(key) is not None for key in (*TRACES, fixity.FIXITY)):
        return True
    return any(key != layout.WITNESS for prefix in _MARKS for key in store.keys(prefix))
