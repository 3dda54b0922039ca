"""An archive with all that a restore meets, which is only read."""

import pytest

from tests.builder.exports.restore.shelf import Shelf, fill
from tests.e2e.conftest import make_home


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    folder = tmp_path_factory.mktemp("shelf")
    return fill(make_home(folder / "home"), folder / "crawl")
