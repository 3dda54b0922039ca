"""A home with a store, for whole runs of the command line."""

from pathlib import Path

import pytest

from tests.e2e.conftest import Home, make_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path / "home")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where a tree of RePEc lies."""
    return tmp_path / "RePEc"
