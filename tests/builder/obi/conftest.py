"""The stores of these tests: a folder, a bucket of moto's or SeaweedFS's, and filled ones."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builder.obi.run import ObiRuntime
from builder.store.folder import FolderStore
from builder.store.s3 import S3Store
from tests.bucket import fresh
from tests.builder.conftest import Clock

if TYPE_CHECKING:
    from tests.builder.obi.archive import Repec
    from tests.builder.obi.kept import Kept


@dataclass
class Time:
    """A clock of the test's own, and what was said while it ran."""

    clock: Clock = field(default_factory=lambda: Clock(datetime(2026, 11, 21, 10, tzinfo=UTC)))
    said: list[str] = field(default_factory=list)

    @property
    def runtime(self) -> ObiRuntime:
        return ObiRuntime(self.clock, self.clock.sleep, self.said.append)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture(params=["folder", "moto", "weed"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FolderStore | S3Store]:
    if request.param == "folder":
        yield FolderStore(tmp_path / "store")
        return
    with closing(fresh(request.getfixturevalue(f"{request.param}_server"))) as bucket:
        yield bucket


@pytest.fixture
def repec(tmp_path: Path) -> Iterator["Repec"]:
    """An archive of RePEc that a test publishes."""
    from tests.builder.obi.archive import Repec

    (tmp_path / "repec").mkdir()
    world = Repec(tmp_path / "repec" / "store")
    yield world
    world.close()


@pytest.fixture
def kept(tmp_path: Path) -> "Kept":
    """A store with three versions of each object."""
    from tests.builder.obi.kept import three_in

    return three_in(tmp_path / "store")
