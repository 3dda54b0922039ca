"""Signed notes and their keys (C2SP signed-note, Ed25519 of RFC 8032), and checkpoints of a log.

A note is a text that ends with a line feed, an empty line, and lines with signatures. A line names
its key, and has the key's id and the signature as Base64. A checkpoint (C2SP tlog-checkpoint) is
the text of a note: size and root of a log. This is the only file that imports cryptography, which
is an extra.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from builder.errors import UsageError
from functions.snapshot.errors import SheafError


class ProofError(SheafError):
    """A note, a log or a bundle is not what its key signed, or does not prove its claim."""


_ED25519 = 1
_DASH = "\u2014"
_KEY_BYTES, _ID_BYTES, _SIGNATURE_BYTES = 32, 4, 64
_MOST = 100
"""Signatures of a note that are read."""
_SIZE = re.compile("0|[1-9][0-9]{,17}")


def load_library() -> Any:
    """Return the module of the library. Raises UsageError if it is not installed."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise UsageError("cryptography is missing: install sheaf-archive[sign]") from error
    return ed25519


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key with its name, such as `archive.example.org/log`."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        """The first four bytes of the hash of name, type and key."""
        data = self.name.encode() + b"\n" + bytes([_ED25519]) + self.public
        return hashlib.sha256(data).digest()[:_ID_BYTES]

    def to_text(self) -> str:
        """Return `name+id+key`, which verifiers take."""
        key = base64.b64encode(bytes([_ED25519]) + self.public).decode()
        return f"{self.name}+{self.id.hex()}+{key}"

    @staticmethod
    def parse(text: str) -> "VerifierKey":
        """Parse the output of `to_text`. Raises ProofError."""
        name, _, rest = text.strip().partition("+")
        digest, _, key = rest.partition("+")
        verifier = VerifierKey(name, read_key(key))
        if not is_name(name) or verifier.id.hex() != digest:
            raise ProofError(f"{text!r} is not a verifier key: name+id+key")
        return verifier

    def is_signed(self, signature: bytes, message: bytes) -> bool:
        """Return whether this key signed the message."""
        library = load_library()
        from cryptography.exceptions import InvalidSignature

        try:
            library.Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class SecretKey:
    """The seed of a key, with the key's name and id (hexadecimal)."""

    name: str
    id: str
    seed: bytes

    def to_text(self) -> str:
        """Return `PRIVATE+KEY+name+id+seed`."""
        key = base64.b64encode(bytes([_ED25519]) + self.seed).decode()
        return f"PRIVATE+KEY+{self.name}+{self.id}+{key}"

    @staticmethod
    def parse(text: str) -> "SecretKey":
        """Parse the output of `to_text`. Raises ProofError, which does not repeat the text."""
        parts = text.strip().split("+", 4)
        if len(parts) != 5 or parts[:2] != ["PRIVATE", "KEY"] or not is_name(parts[2]):
            raise ProofError("expected a private key of notes: PRIVATE+KEY+name+id+seed")
        return SecretKey(parts[2], parts[3], read_key(parts[4]))

    def find_public(self) -> VerifierKey:
        """Return the public key. Raises ProofError if the id of this one is wrong."""
        private = load_library().Ed25519PrivateKey.from_private_bytes(self.seed)
        key = VerifierKey(self.name, private.public_key().public_bytes_raw())
        if key.id.hex() != self.id:
            raise ProofError(f"the private key of {self.name} does not match its id {self.id}")
        return key

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message, 64 bytes."""
        return bytes(load_library().Ed25519PrivateKey.from_private_bytes(self.seed).sign(message))


def is_name(text: str) -> bool:
    """Return whether a key may have this name."""
    return bool(text) and "+" not in text and text.isprintable() and " " not in text


def read_key(text: str) -> bytes:
    """Return the 32 bytes of a public key or of a seed. Raises ProofError."""
    data = decode(text)
    if len(data) != 1 + _KEY_BYTES or data[0] != _ED25519:
        raise ProofError("a key is not one of Ed25519")
    return data[1:]


def decode(text: str) -> bytes:
    """Return the bytes of a Base64 text. Raises ProofError."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProofError(f"a value is not Base64: {error}") from error


def encode(data: bytes) -> str:
    """Return bytes as Base64."""
    return base64.b64encode(data).decode()


def sign_note(text: str, key: VerifierKey, sign: Callable[[bytes], bytes]) -> str:
    """Return the text as a note that is signed with the key."""
    return f"{text}\n{_DASH} {key.name} {encode(key.id + sign(text.encode()))}\n"


def split_note(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    """Return a note's text, and each signature's key name and bytes. Raises ProofError."""
    text, gap, rest = note.rpartition("\n\n")
    lines = rest.split("\n")
    if not gap or not text or len(lines) < 2 or lines.pop() or len(lines) > _MOST:
        raise ProofError("a note has no text, or no signature")
    signatures = []
    for line in lines:
        parts = line.split(" ")
        if len(parts) != 3 or parts[0] != _DASH or not is_name(parts[1]):
            raise ProofError("a line of signatures of a note is malformed")
        signatures.append((parts[1], decode(parts[2])))
    return text + "\n", signatures


def open_note(note: str, keys: Sequence[VerifierKey]) -> tuple[str, VerifierKey]:
    """Return the text of a note, and the key of `keys` that signed it.

    Signatures of other keys are ignored. Raises ProofError.
    """
    text, signatures = split_note(note)
    for name, data in signatures:
        for key in keys:
            if key.name == name and data[:_ID_BYTES] == key.id:
                signature = data[_ID_BYTES:]
                if len(signature) == _SIGNATURE_BYTES and key.is_signed(signature, text.encode()):
                    return text, key
                raise ProofError(f"the signature of {name} on a note is wrong")
    names = ", ".join(name for name, _ in signatures)
    raise ProofError(f"a note is signed by {names}, and not by a key that was given")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The name of a log, its number of entries, and the root of its tree."""

    origin: str
    size: int
    root: bytes

    def to_text(self) -> str:
        """Return the text that is signed."""
        return f"{self.origin}\n{self.size}\n{encode(self.root)}\n"

    @staticmethod
    def parse(text: str) -> "Checkpoint":
        """Parse the output of `to_text`; further lines are ignored. Raises ProofError."""
        lines = text.split("\n")
        if len(lines) < 4 or not lines[0] or not _SIZE.fullmatch(lines[1]):
            raise ProofError("a note is not a checkpoint of a log")
        root = decode(lines[2])
        if len(root) != 32:
            raise ProofError("a note is not a checkpoint of a log")
        return Checkpoint(lines[0], int(lines[1]), root)


def open_checkpoint(text: str, keys: Sequence[VerifierKey] | None) -> Checkpoint:
    """Return the checkpoint in a note; `keys` of None checks no signature. Raises ProofError."""
    if keys is None:
        return Checkpoint.parse(split_note(text)[0])
    body, key = open_note(text, keys)
    checkpoint = Checkpoint.parse(body)
    if checkpoint.origin != key.name:
        raise ProofError(f"a checkpoint of the log {checkpoint.origin} is signed by {key.name}")
    return checkpoint
