"""Every export format: what its command does, whichever format it is."""

from pathlib import Path

import pytest

from builder.exports import EXPORTS, Export
from tests.builder.sources.redif.trees import archive, paper, tree
from tests.e2e.conftest import Home, make_home


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home with a published capture, which is only read."""
    folder = tmp_path_factory.mktemp("published")
    home = make_home(folder / "home")
    page = {"http://www.knihovna.cz/": b"<title>Knihovna</title>"}
    home.publish_pages(folder / "one.warc.gz", page)
    return home


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home with a run of the obi store, which is only read."""
    folder = tmp_path_factory.mktemp("archived")
    home = make_home(folder / "home")
    papers = tree(folder / "RePEc", {**archive(), "aaa/wpaper/1.rdf": paper(1)})
    assert [home("ingest", papers).code, home("publish").code] == [0, 0]
    return home


@pytest.fixture(params=EXPORTS, ids=lambda export: export.name)
def export(request: pytest.FixtureRequest) -> Export:
    member: Export = request.param
    return member


def test_a_place_within_the_store_is_refused(export: Export, published: Home) -> None:
    where = published.folder / "store" / "new.warc.gz"
    done = published("export", export.name, where)
    assert done.code == 2
    assert "is inside the store: choose another place" in done.err
    assert not where.exists()


def test_a_store_without_a_snapshot_leaves_no_trace(export: Export, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    done = home("export", export.name, tmp_path / "out" / "new.warc.gz")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_a_written_export_is_reported_and_not_overwritten(
    export: Export, published: Home, archived: Home, tmp_path: Path
) -> None:
    home = archived if export.name in ("ocfl", "bagit") else published
    target = tmp_path / "new.warc.gz"
    done = home("export", export.name, "--json", target)
    if export.name == "rocrate":  # of datasets, of which this store has none
        assert (done.code, "has no archived" in done.err) == (2, True)
        return
    document = done.json
    assert (done.code, document["store"]) == (0, str(home.folder / "store"))
    assert str(target) in document.values()
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    again = home("export", export.name, target)
    if home is archived:  # objects and bags that are there stay, and others would be added
        assert (again.code, "there" in again.out) == (0, True)
    elif export.name == "site":  # it would be brought up to date
        assert (again.code, "0 files" in again.out) == (0, True)
    else:
        assert again.code == 2
        assert "already exists" in again.err or "is not an empty folder" in again.err
    assert files
    assert files == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
