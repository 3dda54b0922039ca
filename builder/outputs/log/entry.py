"""Entries of the log: what a signature says of a snapshot.

An entry is one JSON document. It holds digests alone, so it says nothing of a withdrawn record.
"""

import json

from builder.outputs.log.merkle import hash_leaf
from builder.outputs.log.note import ProofError
from functions.snapshot import instant
from functions.snapshot.manifest import Manifest
from functions.snapshot.seal import Struct, build, encode

Sequences = tuple[tuple[int, str], ...]
"""Number and instant of each publish, ascending."""


class TreeHead(Struct, frozen=True):
    """A tree: its number of leaves, and its root (Base64 in JSON)."""

    size: int
    root: bytes


class RunHead(Struct, frozen=True):
    """A run of a table: first and last position of its span, and the tree of its row groups."""

    first: int
    last: int
    size: int
    root: bytes


class LogEntry(Struct, frozen=True):
    """A snapshot: the store's id, number, instant, and the SHA-256 of its manifest.

    `sequences` is the tree of the publishes with their instants. `lookup` and `records` are the
    runs of these tables. `previous` is the signed checkpoint before this entry; "" for the first.
    """

    store: str
    snapshot: int
    effective: str
    manifest: str
    sequences: TreeHead
    lookup: tuple[RunHead, ...]
    records: tuple[RunHead, ...]
    previous: str

    def to_text(self) -> str:
        """Return the entry as it is in the log."""
        return encode(self, ascii=False).decode()

    @staticmethod
    def parse(text: str | bytes) -> "LogEntry":
        """Parse the output of `to_text`. Raises ProofError."""
        try:
            return build(LogEntry, json.loads(text))
        except (ValueError, RecursionError) as error:
            raise ProofError(f"an entry of the log is malformed: {error}") from error


def sequence_line(number: int, effective: str) -> bytes:
    """Return the leaf of a publish in the tree of `sequences`."""
    return f"{number} {effective}\n".encode()


def list_sequences(manifest: Manifest) -> Sequences:
    """Return number and instant of each publish."""
    return tuple((s.number, instant.to_text(s.effective)) for s in manifest.sequences)


def hash_sequences(sequences: Sequences) -> list[bytes]:
    """Return the hashes of the leaves of the tree of `sequences`."""
    return [hash_leaf(sequence_line(*publish)) for publish in sequences]
