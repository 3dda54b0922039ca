"""A log in a store: its checkpoint and its tiles."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from builder.proofs.checkpoint import Checkpoint, open_checkpoint
from builder.proofs.merkle import find_root
from builder.proofs.note import VerifierKey
from builder.proofs.tiles import CHECKPOINT, TileTree
from functions.snapshot.errors import MissingObject
from functions.snapshot.store import Reader

_KEPT = 64
"""Tiles that are kept in memory."""


@dataclass(frozen=True, slots=True)
class SignedLog:
    """A log: the note with its checkpoint, the checkpoint, and the tree in the tiles."""

    note: str
    checkpoint: Checkpoint
    tree: TileTree

    def has_root(self) -> bool:
        """Return whether the tiles lead to the root. Raises ProofError, StoreError."""
        return self.tree.find_root() == self.checkpoint.root

    def continues(self, earlier: Checkpoint) -> bool:
        """Return whether the log begins with the entries of `earlier`.

        False if it has fewer. Raises ProofError, StoreError.
        """
        if earlier.origin != self.checkpoint.origin or earlier.size > self.checkpoint.size:
            return False
        return find_root(earlier.size, self.tree.node) == earlier.root


def open_log(reader: Reader, keys: Sequence[VerifierKey] | None) -> SignedLog | None:
    """Return the log of a store, None without one; `keys` of None checks no signature.

    Raises ProofError if its checkpoint is not signed, and StoreError.
    """
    try:
        note = reader.read(CHECKPOINT).decode("utf-8", "replace")
    except MissingObject:
        return None
    checkpoint = open_checkpoint(note, keys)
    return SignedLog(note, checkpoint, TileTree(lru_cache(_KEPT)(reader.read), checkpoint.size))
