"""Ed25519 (RFC 8032). The only file that imports cryptography, which is an extra."""

from typing import Any

from builder.errors import UsageError
from builder.outputs.log.note import ProofError, SecretKey, VerifierKey


def load_library() -> Any:
    """Return the module of the library. Raises UsageError if it is not installed."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise UsageError("cryptography is missing: install sheaf-archive[sign]") from error
    return ed25519


def find_public(seed: bytes) -> bytes:
    """Return the public key of a seed of 32 bytes."""
    key = load_library().Ed25519PrivateKey.from_private_bytes(seed)
    return bytes(key.public_key().public_bytes_raw())


def open_secret(secret: SecretKey) -> VerifierKey:
    """Return the public key of a secret one. Raises ProofError if its id is wrong."""
    key = VerifierKey(secret.name, find_public(secret.seed))
    if key.id.hex() != secret.id:
        raise ProofError(f"the private key of {secret.name} does not match its id {secret.id}")
    return key


def sign(seed: bytes, message: bytes) -> bytes:
    """Return the signature of a message, 64 bytes."""
    return bytes(load_library().Ed25519PrivateKey.from_private_bytes(seed).sign(message))


def is_signed(public: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether the key signed the message."""
    library = load_library()
    from cryptography.exceptions import InvalidSignature

    try:
        library.Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
