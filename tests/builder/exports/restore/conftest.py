"""An archive with all that a restore meets, which is only read."""

from collections.abc import Iterator

import pytest

from tests.builder.exports.restore.shelf import Shelf, fill
from tests.e2e.conftest import make_home


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    folder = tmp_path_factory.mktemp("shelf")
    return fill(make_home(folder / "home"), folder / "crawl")


@pytest.fixture(scope="module", params=["store", "endpoint"])
def address(request: pytest.FixtureRequest, shelf: Shelf) -> Iterator[str]:
    """Give the address of the archive: the store's, and that of a server."""
    if request.param == "store":
        yield str(shelf.store)
        return
    with shelf.served() as base:
        yield f"{base}/oai"
