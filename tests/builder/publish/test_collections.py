"""Collections as items: they follow their captures, whatever happens to these."""

import json
import random
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.intake.captures import Capture
from builder.kinds.collections.collections import FACETS, SHOWN
from builder.publish.publish import publish
from builder.publish.selection import Selection
from builder.snapshot.transaction import NothingSelectedError
from functions.kinds import collections
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import PublishedRecord
from functions.reading.repository import RecordSelection as Selected
from functions.snapshot import oai_name
from functions.snapshot.manifest import Span
from functions.snapshot.oai_name import is_within_set
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import NAMESPACE, World, capture, resize
from tests.builder.interrupted import Watched
from tests.builder.publish.test_withdraw import held
from tests.extent import examples

pytestmark = pytest.mark.shared(3)

NEWS, OLD = "collection:news", "collection:serials:harvest_november07"
SERIALS, OTHER = "collection:serials", "collection:serials:harvest_december07"


def records(world: World) -> dict[str, PublishedRecord]:
    """Return the listed records of every kind, by one reader for as long as the world lasts."""
    manifest = world.newest()
    repository = world.opened[0] if world.opened else world.repository()
    selection = Selected(tuple(manifest.kinds()), Span(1, manifest.last_position))
    found = repository.page(manifest, selection, 1_000_000, headers=False)
    assert len(found) == repository.size(manifest, selection)
    return {record.identifier: record for record in found}


def item(world: World, spec: str) -> PublishedRecord | None:
    return records(world).get(oai_name.collection_identifier(NAMESPACE, spec))


def document(world: World, spec: str) -> dict[str, Any]:
    found = item(world, spec)
    assert found is not None
    assert not found.deleted
    assert found.fields.keys() == {c.name for c in collections.COLUMNS}
    return dict(found.fields)


def hosted(number: int, **changes: Any) -> Capture:
    date = datetime(2007, 11, 1 + number % 5, 12, tzinfo=UTC)
    values: dict[str, Any] = {
        "url_host_name": f"h{number % 17}.example.cz",
        "content_length": number,
        "fetch_date": f"{date:%Y-%m-%dT%H:%M:%SZ}",
        "fetch_time": date,
        "fetch_status": (200, 200, 404)[number % 3],
    }
    return capture(number, **{**values, **changes})


def summed(every: Mapping[str, PublishedRecord], spec: str) -> dict[str, Any]:
    """Return what a collection's document must say, by its captures alone."""
    inside = [
        r.fields
        for r in every.values()
        if r.kind == "capture" and not r.deleted and any(is_within_set(s, spec) for s in r.sets)
    ]
    found: dict[str, Any] = {
        "captures": len(inside),
        "bytes": sum(f["content_length"] or 0 for f in inside),
    }
    sources = {"host": "url_host_name", "media_type": "content_mime_type", "status": "fetch_status"}
    for facet, column in sources.items():
        counts = Counter(None if f[column] is None else str(f[column]) for f in inside)
        most = sorted(counts.items(), key=lambda c: (-c[1], c[0] or ""))[:SHOWN]
        found[facet] = (len(counts), most)
    days = sorted(f["fetch_date"][:10] for f in inside if f["fetch_date"])
    found["dates"] = (days[0], days[-1]) if days else (None, None)
    return found


def true(world: World, *specs: str) -> bool:
    """Tell whether the documents of collections say what their captures do, listed once for all."""
    every = records(world)
    documents = [every[oai_name.collection_identifier(NAMESPACE, spec)] for spec in specs]
    assert not any(found.deleted for found in documents)
    assert all(d.fields.keys() == {c.name for c in collections.COLUMNS} for d in documents)
    return [said(d.fields) for d in documents] == [summed(every, spec) for spec in specs]


def told(world: World, spec: str) -> dict[str, Any]:
    """Return the same out of the document."""
    return said(document(world, spec))


def said(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same out of a document that is at hand."""
    facets = {
        f: (found[f]["different"], [(m["value"], m["captures"]) for m in found[f]["most"]])
        for f in ("host", "media_type", "status")
    }
    dates = (found["first_date"], found["last_date"])
    return {"captures": found["captures"], "bytes": found["bytes"], "dates": dates, **facets}


def four(world: World) -> None:
    world.add([hosted(n) for n in range(4)], (NEWS,))


def forty(world: World) -> None:
    world.ingest([hosted(n) for n in range(40)], (NEWS,))
    world.add([hosted(n) for n in range(40, 50)])


def test_a_collection_is_an_item_of_its_set(world: World) -> None:
    begin(world, "forty in a collection", forty)
    found = item(world, NEWS)
    assert found is not None
    assert (found.kind, found.sets, found.deleted) == ("collection", (NEWS,), False)
    assert true(world, NEWS)
    assert found.fields["name"] == oai_name.set_name(NEWS, {})
    assert found.fields["captures"] == 40


def test_a_collection_above_others_has_what_they_have_once(world: World) -> None:
    world.ingest([hosted(n) for n in range(10)], (OLD,), digest="a")
    world.ingest([hosted(n) for n in range(5, 12)], (OTHER,), digest="b")
    world.publish()
    assert [told(world, s)["captures"] for s in (OLD, OTHER, SERIALS)] == [10, 7, 12]
    assert true(world, SERIALS)
    assert [document(world, s)["files"] for s in (OLD, OTHER, SERIALS)] == [1, 1, 2]
    assert item(world, "collection") is None


def test_what_changes_nothing_in_a_collection_leaves_its_datestamp(world: World) -> None:
    world.add([hosted(n) for n in range(5)], (NEWS,))
    before = item(world, NEWS)
    world.clock.sleep(60)
    world.ingest([hosted(1, title="Another")], (NEWS,))
    world.add([hosted(n) for n in range(5, 9)], (OLD,))
    assert item(world, NEWS) == before
    world.clock.sleep(60)
    world.add([hosted(1, content_mime_type="text/plain")], (NEWS,))
    after = item(world, NEWS)
    assert before is not None
    assert after is not None
    assert after.datestamp > before.datestamp
    assert true(world, NEWS)


def test_captures_that_are_withdrawn_leave_no_trace_in_it(world: World) -> None:
    world.ingest([hosted(n) for n in range(40)], (NEWS,))
    world.add([hosted(n) for n in range(20)], (OLD,))
    assert b"h3.example.cz" in held(world, world.newest())
    world.withdraw(Selection(url_prefix="http://h3.example.cz/"))
    assert true(world, NEWS, OLD)
    assert b"h3.example.cz" not in held(world, world.newest()).replace(b"www.h3", b"")


def test_a_collection_without_captures_is_deleted_and_comes_back(world: World) -> None:
    begin(world, "four in a collection", four)
    world.withdraw(Selection(set=NEWS))
    gone = item(world, NEWS)
    assert gone is not None
    assert gone.deleted
    assert gone.sets == (NEWS,)
    world.reinstate(Selection(set=NEWS))
    assert true(world, NEWS)
    assert told(world, NEWS)["captures"] == 4


def test_it_cannot_be_withdrawn_by_itself(world: World) -> None:
    begin(world, "four in a collection", four)
    with pytest.raises(NothingSelectedError, match="withdraw them with --set"):
        world.withdraw(Selection(identifiers=(oai_name.collection_identifier(NAMESPACE, NEWS),)))
    assert told(world, NEWS)["captures"] == 4


def test_what_its_archive_files_say(world: World) -> None:
    said = {"operator": "Jana", "software": "Heritrix", "part_of": "serials", "description": "All"}
    world.ingest([hosted(1)], (NEWS,), digest="a", said=said)
    world.ingest([hosted(2)], (NEWS,), digest="b", said={**said, "operator": "Ann"})
    world.publish()
    found = document(world, NEWS)
    assert (found["operator"], found["software"]) == (["Ann", "Jana"], ["Heritrix"])
    assert (found["part_of"], found["description"]) == (["serials"], ["All"])
    assert found["files"] == 2
    world.ingest([hosted(2)], (NEWS,), digest="c", said={"operator": "Zoe"})
    assert world.publish().manifest is not None
    assert document(world, NEWS)["operator"] == ["Ann", "Jana", "Zoe"]
    assert document(world, NEWS)["files"] == 3
    world.ingest([], (NEWS,), digest="d", said={"operator": "Jana"})  # one without captures
    assert world.publish().manifest is not None
    assert document(world, NEWS)["files"] == 4
    world.ingest([], digest="e")
    assert world.publish().new == 0


def test_no_more_values_than_are_shown(world: World) -> None:
    world.add(
        [capture(n, url_host_name=f"h{n}.cz") for n in range(2 * SHOWN)]
        + [capture(n, url_host_name="zzz.cz") for n in range(1000, 1003)],
        (NEWS,),
    )
    host = document(world, NEWS)["host"]
    assert host["different"] == 2 * SHOWN + 1
    assert len(host["most"]) == SHOWN
    assert host["most"][0] == {"value": "zzz.cz", "captures": 3, "bytes": 0}


def test_the_views_tell_the_same(world: World) -> None:
    """The whole archive is counted as a collection is, also without one."""
    counted = (
        "SELECT facet, value, captures, bytes, typeof(captures), typeof(bytes) FROM tallies "
        "WHERE collection = $set ORDER BY ALL"
    )
    world.add([hosted(n) for n in range(40)], (NEWS,))
    world.add([hosted(n, title="Another") for n in range(9)], (NEWS,))
    with world.views() as connection:
        rows = connection.execute("SELECT set_spec, name, captures FROM collections").fetchall()
        assert rows == [(NEWS, "Collection news", 40)]
        rows = connection.execute(counted, {"set": NEWS}).fetchall()
        for facet in FACETS:
            assert sum(row[2] for row in rows if row[0] == facet) == 40, facet
        assert {row[0] for row in rows} == {*FACETS}
        assert connection.execute(counted, {"set": ""}).fetchall() == rows
    one = hosted(60, url_host_name="a.cz")
    world.add([one, hosted(61, url_host_name=None)])
    with world.views() as connection:
        sql = "SELECT value, captures FROM tallies WHERE facet = 'host' AND collection = ''"
        hosts = dict(connection.execute(sql).fetchall())
    assert (hosts[""], hosts["a.cz"]) == (1, 1)


@settings(max_examples=examples(3))
@given(st.integers(0, 2**32))
def test_any_history(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Publishes, withdrawals, restorations at random: each is what its captures say."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        resize(monkeypatch, GROUP_ROWS=3, FILE_GROUPS=2, LEAF_FILES=2)
        _history(tmp_path_factory, random.Random(seed))


KNOWN = [17 * n + host for n in range(6) for host in range(5)]
"""Captures of five hosts: with a set for nearly each of them the rest would be lost in sets."""


def _history(tmp_path_factory: pytest.TempPathFactory, pick: random.Random) -> None:
    every = [NEWS, OLD, OTHER, *(f"collection:{n}" for n in range(8))]
    world = World(tmp_path_factory.mktemp("history") / "store")
    try:
        for step in range(pick.randint(2, 6)):
            world.clock.sleep(60)
            how = pick.choice(["publish", "publish", "withdraw", "restore"]) if step else "publish"
            numbers = pick.sample(KNOWN, pick.randint(1, 20))
            if how == "publish":
                types = ["text/html", None, "image/png"]
                some = [hosted(n, content_mime_type=pick.choice(types)) for n in numbers]
                world.add(some, tuple(sorted(pick.sample(every, pick.randint(0, 3)))))
                continue
            selection = pick.choice(
                [Selection(set=NEWS), Selection(url_prefix=f"http://h{numbers[0] % 17}.example.cz")]
            )
            try:
                if how == "withdraw":
                    world.withdraw(selection)
                else:
                    world.reinstate(selection)
            except NothingSelectedError:
                continue
        listed = records(world)
        for spec in (*every, SERIALS):
            expected = summed(listed, spec)
            found = listed.get(oai_name.collection_identifier(NAMESPACE, spec))
            if expected["captures"]:
                assert found is not None
                assert not found.deleted
                assert found.fields.keys() == {c.name for c in collections.COLUMNS}
                assert said(found.fields) == expected
            else:
                assert found is None or found.deleted
        assert world.verify().findings == ()
    finally:
        world.close()


def documents(world: World) -> dict[str, str]:
    catalogue, manifest = Catalogue(world.store), world.newest()
    files = [str(world.store.local(f.key)) for f in catalogue.files(manifest, "documents")]
    if not files:
        return {}
    connection = engine.connect()
    rows = connection.execute(f"SELECT * FROM {engine.table('$f')}", {"f": files}).fetchall()
    connection.close()
    return dict(rows)


def test_there_is_a_document_of_each_listed_collection_and_of_no_other(world: World) -> None:
    world.ingest([hosted(n) for n in range(4)], (NEWS,))
    world.add([hosted(n) for n in range(9)], (OLD,))
    known = {oai_name.collection_identifier(NAMESPACE, s) for s in (NEWS, OLD, SERIALS)}
    assert documents(world).keys() == known
    columns = {c.name for c in collections.COLUMNS}
    assert all(json.loads(d).keys() == columns for d in documents(world).values())
    world.withdraw(Selection(set=NEWS))
    world.withdraw(Selection(set=OLD))
    assert documents(world) == {}


@pytest.mark.thorough
def test_what_was_in_a_collection_above_before_leaves_no_trace_there(world: World) -> None:
    secret = hosted(3, url_host_name="secret.example.cz")
    world.add([hosted(n) for n in range(20, 60)] + [secret], (SERIALS,))
    world.add([secret], (OLD,))
    assert b"secret" in held(world, world.newest())
    world.withdraw(Selection(identifiers=(f"oai:{NAMESPACE}:{secret.identity}",)))
    assert b"secret" not in held(world, world.newest())
    assert true(world, SERIALS)


@pytest.mark.thorough
def test_what_one_collection_touches_leaves_the_others_files_alone(world: World) -> None:
    for spec in ("collection:a", "collection:b"):
        world.add([hosted(n, url_host_name=f"{spec[-1]}{n}.cz") for n in range(3_000)], (spec,))
    catalogue = Catalogue(world.store)
    before = {
        t: {f.key for f in catalogue.files(world.newest(), t)} for t in ("tallies", "sources")
    }
    world.add([hosted(9_999, url_host_name="a9.cz")], ("collection:a",))
    after = {f.key for f in catalogue.files(world.newest(), "tallies")}
    assert len(before["tallies"] & after) == len(before["tallies"]) - 1
    assert true(world, "collection:a")


@pytest.mark.thorough
def test_a_publish_into_an_old_collection_reads_little(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    resize(monkeypatch, GROUP_ROWS=64, FILE_GROUPS=2)
    for n in range(8):
        world.add([hosted(k) for k in range(600 * n, 600 * (n + 1))], (NEWS,))
    store, base = Watched(world.root), world.newest()
    records = {f.key: f.bytes for f in Catalogue(world.store).files(base, "records")}
    world.ingest([hosted(999_999)], (NEWS,))
    publish(store, world.configuration(), world.runtime())
    read = sum(size for key, size in records.items() if key in store.asked)
    assert read < sum(records.values()) / 10


def test_a_list_of_collections_alone_reads_where_they_are(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    resize(monkeypatch, GROUP_ROWS=64, FILE_GROUPS=2)
    world.add([hosted(k) for k in range(5_000)], (NEWS,))
    store, manifest = Watched(world.root), world.newest()
    repository = DuckRepository(store)
    for spec in (None, "collection", NEWS):
        selection = Selected(("collection",), Span(1, manifest.last_position), spec)
        found = repository.page(manifest, selection, 10, headers=False)
        assert [r.identifier for r in found] == [oai_name.collection_identifier(NAMESPACE, NEWS)]
        assert found[0].fields["captures"] == 5_000
    repository.close()
    records = {f.key for f in Catalogue(world.store).files(manifest, "records")}
    assert len(records) > 30
    assert len(records & store.asked) == 1


@pytest.mark.thorough
def test_a_new_collection_beside_an_old_one_is_found_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their rows are written together, and lie in the table's order all the same."""
    resize(monkeypatch, GROUP_ROWS=3, FILE_GROUPS=1, SETS_GROUPS=1)
    numbers = range(0, 170, 17)  # of one host, so that there are few sets beside
    for n in range(8):
        world.ingest([hosted(numbers[n])], (f"collection:{n}",))
    world.publish()
    for number in numbers[8:]:
        world.add([hosted(number)], ("collection:0", "collection:zz"))
        assert true(world, "collection:0", "collection:zz", "collection:5")
    assert world.verify().findings == ()  # of each of the three snapshots
