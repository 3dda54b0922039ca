"""Signers: a private key from a file, the environment or Secrets Manager, or one in KMS."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.outputs.log.note import (
    ProofError,
    SecretKey,
    VerifierKey,
    load_library,
    sign_note,
)
from builder.store import aws
from functions.config import signing
from functions.config.configuration import Configuration
from functions.snapshot.errors import ConfigurationError, StoreError

_ALGORITHM = "ED25519_SHA_512"


@dataclass(frozen=True, slots=True)
class LogSigner:
    """A key that signs. `former` are keys that signed the log before it; they have its name."""

    key: VerifierKey
    sign: Callable[[bytes], bytes]
    former: tuple[VerifierKey, ...] = ()

    @property
    def keys(self) -> Sequence[VerifierKey]:
        """All keys that may have signed the log."""
        return (self.key, *self.former)

    def sign_note(self, text: str) -> str:
        """Return the text as a signed note."""
        return sign_note(text, self.key, self.sign)


def open_signer(
    settings: Configuration, connect: Callable[[str, str], Any] = aws.connect
) -> LogSigner | None:
    """Return the signer that the configuration names, None without one.

    `connect` returns a client of a service of AWS in a region. Raises ConfigurationError,
    UsageError if the library is missing, and StoreError if AWS does not answer.
    """
    value = str(settings[signing.NAME])
    if not value:
        return None
    load_library()
    try:
        return _open(value, name_log(settings), connect)
    except (ProofError, OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{signing.NAME}: {error}") from error


def name_log(settings: Configuration) -> str:
    """Return the name of a new key, and of one of KMS."""
    return f"{settings['repository.namespace']}/log"


def create_key(path: Path, name: str) -> VerifierKey:
    """Write a new private key to a file that only its owner can read; return its public key.

    Raises FileExistsError, OSError.
    """
    private = load_library().Ed25519PrivateKey.generate()
    key = VerifierKey(name, private.public_key().public_bytes_raw())
    secret = SecretKey(name, key.id.hex(), private.private_bytes_raw())
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secret.to_text() + "\n")
    return key


def _open(value: str, name: str, connect: Callable[[str, str], Any]) -> LogSigner:
    if value.startswith(signing.PRIVATE):
        return _of_text(value)
    if signing.is_file(value):
        return _of_text(Path(value).read_text("utf-8"))
    region = value.split(":")[3]
    if value.startswith("arn:aws:kms:"):
        return _of_kms(connect("kms", region), value, name)
    client = connect("secretsmanager", region)
    with aws.calling(value):
        text = str(client.get_secret_value(SecretId=value)["SecretString"])
    return _of_text(text)


def _of_text(text: str) -> LogSigner:
    """Return the signer of a private key; further lines are verifier keys from before it."""
    line, *others = text.split()
    secret = SecretKey.parse(line)
    key = secret.find_public()
    former = tuple(map(VerifierKey.parse, others))
    if names := {verifier.name for verifier in former} - {key.name}:
        raise ProofError(f"a log has one name, but its keys have {key.name} and {names.pop()}")
    return LogSigner(key, secret.sign, former)


def _of_kms(client: Any, key: str, name: str) -> LogSigner:
    """Return a signer whose key never leaves KMS (key spec ECC_NIST_EDWARDS25519)."""
    with aws.calling(key):
        description = client.get_public_key(KeyId=key)
    if _ALGORITHM not in description.get("SigningAlgorithms", ()):
        raise ConfigurationError(f"{signing.NAME}: {key} is not a key ECC_NIST_EDWARDS25519")
    # The DER of such a key ends with its 32 bytes.
    verifier = VerifierKey(name, bytes(description["PublicKey"])[-32:])

    def sign(message: bytes) -> bytes:
        with aws.calling(key):
            done = client.sign(
                KeyId=key, Message=message, MessageType="RAW", SigningAlgorithm=_ALGORITHM
            )
        signature = bytes(done["Signature"])
        if not verifier.is_signed(signature, message):
            raise StoreError(f"{key}: its signature does not match its public key")
        return signature

    return LogSigner(verifier, sign)
