"""Stores of generated captures."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builder.conftest import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    yield world
    world.close()
