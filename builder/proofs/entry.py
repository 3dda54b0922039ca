"""Entries of the log: what a signature says of a snapshot.

An entry is one JSON document. It holds digests alone, so it says nothing of a withdrawn record.
"""

import json
from dataclasses import asdict, dataclass

from builder.proofs.errors import ProofError
from builder.store import documents


@dataclass(frozen=True, slots=True)
class TreeHead:
    """A tree: its number of leaves, and its root as Base64."""

    size: int
    root: str


@dataclass(frozen=True, slots=True)
class RunHead:
    """A run of a table: first and last position of its span, and the tree of its row groups."""

    first: int
    last: int
    size: int
    root: str


@dataclass(frozen=True, slots=True)
class LogEntry:
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
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    def parse(text: str | bytes) -> "LogEntry":
        """Parse the output of `to_text`. Raises ProofError."""
        try:
            return documents.build(LogEntry, json.loads(text))
        except (ValueError, RecursionError) as error:
            raise ProofError(f"an entry of the log is malformed: {error}") from error


def sequence_line(number: int, effective: str) -> bytes:
    """Return the leaf of a publish in the tree of `sequences`."""
    return f"{number} {effective}\n".encode()
