"""A home with a store, for whole runs of the command line."""

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where a tree of RePEc lies."""
    return tmp_path / "RePEc"
