"""Ed25519 (RFC 8032). The only file that imports cryptography, which is an extra."""

from builder.errors import UsageError
from builder.proofs.errors import ProofError
from builder.proofs.note import SecretKey, VerifierKey

_ABSENT = "cryptography is missing: install sheaf-archive[sign]"


def check_installed() -> None:
    """Raise UsageError if the library is not installed."""
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise UsageError(_ABSENT) from error


def find_public(seed: bytes) -> bytes:
    """Return the public key of a seed of 32 bytes."""
    check_installed()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def open_secret(secret: SecretKey) -> VerifierKey:
    """Return the public key of a secret one. Raises ProofError if its id is wrong."""
    key = VerifierKey(secret.name, find_public(secret.seed))
    if key.id.hex() != secret.id:
        raise ProofError(f"the private key of {secret.name} does not match its id {secret.id}")
    return key


def sign(seed: bytes, message: bytes) -> bytes:
    """Return the signature of a message, 64 bytes."""
    check_installed()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).sign(message)


def is_signed(public: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether the key signed the message."""
    check_installed()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
