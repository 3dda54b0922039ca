"""Row groups that are kept, and read ahead: the pages are those of a repository that keeps none."""

import hashlib
import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import PublishedRecord, RecordSelection
from functions.snapshot import layout
from functions.snapshot.errors import StoreUnavailable
from functions.snapshot.manifest import Manifest, Span
from functions.store import engine
from functions.store.store_reader import FolderReader
from tests.builder.conftest import World, capture, resize

pytestmark = pytest.mark.shared(2)


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        resize(monkeypatch, GROUP_ROWS=8, FILE_GROUPS=3)
        yield


@pytest.fixture(scope="module")
def filled(small: None, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A store that tests read."""
    world = World(tmp_path_factory.mktemp("filled") / "store")
    world.add([capture(n) for n in range(100)])
    world.add([capture(n, title="Changed") for n in range(0, 100, 9)])
    return world


@pytest.fixture
def manifest(filled: World) -> Manifest:
    return filled.newest()


def page(repository: DuckRepository, manifest: Manifest, first: int) -> Sequence[PublishedRecord]:
    selection = RecordSelection(("capture",), Span(first, manifest.last_position))
    return tuple(repository.page(manifest, selection, 4, headers=False))


def test_pages_are_the_same_whatever_is_kept(filled: World, manifest: Manifest) -> None:
    """By steps of 3 and 5, of groups of 8 rows: pages begin at each place of a group."""
    bare = DuckRepository(filled.store, 0)
    places = range(1, manifest.last_position + 1)
    order = [*places[::3], *places[::-5], *random.Random(1).choices(places[::3], k=40)]
    expected = {first: page(bare, manifest, first) for first in order}
    for kept, ahead in ((5_000, False), (1 << 20, False), (1 << 20, True)):
        repository = DuckRepository(filled.store, kept, ahead=ahead)
        for first in order:
            assert page(repository, manifest, first) == expected[first]
        repository.close()
    bare.close()


def test_what_a_format_needs_is_there_and_no_more(filled: World, manifest: Manifest) -> None:
    repository = DuckRepository(filled.store)
    selection = RecordSelection(("capture",), Span(1, manifest.last_position))
    records = repository.page(manifest, selection, 50, headers=False, fields={"url", "nothing"})
    assert {tuple(record.fields) for record in records} == {("url",)}
    one = repository.record(manifest, records[0].identifier, fields={"title"})
    assert one is not None
    assert tuple(one.fields) == ("title",)
    repository.close()


class Failing(FolderReader):
    """A folder that is out of reach for the thread that reads ahead."""

    failed = 0

    def local(
        self, key: str, spans: Sequence[tuple[int, int]] | None = None, size: int | None = None
    ) -> Path:
        if threading.current_thread().name.startswith("sheaf-ahead"):
            self.failed += 1
            raise StoreUnavailable("out of reach")
        return super().local(key, spans, size)


def test_what_could_not_be_read_ahead_is_read_when_asked_for(
    filled: World, manifest: Manifest
) -> None:
    reader = Failing(filled.store.root)
    repository = DuckRepository(reader, ahead=True)
    found: list[int] = []
    while records := page(repository, manifest, found[-1] + 1 if found else 1):
        found += [record.position for record in records]
    assert len(found) == 100
    assert reader.failed > 0
    repository.close()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ahead", [False, True])
def test_values_that_do_not_fit_into_memory_as_one_text_are_read_row_by_row(
    world: World, monkeypatch: pytest.MonkeyPatch, ahead: bool
) -> None:
    monkeypatch.setattr(layout, "GROUP_ROWS", 1024)
    monkeypatch.setattr(engine, "connect", partial(engine.connect, memory_megabytes=100))
    urls = [f"http://a.cz/{hashlib.sha512(b'%d' % n).hexdigest() * 90}" for n in range(1024)]
    manifest = world.add([replace(capture(n), url=url) for n, url in enumerate(urls)]).manifest
    assert manifest is not None
    repository = DuckRepository(world.store, ahead=ahead)
    selection = RecordSelection(("capture",), Span(1, manifest.last_position))
    for limit in (10, 40):
        records = repository.page(manifest, selection, limit, headers=False)
        assert len(records) == limit
        assert {record.fields["url"] for record in records} <= {*urls}
    repository.close()


@pytest.mark.thorough
def test_many_readers_at_once_find_memory_for_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "GROUP_ROWS", 512)
    monkeypatch.setattr(engine, "connect", partial(engine.connect, memory_megabytes=160))
    world.ingest([capture(n, url=f"http://a.cz/{n}{'x' * 5000}") for n in range(4096)])
    manifest = world.publish().manifest
    assert manifest is not None
    repository = DuckRepository(world.store, 1 << 20)

    def ask(number: int) -> int:
        selection = RecordSelection(
            ("capture",), Span(1 + number % 8 * 512, manifest.last_position)
        )
        return len(repository.page(manifest, selection, 101, headers=False))

    with ThreadPoolExecutor(32) as pool:
        assert {*pool.map(ask, range(64))} == {101}
    repository.close()
