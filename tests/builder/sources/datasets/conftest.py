"""A fake server of all platforms for each test, and the ways to it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from builder.store.folder import FolderStore
from functions.snapshot.store import Writer
from tests.bucket import fresh
from tests.builder.sources.datasets import command as commands
from tests.builder.sources.datasets.command import Command
from tests.builder.sources.datasets.server import Server, serving
from tests.builder.sources.datasets.world import World, world


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture(params=["folder", "moto"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Writer]:
    if request.param == "folder":
        yield FolderStore(tmp_path / "store")
        return
    endpoint = request.getfixturevalue(f"{request.param}_server")
    with closing(fresh(endpoint, part=5 << 20)) as bucket:
        yield bucket


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
