"""A fake server of all platforms for each test, and the ways to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .server import Server, serving
from .world import World, world


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def there(server: Server, tmp_path: Path) -> World:
    return world(server, tmp_path)
