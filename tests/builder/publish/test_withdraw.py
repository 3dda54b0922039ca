"""Withdrawing: tombstones, what vanishes from the data files, coming back, purging."""

from datetime import timedelta

import pytest

from builder.intake.captures import Fault
from builder.publish.selection import Item, Preview, Selection, preview
from builder.publish.withdraw import preview_selection
from builder.snapshot.expiry import snapshots
from builder.snapshot.transaction import NothingSelectedError
from functions.reading.repository import PublishedRecord
from functions.snapshot import schema
from functions.snapshot.manifest import Manifest
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import World, capture

pytestmark = pytest.mark.shared(3)

REASON = "asked for by the owner"


def name(number: int) -> str:
    return f"oai:archive.example.org:{capture(number).identity}"


def records(world: World) -> dict[str, PublishedRecord]:
    return {r.identifier: r for r in world.listed()}


def held(world: World, snapshot: Manifest) -> bytes:
    """Return all bytes of a snapshot's data files, as DuckDB reads them."""
    catalogue = Catalogue(world.store)
    connection = engine.connect()
    text = ""
    for table in snapshot.tables:
        for file in catalogue.files(snapshot, table):
            path = str(world.store.local(file.key))
            rows = connection.execute(f"SELECT * FROM {engine.table('$f')}", {"f": path}).fetchall()
            text += repr(rows) + world.store.read(file.key).decode("latin-1")
    connection.close()
    return text.encode()


def published(world: World, count: int = 40) -> None:
    def fill(world: World) -> None:
        fault = Fault("a.warc.gz", 300, "payload-short", None, "of http://h3.example.cz/3", "kept")
        world.ingest([capture(n) for n in range(count)], ("collection:serials",), (fault,))
        world.publish()

    begin(world, ("withdraw", count), fill)


def test_a_withdrawn_item_is_a_tombstone_with_its_sets_and_a_new_datestamp(world: World) -> None:
    published(world)
    before = records(world)[name(3)]
    done = world.withdraw(name(3))
    assert done.built.withdrawn == 1
    assert done.identifiers == (name(3),)
    after = records(world)[name(3)]
    assert after.deleted
    assert after.sets == before.sets
    assert after.datestamp == world.newest().effective > before.datestamp
    assert after.fields == {}
    assert len(records(world)) == 40
    for spec in ("domain:cz:example:h3", "mime", "collection:serials"):
        assert name(3) in {r.identifier for r in world.listed(spec)}


def test_nothing_of_its_metadata_is_left_in_the_current_data_files(world: World) -> None:
    published(world)
    world.add([capture(3, title="A second title")])
    assert b"h3.example.cz/3'" in held(world, world.newest())
    world.withdraw(name(3), REASON)
    left = held(world, world.newest())
    for trace in (
        b"h3.example.cz/3'",
        b"Page 3'",
        b"A second title",
        b"h3)/000003",
        b"example.cz/3)",
    ):
        assert trace not in left
    assert b"h4.example.cz/4'" in left
    assert REASON.encode() in left


@pytest.mark.parametrize(
    ("selection", "count"),
    [
        (Selection(set="domain:cz:example:h3"), 3),
        (Selection(set="domain:cz"), 40),
        (Selection(url_prefix="http://h3.example.cz/"), 3),
        (Selection(url_prefix="http://h3.example.cz/2"), 1),
        (Selection(url_prefix="http://h3", start="2007", end="2007-11"), 3),
        (Selection(digest="A"), 40),
        (Selection(digest="A", set="mime:image:png"), 14),
        (Selection(identifiers=(name(1), name(2), name(1))), 2),
    ],
    ids=str,
)
def test_items_are_selected(world: World, selection: Selection, count: int) -> None:
    published(world)
    where = (world.store, world.configuration(), world.runtime())
    preview = preview_selection(*where, selection, None)
    assert preview.count == count
    if count in (3, 14):  # what is selected is withdrawn
        found = {item.identifier for item in preview.items}
        done = world.withdraw(selection)
        assert done.built.withdrawn == len(found) == count
        assert set(done.identifiers) == found
        assert {name for name, record in records(world).items() if record.deleted} == found
    if selection.set == "domain:cz":  # of everything tombstones are left, and the collection
        world.withdraw(selection)
        assert all(r.deleted for r in records(world).values())
        assert (world.newest().rows("records"), world.newest().rows("copies")) == (41, 0)


@pytest.mark.parametrize(
    "selection",
    [
        Selection(set="domain:cz:exam"),
        Selection(url_prefix="http://h3.example.cz/", end="2007-10"),
        Selection(url_prefix="http://h3.example.cz/", start="2007-11-06"),
        Selection(digest="B"),
        Selection(identifiers=(name(1), "oai:archive.example.org:none")),
        Selection(identifiers=(name(1),), digest="B"),
    ],
    ids=str,
)
def test_what_selects_nothing_is_told_and_changes_nothing(
    world: World, selection: Selection
) -> None:
    published(world)
    with pytest.raises(NothingSelectedError):
        world.withdraw(selection)
    assert world.newest().snapshot == 1


def test_a_withdrawn_capture_stays_so_when_its_archive_comes_again(world: World) -> None:
    published(world)
    world.withdraw(name(3))
    before = world.newest()
    fault = Fault("a.warc.gz", 300, "payload-short", None, "of http://h3.example.cz/3", "kept")
    world.ingest([capture(n) for n in range(40)], faults=(fault,))
    world.ingest([capture(3, warc_filename="b.warc.gz", title="Elsewhere")], ("collection:more",))
    assert world.publish().changed == 0
    assert world.newest().sequences == before.sequences
    assert b"h3.example.cz/3'" not in held(world, world.newest())
    assert world.withdraw(name(3)).built.manifest is None


@pytest.mark.thorough
def test_a_tombstone_outlives_compaction_and_expiry(world: World) -> None:
    published(world)
    world.withdraw(name(3))
    stamped = records(world)[name(3)]
    for few in (1, 2, 60):  # the last ones are so many that all runs are merged
        world.add([*(capture(100 * few + n) for n in range(few)), capture(4, title=f"{few}")])
    world.clock.sleep(90)
    world.expire()
    assert records(world)[name(3)] == stamped
    assert len({leaf.span for leaf in world.newest().tables["records"]}) == 1


def test_restoring_brings_back_what_an_older_snapshot_has(world: World) -> None:
    published(world)
    before = records(world)
    world.withdraw(Selection(set="domain:cz:example:h3"))
    done = world.reinstate(
        Selection(url_prefix="http://h3.example.cz/3"),
    )
    assert (done.built.reinstated, done.built.unchanged) == (2, 0)  # /3 and /37
    after = records(world)
    assert after[name(3)].fields == before[name(3)].fields
    assert after[name(3)].sets == before[name(3)].sets
    assert after[name(3)].datestamp > before[name(3)].datestamp
    assert after[name(20)].deleted


def test_what_no_snapshot_has_any_more_comes_back_with_its_archive(world: World) -> None:
    published(world)
    done = world.withdraw(name(3), purge=True)
    assert done.retired == (1,)
    assert snapshots(world.store) == [2]
    by_prefix = Selection(url_prefix="http://h3.example.cz/3")
    with pytest.raises(NothingSelectedError, match="identifier or set"):
        world.reinstate(by_prefix)
    by_name = Selection(identifiers=(name(3),))
    done = world.reinstate(by_name)
    assert (done.built.reinstated, done.built.unchanged) == (0, 1)
    with pytest.raises(NothingSelectedError, match="items without metadata"):
        world.reinstate(by_name)
    assert records(world)[name(3)].deleted
    # What waits for its archive can be withdrawn again.
    found = preview_selection(world.store, world.configuration(), world.runtime(), by_name, 5)
    kinds = {"templates": 0, "datasets": 0}
    assert found == Preview(1, (Item(name(3), None, None, None, "capture"),), ((None, 1),), kinds)
    assert world.withdraw(by_name).built.withdrawn == 1
    assert world.add([capture(3)]).changed == 0
    assert records(world)[name(3)].deleted
    assert world.reinstate(by_name).built.unchanged == 1
    assert world.add([capture(3)]).changed == 1
    assert records(world)[name(3)].fields["title"] == "Page 3"


def test_purging_retires_just_the_snapshots_that_show_it(world: World) -> None:
    published(world)
    world.add([capture(100)])
    world.clock.sleep(120)
    began = world.clock.now
    done = world.withdraw(name(100), purge=True)
    assert done.retired == (2,)
    assert snapshots(world.store) == [1, 3]
    assert world.clock.now - began >= timedelta(minutes=1)
    everything = b"".join(world.store.read(key) for key in world.store.keys(""))
    assert b"cz,example,h15)/000100" not in everything
    # Withdrawn before, purged later, as after a purge that was cut off.
    by_prefix = Selection(url_prefix="http://h4.example.cz/4")
    assert world.withdraw(by_prefix).identifiers == (name(4),)
    with pytest.raises(NothingSelectedError, match="withdrawn already is selected by identifier"):
        world.withdraw(by_prefix, purge=True)  # a tombstone has no URL any more
    assert world.withdraw(name(4), purge=True).retired == (1, 3)
    assert snapshots(world.store) == [4]


def test_a_preview_counts_all_and_holds_the_first_by_address() -> None:
    with engine.connect() as connection:
        types = ", ".join(f"{c.name} {c.type}" for c in schema.TABLES["records"])
        connection.execute(f"CREATE TABLE items ({types})")
        for number in range(300):
            host = f"h{number % 12:02}.cz" if number < 240 else None
            connection.execute(
                "INSERT INTO items BY NAME SELECT 'capture' AS kind, $name AS identifier, "
                "$url AS url, $host AS url_host_name, $host || $url AS url_surtkey",
                {"name": f"i{number}", "url": f"u{number:03}", "host": host},
            )
        found = preview(connection, "items", 2)
        everything = preview(connection, "items", None)
    assert found.count == 300
    assert [item.identifier for item in found.items] == ["i0", "i12"]
    assert found.items[0] == Item("i0", "u000", None, "h00.cz", "capture")
    assert found.hosts == ((None, 60), *((f"h{n:02}.cz", 20) for n in range(9)))
    assert len(set(everything.items)) == 300
