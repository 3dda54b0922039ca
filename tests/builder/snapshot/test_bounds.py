"""Memory is bounded by arguments, not by how much is withdrawn or how many snapshots are kept."""

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from builder.publish import reinstate
from builder.publish.selection import Selection
from builder.publish.withdraw import find_all_versions, remove_versions, withdraw
from builder.snapshot import set_listings
from builder.snapshot.draft import Draft
from builder.snapshot.lookup import find_files
from builder.snapshot.transaction import Transaction
from builder.verify.inventory import Inventory
from functions.snapshot import layout
from functions.snapshot.manifest import Sequence
from functions.snapshot.pointer import Pointer, PointerEntry
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.conftest import World, capture, resize
from tests.builder.interrupted import Watched
from tests.builder.publish.test_withdraw import published
from tests.memory import at_most

pytestmark = pytest.mark.shared(2)

MANY = 20_000
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("many") / "store")
    world.add([capture(n) for n in range(MANY)])
    return world


def drafted(
    world: World, store: Writer | None = None
) -> AbstractContextManager[tuple[engine.Connection, Draft]]:
    return Transaction.of(store or world.store, world.configuration(), world.runtime()).draft()


def wanted(connection: engine.Connection, world: World, count: int) -> None:
    """Make the table `wanted_items` of the first items."""
    records = list(Catalogue(world.store).files(world.newest(), "records"))
    connection.execute(
        f"CREATE TABLE wanted_items AS SELECT identifier FROM {engine.table('$files')} "
        "ORDER BY position LIMIT $count",
        {"files": [str(world.store.local(file.key)) for file in records], "count": count},
    )


@pytest.mark.thorough
def test_what_a_takedown_holds_does_not_grow_with_what_is_withdrawn(many: World) -> None:
    with drafted(many) as (connection, draft):
        wanted(connection, many, MANY)
        # As lists, keys, positions and the sets that they are in took 28 MB.
        with at_most(4 * MEGABYTE):
            assert find_all_versions(connection, draft, "wanted_items") == MANY
            remove_versions(connection, draft)


def test_withdrawing_one_item_reads_and_writes_few_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resize(monkeypatch, GROUP_ROWS=16, FILE_GROUPS=2)
    monkeypatch.setattr(set_listings, "SPREAD", 0.25)
    world = World(tmp_path / "store")
    published(world, 1_000)
    tables = {
        table: {file.key for file in Catalogue(world.store).files(world.newest(), table)}
        for table in ("lookup", "records", "copies")
    }
    assert all(len(keys) > 30 for keys in tables.values())
    item = f"oai:archive.example.org:{capture(503).identity}"
    store = Watched(world.root)
    selection = Selection(identifiers=(item,))
    withdraw(store, world.configuration(), world.runtime(), selection, "asked for")
    # The item's, and that of the collection that it is in.
    assert len(store.asked & tables["lookup"]) <= 2
    assert len(store.asked & tables["records"]) == 2
    # A copy for each scattered set: the two types, and a host at most.
    assert 1 <= len(store.asked & tables["copies"]) <= 4
    after = {file.key for file in Catalogue(world.store).files(world.newest(), "records")}
    assert len(tables["records"] - after) == 1


def test_files_are_chosen_alike_whatever_comes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resize(monkeypatch, GROUP_ROWS=4, FILE_GROUPS=2)
    world = World(tmp_path / "store")
    published(world, 100)
    for size in (1, 7, 1 << 14):
        monkeypatch.setattr(engine, "_FETCH", size)
        with drafted(world) as (connection, draft):
            files = draft.files(draft.tables["records"])
            for query, places in (
                ("SELECT unnest([90, 3, 4, 41])", [0, 5, 11]),
                ("SELECT unnest(range(100, 0, -1))", list(range(len(files)))),
                ("SELECT 102", []),
            ):
                found = find_files(connection, draft, "records", (query, {}))
                assert [files.index(file) for file in found] == places


def test_of_a_whole_repository_only_what_is_withdrawn_is_looked_at_to_restore(many: World) -> None:
    selection = Selection(url_prefix="http://h3.example.cz/3")
    with drafted(many) as (connection, draft):
        base = Transaction.of(many.store, many.configuration(), many.runtime())
        reinstate.tombstones(base, connection, draft, selection)
        ((rows,),) = connection.execute(
            "SELECT coalesce(max(estimated_size), 0) FROM duckdb_tables()"
        ).fetchall()
    assert rows == 0


def test_to_restore_nothing_of_what_is_not_withdrawn_comes_along(world: World) -> None:
    published(world)
    world.withdraw(Selection(set="domain:cz:example:h3"))
    base = Transaction.of(world.store, world.configuration(), world.runtime())
    with base.draft() as (connection, draft):
        reinstate.tombstones(base, connection, draft, Selection(digest="A"))
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM withdrawn_items), (SELECT count(*) FROM new_versions)"
        ).fetchall()
    assert counts == [(3, 3)]


def hourly(world: World, count: int) -> None:
    """Write manifests as that many publishes of one record would leave them."""
    world.add([capture(1)])
    first = world.newest()
    sequences = [first.sequences[0]]
    for number in range(2, count + 1):
        instant = sequences[-1].effective + timedelta(hours=1)
        sequences.append(Sequence(number, instant, number, number, {"capture": 0}))
        later = replace(first, snapshot=number, effective=instant, sequences=tuple(sequences))
        world.store.create(layout.manifest_key(number), later.to_json())
    entry = PointerEntry(count, sequences[-1].effective)
    (world.root / layout.POINTER).write_bytes(Pointer((entry,)).to_json())
    world.clock.now = entry.effective + timedelta(days=1)


@pytest.mark.thorough
def test_what_an_inventory_holds_does_not_grow_with_the_square_of_the_snapshots(
    world: World,
) -> None:
    hourly(world, 200)
    with at_most(2 * MEGABYTE):  # all sequences of all of them take 8 MB
        inventory = Inventory.take(world.store, world.clock())
    assert len(inventory.sound()) == 200
    with at_most(2 * MEGABYTE):
        for number in inventory.sound():
            assert len(inventory.read_snapshot(number).manifest.sequences) == number
