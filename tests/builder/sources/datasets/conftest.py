"""A fake server of all platforms for each test, and the ways to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.snapshot.store import Writer
from tests.builder.sources.datasets import command as commands
from tests.builder.sources.datasets.command import Command
from tests.builder.sources.datasets.server import Server, serving
from tests.builder.sources.datasets.world import World, open_store, world


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture(params=["folder", "moto"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Writer]:
    with open_store(request, tmp_path, request.param) as found:
        yield found


@pytest.fixture
def there(server: Server, tmp_path: Path) -> World:
    return world(server, tmp_path)


@pytest.fixture
def command(
    there: World,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Command:
    return commands.made(there, tmp_path, capsys, monkeypatch)
