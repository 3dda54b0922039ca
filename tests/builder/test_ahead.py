"""Row groups that are kept, and read ahead: the pages are those of a repository that keeps none."""

import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from functions.oai.duck import DuckRepository
from functions.oai.repository import Record, Selection
from functions.snapshot import layout
from functions.snapshot.errors import StoreUnavailable
from functions.snapshot.manifest import Manifest, Span
from functions.store.folder import FolderReader

from .conftest import World, capture


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "GROUP_ROWS", 8)
    monkeypatch.setattr(layout, "FILE_GROUPS", 3)


@pytest.fixture
def manifest(world: World) -> Manifest:
    world.ingest([capture(n) for n in range(100)])
    world.publish()
    world.ingest([capture(n, title="Changed") for n in range(0, 100, 9)])
    found = world.publish().manifest
    assert found is not None
    return found


def page(repository: DuckRepository, manifest: Manifest, first: int) -> Sequence[Record]:
    selection = Selection(("capture",), Span(first, manifest.last_position))
    return tuple(repository.page(manifest, selection, 4, headers=False))


def test_pages_are_the_same_whatever_is_kept(world: World, manifest: Manifest) -> None:
    bare = DuckRepository(world.store, 0)
    places = range(1, manifest.last_position + 1)
    expected = {first: page(bare, manifest, first) for first in places}
    order = [*places, *reversed(places), *random.Random(1).choices(places, k=200)]
    for kept, ahead in ((5_000, False), (1 << 20, False), (1 << 20, True)):
        repository = DuckRepository(world.store, kept, ahead=ahead)
        for first in order:
            assert page(repository, manifest, first) == expected[first]
        repository.close()
    bare.close()


def test_what_a_format_needs_is_there_and_no_more(world: World, manifest: Manifest) -> None:
    repository = DuckRepository(world.store)
    selection = Selection(("capture",), Span(1, manifest.last_position))
    records = repository.page(manifest, selection, 50, headers=False, fields={"url", "nothing"})
    assert {tuple(record.fields) for record in records} == {("url",)}
    one = repository.record(manifest, records[0].identifier, fields={"title"})
    assert one is not None
    assert tuple(one.fields) == ("title",)
    repository.close()


class Failing(FolderReader):
    """A folder that is out of reach for the thread that reads ahead."""

    failed = 0

    def local(self, key: str, spans: Sequence[tuple[int, int]] | None = None) -> Path:
        if threading.current_thread().name.startswith("sheaf-ahead"):
            self.failed += 1
            raise StoreUnavailable("out of reach")
        return super().local(key, spans)


def test_what_could_not_be_read_ahead_is_read_when_asked_for(
    world: World, manifest: Manifest
) -> None:
    reader = Failing(world.store.root)
    repository = DuckRepository(reader, ahead=True)
    found: list[int] = []
    while records := page(repository, manifest, found[-1] + 1 if found else 1):
        found += [record.position for record in records]
    assert len(found) == 100
    assert reader.failed > 0
    repository.close()
