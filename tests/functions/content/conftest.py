"""Places of archive files."""

from pathlib import Path

import pytest

from tests.functions.content.stored import Stored


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    return Stored.within(tmp_path / "archives")
