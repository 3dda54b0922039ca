"""Stores whose snapshots are signed."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from builder.outputs.log.bundle import ProofBundle, Verdict, verify_bundle
from builder.outputs.log.note import Checkpoint, VerifierKey
from builder.outputs.log.prove import Prover
from builder.outputs.log.signer import create_key
from builder.outputs.log.verify import log_findings
from functions.snapshot import instant
from tests.builder.conftest import World, capture

NAME = "archive.example.org/log"
PROGRAM = Path(__file__).parents[4] / "docs" / "reference" / "check_proof.py"


@dataclass
class Signed:
    """A world with a key; its publishes are signed."""

    world: World
    settings: dict[str, str]
    key: VerifierKey

    def publish(self, *numbers: int, **changes: object) -> None:
        """Ingest and publish captures with these numbers."""
        self.world.add([capture(number, **changes) for number in numbers], **self.settings)

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

    def codes(self, earlier: Checkpoint | None = None, *, trusting: bool = False) -> list[str]:
        """Return the codes of what verify finds in the log."""
        keys = None if trusting else [self.key]
        findings = log_findings(self.world.store, keys, earlier)
        return [finding.code for finding in findings]

    def check(self, data: bytes, folder: Path) -> subprocess.CompletedProcess[str]:
        """Let the independent program check a bundle."""
        path = folder / "bundle.json"
        path.write_bytes(data)
        command = [sys.executable, "-I", str(PROGRAM), str(path), self.key.to_text()]
        return subprocess.run(command, capture_output=True, text=True, check=False)


def sign_with(world: World, path: Path, name: str = NAME) -> Signed:
    """Return the world with a new key at `path`."""
    key = create_key(path, name)
    return Signed(world, {"SHEAF_SIGN_KEY": str(path)}, key)


@pytest.fixture
def signed(world: World, tmp_path: Path) -> Signed:
    return sign_with(world, tmp_path / "sheaf.key")
