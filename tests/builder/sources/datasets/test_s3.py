"""Files as objects of the store: what is kept, kept again, missing, altered, and never half."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.sources.datasets.item import ArchiveStrategyResult, FilesetPlatformItem
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies import record
from builder.sources.datasets.strategies.keys import place
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreUnavailable
from functions.snapshot.store import Sink, Writer
from tests.builder.sources.datasets.body import Body, Generated
from tests.builder.sources.datasets.server import Server, served, then
from tests.builder.sources.datasets.world import World, manifest_file

BODIES: dict[str, Body] = {
    "data/med.csv": b"rok,kg\n2020,31\n",
    "data/Med.csv": b"rok,kg\n2021,29\n",
    "mapa.tif": Generated(3 << 20),
    "prázdný soubor.txt": b"",
}
HOST = "https://data.example.cz/files/"
LARGE = Generated(300_000)
"""A file that is not written together with others."""


every_store = pytest.mark.parametrize("store", ["folder", "moto", "weed"], indirect=True)


def item_of(
    server: Server, bodies: dict[str, Body], digests: str = "md5", **given: Any
) -> FilesetPlatformItem:
    """Return a dataset of those files, each served."""
    manifest = []
    for number, (path, body) in enumerate(bodies.items()):
        url = server.add(f"{HOST}{number}", served(body))
        manifest.append(manifest_file(url, body, path, digests))
    found = FilesetPlatformItem(
        platform_name="invenio",
        platform_domain="data.example.cz",
        platform_id="ab12",
        version="1",
        manifest=tuple(manifest),
    )
    return replace(found, **given)


def strategy(store: Writer, there: World, name: str = "s3-fileset", **settings: Any) -> Any:
    return there.strategy(name, store, **settings)


def objects(store: Writer) -> dict[str, bytes]:
    return {key: store.read(key) for key in store.keys("filesets/")}


@pytest.mark.sampled(3)
@every_store
def test_what_an_unfinished_run_left_is_not_trusted(there: World, store: Writer) -> None:
    item = item_of(there.server, {"a": b"first", "b": b"other"})
    store.create(place(item) + "files/a", b"frist")
    found = strategy(store, there).process(item)
    assert found.status == "success"
    assert store.read(place(item) + "files/a") == b"first"


class Meddled(FolderStore):
    """A store that something happens to when an object of that key is to be written."""

    def __init__(self, folder: Path, key: str, first: Callable[[], object]) -> None:
        super().__init__(folder / "store")
        self.key, self.first = key, first

    @contextmanager
    def creating(self, key: str, most: int | None = None) -> Iterator[Sink]:
        if key.endswith(self.key):
            self.first()
        with super().creating(key) as sink:
            yield sink


def test_of_two_runs_at_once_both_end_well_and_one_record_stays(
    there: World, tmp_path: Path
) -> None:
    item = item_of(there.server, BODIES)
    plain = FolderStore(tmp_path / "store")
    others: list[ArchiveStrategyResult] = []

    def first() -> None:
        others.append(strategy(plain, there).process(item))

    found = strategy(Meddled(tmp_path, "mapa.tif", first), there).process(item)
    assert found == others[0]
    assert record.read(plain, place(item)) is not None


@pytest.mark.parametrize("meddle", ["away", "short"])
def test_a_store_that_has_something_else_than_was_written_is_told(
    there: World, tmp_path: Path, meddle: str
) -> None:
    item = item_of(there.server, {"a": LARGE, "b": LARGE})

    def first() -> None:
        store.remove(place(item) + "files/a")
        if meddle == "short":
            store.create(place(item) + "files/a", b"fir")

    store = Meddled(tmp_path, "files/b", first)
    with pytest.raises(FilesetError, match="error-store-verify"):
        strategy(store, there, host_concurrent=1).process(item)
    assert record.read(store, place(item)) is None


def test_a_store_that_does_not_take_a_file_is_told(there: World, tmp_path: Path) -> None:
    item = item_of(there.server, {"a": LARGE, "b": LARGE})

    def fail() -> None:
        raise StoreUnavailable("s3://x: it does not answer")

    with pytest.raises(FilesetError, match="error-store-upload: b: s3://x") as caught:
        strategy(Meddled(tmp_path, "files/b", fail), there).process(item)
    assert [f.status for f in caught.value.manifest] == ["verified", "error-store-upload"]


@pytest.mark.sampled(3)
@every_store
def test_what_another_strategy_recorded_and_lost_begins_anew(there: World, store: Writer) -> None:
    item = item_of(there.server, {"a": b"first"})
    found = strategy(store, there, "s3-file").process(item)
    store.remove(found.location or "")
    again = strategy(store, there).process(item)
    assert again.ingest_strategy == "s3-fileset"
    known = record.read(store, place(item))
    assert known.archived.ingest_strategy == "s3-fileset"


@pytest.mark.sampled(3)
@every_store
def test_a_broken_connection_is_gone_on_with_into_the_same_object(
    there: World, store: Writer
) -> None:
    body = Generated(12 << 20)
    item = item_of(there.server, {"large": body})
    there.server.add(f"{HOST}0", then(served(body, cut=7 << 20), served(body)))
    found = strategy(store, there, "s3-file").process(item)
    assert found.status == "success-file"
    assert sum(a.sent for a in there.server.asked()) < 1.1 * len(body)
    assert store.read(found.location or "") == body.all
