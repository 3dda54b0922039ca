"""The clock of these tests, and filled stores."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builder.obi.run import ObiRuntime
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
