"""Stores whose snapshots are signed."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from builder.outputs.log.bundle import ProofBundle, Verdict, verify_bundle
from builder.outputs.log.note import VerifierKey
from builder.outputs.log.prove import Prover
from builder.outputs.log.signer import create_key
from functions.snapshot import instant
from tests.builder.conftest import World, capture

NAME = "archive.example.org/log"


@dataclass
class Signed:
    """A world with a key; its publishes are signed."""

    world: World
    settings: dict[str, str]
    key: VerifierKey

    def publish(self, *numbers: int, **changes: object) -> None:
        """Ingest and publish captures with these numbers."""
        self.world.ingest([capture(number, **changes) for number in numbers])
        self.world.publish(**self.settings)

    def prove(self, identifier: str, as_of: str | None = None) -> ProofBundle:
        """Return the bundle for an identifier at an instant."""
        prover = Prover(self.world.store)
        try:
            return prover.prove(identifier, instant.from_text(as_of) if as_of else None)
        finally:
            prover.close()

    def verify(self, identifier: str, as_of: str | None = None) -> Verdict:
        """Return what the bundle proves."""
        return verify_bundle(self.prove(identifier, as_of), [self.key])


def sign_with(world: World, path: Path, name: str = NAME) -> Signed:
    """Return the world with a new key at `path`."""
    key = create_key(path, name)
    return Signed(world, {"SHEAF_SIGN_KEY": str(path)}, key)


@pytest.fixture
def signed(world: World, tmp_path: Path) -> Signed:
    return sign_with(world, tmp_path / "sheaf.key")
