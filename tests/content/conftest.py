"""Places of archive files."""

from pathlib import Path

import pytest

from .stored import Stored


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    return Stored.within(tmp_path / "archives")
