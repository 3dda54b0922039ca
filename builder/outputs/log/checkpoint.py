"""Checkpoints: size and root of a log (C2SP tlog-checkpoint), the text of a signed note."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from builder.outputs.log import note
from builder.outputs.log.ed25519 import is_signed
from builder.outputs.log.note import ProofError, VerifierKey

_SIZE = re.compile("0|[1-9][0-9]{,17}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The name of a log, its number of entries, and the root of its tree."""

    origin: str
    size: int
    root: bytes

    def to_text(self) -> str:
        """Return the text that is signed."""
        return f"{self.origin}\n{self.size}\n{note.encode(self.root)}\n"

    @staticmethod
    def parse(text: str) -> "Checkpoint":
        """Parse the output of `to_text`; further lines are ignored. Raises ProofError."""
        lines = text.split("\n")
        if len(lines) < 4 or not lines[0] or not _SIZE.fullmatch(lines[1]):
            raise ProofError("a note is not a checkpoint of a log")
        root = note.decode(lines[2])
        if len(root) != 32:
            raise ProofError("a note is not a checkpoint of a log")
        return Checkpoint(lines[0], int(lines[1]), root)


def open_checkpoint(text: str, keys: Sequence[VerifierKey] | None) -> Checkpoint:
    """Return the checkpoint in a note; `keys` of None checks no signature. Raises ProofError."""
    if keys is None:
        return Checkpoint.parse(note.split_note(text)[0])
    body, key = note.open_note(text, keys, is_signed)
    checkpoint = Checkpoint.parse(body)
    if checkpoint.origin != key.name:
        raise ProofError(f"a checkpoint of the log {checkpoint.origin} is signed by {key.name}")
    return checkpoint
