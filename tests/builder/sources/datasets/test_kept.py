"""Whatever befalls a place, what is told to be kept is kept, and nothing is written over."""

import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builder.sources.datasets.item import ArchiveStrategyResult, FilesetPlatformItem
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.status import FAIL_ALONE
from builder.sources.datasets.strategies import record
from builder.sources.datasets.strategies.keys import RECORD, place
from builder.sources.datasets.wiring import archive, make_strategy
from builder.store.folder import FolderStore
from tests.builder.sources.datasets.server import Server, served, serving
from tests.builder.sources.datasets.test_s3 import HOST, item_of
from tests.builder.sources.datasets.world import World, settings_of, world
from tests.extent import examples

BODIES = {"a.csv": b"1,2\n", "A.csv": b"3,4\n", "b/c.bin": bytes(range(256)), "empty": b""}
BROKEN = b"!"
STRATEGIES = ("s3-fileset", "s3-fileset-bundled")

steps = st.one_of(
    st.tuples(st.just("request"), st.sampled_from(STRATEGIES)),
    st.tuples(st.sampled_from(["remove", "alter", "shorten"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["break", "mend"]), st.integers(0, len(BODIES) - 1)),
    st.just(("unfinish", 0)),
)


@pytest.fixture(scope="module")
def there() -> Iterator[World]:
    with serving() as server, tempfile.TemporaryDirectory() as folder:
        yield world(server, Path(folder), http__tries=1)


def body_of(store: FolderStore, found: ArchiveStrategyResult, path: str) -> bytes:
    file = next(file for file in found.manifest if file.path == path)
    data = store.read(file.key or "")
    return data if file.offset is None else data[file.offset :][: file.size]


def meddle(store: FolderStore, server: Server, step: str, number: int) -> None:
    """Do to the store, or to the platform, what nobody should."""
    path = [*BODIES][number % len(BODIES)]
    if step == "break":
        server.add(f"{HOST}{number}", served(BROKEN + BODIES[path]))
    elif step == "mend":
        server.add(f"{HOST}{number}", served(BODIES[path]))
    else:
        wanted = step == "unfinish"
        objects = [key for key in store.keys("filesets/") if key.endswith(RECORD) == wanted]
        for key in objects[number : number + 1]:
            data = store.read(key)
            store.remove(key)
            if step == "alter" and data:
                store.create(key, bytes([data[0] ^ 1]) + data[1:])
            elif step == "shorten" and data:
                store.create(key, data[:-1])


@settings(max_examples=examples(25), deadline=None)
@example([("unfinish", 0), ("break", 0), ("request", STRATEGIES[0])], STRATEGIES[1])
@given(st.lists(steps, min_size=1, max_size=7), st.sampled_from(STRATEGIES))
def test_what_is_told_to_be_kept_is_kept(
    there: World, some: list[tuple[str, int | str]], last: str
) -> None:
    server = there.server
    item = item_of(server, dict(BODIES))
    with tempfile.TemporaryDirectory() as folder:
        store = FolderStore(Path(folder))
        materials = there.materials(store, settings=settings_of({}))
        for step, how in (("request", last), *some):
            if isinstance(how, int):
                meddle(store, server, step, how)
                continue
            known = record.read(store, place(item))
            before = {key: store.read(key) for key in store.keys("filesets/")}
            with suppress(FilesetError):
                strategy = make_strategy(materials, how, math.inf, lambda: None)
                found = strategy.check_existing(item) or strategy.process(item)
                if found.status != "mismatch-existing":
                    states = {file.path: file.status or "" for file in found.manifest}
                    assert states.keys() == BODIES.keys()
                    for path, state in states.items():
                        assert state in FAIL_ALONE or body_of(store, found, path) == BODIES[path]
            for kept in known.objects if known else ():
                if kept.key in before and kept.key in set(store.keys(kept.key)):
                    assert store.read(kept.key) == before[kept.key]
        item_of(server, dict(BODIES))
        _ends_well(store, item, lambda: archive(materials, item, last, math.inf, lambda: None))


def _ends_well(
    store: FolderStore, item: FilesetPlatformItem, request: Callable[[], ArchiveStrategyResult]
) -> None:
    """See that a request comes to its end once all that was altered is taken away."""
    found = request()
    for _ in range(2 * len(BODIES)):
        if found.status != "mismatch-existing":
            break
        store.remove(*(f.key for f in found.manifest if f.key and f.status == "mismatch-existing"))
        found = request()
    assert found.status in {"success", "success-existing"}
    assert {path: body_of(store, found, path) for path in BODIES} == BODIES
    kept = record.read(store, place(item))
    assert {*store.keys("filesets/")} == {place(item) + RECORD, *(o.key for o in kept.objects)}
    assert request().status == "success-existing"
