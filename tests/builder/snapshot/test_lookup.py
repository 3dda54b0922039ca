"""Look-ups read the row groups that can hold a key, and nothing else, and check what they read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from builder.snapshot.lookup import fetch_groups, find_groups
from builder.store.folder import FolderStore
from functions.snapshot.errors import DamagedStore
from functions.snapshot.manifest import DataFile
from functions.store import engine
from functions.store.catalog import Catalogue
from functions.store.checked_files import CheckedFiles
from tests.bucket import Bucket
from tests.builder.conftest import World, capture, resize
from tests.builder.interrupted import Watched
from tests.builder.snapshot.test_bounds import drafted

pytestmark = pytest.mark.shared(2)

ROWS, GROUPS = 8, 4  # rows of a row group, row groups of a file


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    resize(monkeypatch, GROUP_ROWS=ROWS, FILE_GROUPS=GROUPS, LEAF_FILES=2)
    world = World(tmp_path / "store")
    world.add([capture(n) for n in range(200)])
    return world


def position_files(world: World) -> list[DataFile]:
    return list(Catalogue(world.store).files(world.newest(), "records"))


def test_few_rows_are_read_by_row_group(world: World) -> None:
    files = position_files(world)
    store = Watched(world.root)
    with drafted(world, store) as (connection, draft):
        # The first row group of the first file, the second and the fourth of the third.
        keys = "SELECT unnest([1, 8, 75, 76, 90])"
        found = find_groups(connection, draft, "records", (keys, {}))
        assert [(f.key, g) for f, g in found] == [
            (files[0].key, [files[0].groups[0]]),
            (files[2].key, [files[2].groups[1], files[2].groups[3]]),
        ]
        paths = fetch_groups(connection, draft, "records", (keys, {}))
        sql = f"SELECT position FROM {engine.table('$files')} WHERE position IN ({keys}) ORDER BY 1"
        rows = connection.execute(sql, {"files": paths}).fetchall()
        assert rows == [(1,), (8,), (75,), (76,), (90,)]
    spans = {file.key: tuple(group.byte_range for group in groups) for file, groups in found}
    assert dict(store.reads) == spans
    # A file of which most is wanted is read whole.
    store = Watched(world.root)
    with drafted(world, store) as (connection, draft):
        fetch_groups(connection, draft, "records", ("SELECT unnest(range(1, 18))", {}))
    assert store.reads == [(files[0].key, None)]


def test_leaves_that_cannot_hold_a_key_are_not_read(world: World) -> None:
    store, leaves = Watched(world.root), world.newest().tables["records"]
    seen: list[str] = []
    read: Callable[[str], bytes] = store.read
    store.read = lambda key: seen.append(key) or read(key)  # type: ignore[method-assign,func-returns-value]
    with drafted(world, store) as (connection, draft):
        draft._catalogue._cache._values.clear()  # the manifest holds small leaves itself
        seen.clear()
        fetch_groups(connection, draft, "records", ("SELECT 190", {}))
    assert seen == [leaves[-1].key]


def test_a_damaged_row_group_is_refused_if_it_is_read(world: World) -> None:
    file = position_files(world)[0]
    path = world.root / file.key
    data = bytearray(path.read_bytes())
    data[file.groups[1].offset + 20] ^= 1
    path.write_bytes(data)
    other, key = (f"SELECT {group.first}" for group in file.groups[:2])
    with drafted(world, FolderStore(world.root)) as (connection, draft):
        assert fetch_groups(connection, draft, "records", (other, {}))
        with pytest.raises(DamagedStore, match=f"{file.key} is damaged.*checksum of its row group"):
            fetch_groups(connection, draft, "records", (key, {}))


def test_a_bucket_sends_the_row_groups_alone(
    world: World, make_bucket: Callable[..., Bucket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builder.store.s3._EXACT", 0)
    bucket = make_bucket()
    for key in world.store.keys(""):
        with world.store.open(key) as source:
            bucket.put(key, source)
    cold = Bucket(bucket.endpoint, bucket.bucket)
    sent: list[tuple[str, int]] = []
    piece = cold._client.piece

    def note(key: str, offset: int, length: int, *more: object, **given: object) -> object:
        sent.append((key.removeprefix("store/"), length))
        return piece(key, offset, length, *more, **given)  # type: ignore[arg-type]

    cold._client.piece = note  # type: ignore[method-assign,assignment]
    with drafted(world, cold) as (connection, draft):
        found = find_groups(connection, draft, "records", ("SELECT unnest([1, 90])", {}))
        sent.clear()
        draft.group_paths(found)
    wanted = [(file.key, sum(g.byte_range[1] for g in groups)) for file, groups in found]
    assert sorted(sent) == sorted(wanted)


@pytest.mark.parametrize("exact", [0, 1 << 20])
def test_a_bucket_that_was_repaired_is_read_again(
    world: World, make_bucket: Callable[..., Bucket], monkeypatch: pytest.MonkeyPatch, exact: int
) -> None:
    """A damaged copy must not stay in the cache of a server that runs on."""
    monkeypatch.setattr("builder.store.s3._EXACT", exact)
    bucket = make_bucket()
    file = position_files(world)[0]
    data = (world.root / file.key).read_bytes()
    offset, length = file.groups[0].byte_range
    damaged = data[: offset + 9] + bytes([data[offset + 9] ^ 1]) + data[offset + 10 :]
    bucket.replace(file.key, damaged, None)
    checked = CheckedFiles(Bucket(bucket.endpoint, bucket.bucket))
    reads = (lambda: [*checked.cut(file, file.groups[:1])], lambda: checked.whole(file.key))
    for read in reads:
        with pytest.raises(DamagedStore, match=file.key):
            read()
    bucket.replace(file.key, data, bucket.tag(file.key))
    assert reads[0]() == [data[offset : offset + length]]
    assert reads[1]().read_bytes() == data
