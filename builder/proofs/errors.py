"""Errors of notes, logs and bundles."""

from functions.snapshot.errors import SheafError


class ProofError(SheafError):
    """A note, a log or a bundle is not what its key signed, or does not prove its claim."""
