"""Collections as items: they follow their captures, whatever happens to these."""

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.collection import SHOWN
from builder.restore import restore
from builder.selection import NothingSelected, Selection
from builder.sources.event import Capture
from functions.oai import engine
from functions.oai.repository import Record
from functions.oai.repository import Selection as Selected
from functions.snapshot import identifier, schema, setspec
from functions.snapshot.manifest import Span
from functions.snapshot.setspec import is_within
from functions.store.catalog import Catalogue

from .conftest import NAMESPACE, World, capture
from .test_verify import verified
from .test_withdraw import held, newest, taken

NEWS, OLD = "collection:news", "collection:serials:harvest_november07"
SERIALS, OTHER = "collection:serials", "collection:serials:harvest_december07"


def records(world: World) -> dict[str, Record]:
    """Return the listed records of every kind."""
    manifest, repository = newest(world), world.repository()
    selection = Selected(tuple(manifest.kinds()), Span(1, manifest.last_position))
    found = repository.page(manifest, selection, 1_000_000, headers=False)
    assert len(found) == repository.size(manifest, selection)
    return {record.identifier: record for record in found}


def item(world: World, spec: str) -> Record | None:
    return records(world).get(identifier.collection(NAMESPACE, spec))


def document(world: World, spec: str) -> dict[str, Any]:
    found = item(world, spec)
    assert found is not None
    assert not found.deleted
    assert found.fields.keys() == {c.name for c in schema.COLLECTION}
    return dict(found.fields)


def hosted(number: int, **changes: Any) -> Capture:
    host = f"h{number % 17}.example.cz"
    return capture(number, url_host_name=host, content_length=number, **changes)


def counted(world: World, spec: str) -> dict[str, Any]:
    """Return what a collection's document must say, by its captures alone."""
    inside = [
        r.fields
        for r in records(world).values()
        if r.kind == "capture" and not r.deleted and any(is_within(s, spec) for s in r.sets)
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


def told(world: World, spec: str) -> dict[str, Any]:
    """Return the same out of the document."""
    found = document(world, spec)
    facets = {
        f: (found[f]["different"], [(m["value"], m["captures"]) for m in found[f]["most"]])
        for f in ("host", "media_type", "status")
    }
    dates = (found["first_date"], found["last_date"])
    return {"captures": found["captures"], "bytes": found["bytes"], "dates": dates, **facets}


def test_a_collection_is_an_item_of_its_set(world: World) -> None:
    world.ingest([hosted(n) for n in range(40)], (NEWS,))
    world.ingest([hosted(n) for n in range(40, 50)])
    world.publish()
    found = item(world, NEWS)
    assert found is not None
    assert (found.kind, found.sets, found.deleted) == ("collection", (NEWS,), False)
    assert told(world, NEWS) == counted(world, NEWS)
    assert found.fields["name"] == setspec.name(NEWS, {})
    assert found.fields["captures"] == 40


def test_a_collection_above_others_has_what_they_have_once(world: World) -> None:
    world.ingest([hosted(n) for n in range(10)], (OLD,), digest="a")
    world.ingest([hosted(n) for n in range(5, 12)], (OTHER,), digest="b")
    world.publish()
    assert [told(world, s)["captures"] for s in (OLD, OTHER, SERIALS)] == [10, 7, 12]
    assert told(world, SERIALS) == counted(world, SERIALS)
    assert [document(world, s)["files"] for s in (OLD, OTHER, SERIALS)] == [1, 1, 2]
    assert item(world, "collection") is None


def test_what_changes_nothing_in_a_collection_leaves_its_datestamp(world: World) -> None:
    world.ingest([hosted(n) for n in range(5)], (NEWS,))
    world.publish()
    before = item(world, NEWS)
    world.clock.sleep(60)
    world.ingest([hosted(1, title="Another")], (NEWS,))
    world.ingest([hosted(n) for n in range(5, 9)], (OLD,))
    world.publish()
    assert item(world, NEWS) == before
    world.clock.sleep(60)
    world.ingest([hosted(1, content_mime_type="text/plain")], (NEWS,))
    world.publish()
    after = item(world, NEWS)
    assert before is not None
    assert after is not None
    assert after.datestamp > before.datestamp
    assert told(world, NEWS) == counted(world, NEWS)


def test_captures_that_are_withdrawn_leave_no_trace_in_it(world: World) -> None:
    world.ingest([hosted(n) for n in range(40)], (NEWS,))
    world.ingest([hosted(n) for n in range(20)], (OLD,))
    world.publish()
    assert b"h3.example.cz" in held(world, newest(world))
    taken(world, Selection(url_prefix="http://h3.example.cz/"))
    assert told(world, NEWS) == counted(world, NEWS)
    assert told(world, OLD) == counted(world, OLD)
    assert b"h3.example.cz" not in held(world, newest(world)).replace(b"www.h3", b"")


def test_a_collection_without_captures_is_deleted_and_comes_back(world: World) -> None:
    world.ingest([hosted(n) for n in range(4)], (NEWS,))
    world.publish()
    taken(world, Selection(set=NEWS))
    gone = item(world, NEWS)
    assert gone is not None
    assert gone.deleted
    assert gone.sets == (NEWS,)
    restore(world.store, world.configuration(), world.outside(), Selection(set=NEWS))
    assert told(world, NEWS) == counted(world, NEWS)
    assert told(world, NEWS)["captures"] == 4


def test_it_cannot_be_withdrawn_by_itself(world: World) -> None:
    world.ingest([hosted(n) for n in range(4)], (NEWS,))
    world.publish()
    with pytest.raises(NothingSelected, match="withdraw these by --set"):
        taken(world, Selection(identifiers=(identifier.collection(NAMESPACE, NEWS),)))
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


def test_no_more_values_than_are_shown(world: World) -> None:
    world.ingest(
        [capture(n, url_host_name=f"h{n}.cz") for n in range(2 * SHOWN)]
        + [capture(n, url_host_name="zzz.cz") for n in range(1000, 1003)],
        (NEWS,),
    )
    world.publish()
    host = document(world, NEWS)["host"]
    assert host["different"] == 2 * SHOWN + 1
    assert len(host["most"]) == SHOWN
    assert host["most"][0] == {"value": "zzz.cz", "captures": 3, "bytes": 0}


def test_the_views_tell_the_same(world: World) -> None:
    world.ingest([hosted(n) for n in range(40)], (NEWS,))
    world.publish()
    manifest = newest(world)
    connection = engine.connect()
    connection.execute(f"SET VARIABLE root = '{world.root}/'")
    connection.execute(world.store.read(f"snapshots/{manifest.snapshot}/views.sql").decode())
    rows = connection.execute("SELECT set_spec, name, captures FROM collections").fetchall()
    assert rows == [(NEWS, "Collection news", 40)]
    rows = connection.execute(
        "SELECT facet, sum(captures) FROM tallies GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert rows == [("day", 40), ("host", 40), ("media_type", 40), ("status", 40)]
    connection.close()


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32))
def test_any_history(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Publishes, withdrawals, restorations at random: each is what its captures say."""
    pick = random.Random(seed)
    world = World(tmp_path_factory.mktemp("history") / "store")
    try:
        for step in range(pick.randint(2, 6)):
            world.clock.sleep(60)
            how = pick.choice(["publish", "publish", "withdraw", "restore"]) if step else "publish"
            numbers = pick.sample(range(30), pick.randint(1, 20))
            if how == "publish":
                types = ["text/html", None, "image/png"]
                some = [hosted(n, content_mime_type=pick.choice(types)) for n in numbers]
                world.ingest(some, tuple(pick.sample([NEWS, OLD, OTHER], pick.randint(0, 3))))
                world.publish()
                continue
            selection = pick.choice(
                [Selection(set=NEWS), Selection(url_prefix=f"http://h{numbers[0] % 17}.example.cz")]
            )
            try:
                if how == "withdraw":
                    taken(world, selection)
                else:
                    restore(world.store, world.configuration(), world.outside(), selection)
            except NothingSelected:
                continue
        for spec in (NEWS, OLD, SERIALS):
            expected = counted(world, spec)
            found = item(world, spec)
            if expected["captures"]:
                assert told(world, spec) == expected
            else:
                assert found is None or found.deleted
        assert verified(world).findings == ()
    finally:
        world.close()


def test_a_document_is_json_with_the_columns_of_the_schema(world: World) -> None:
    world.ingest([hosted(n) for n in range(4)], (NEWS,))
    world.publish()
    catalogue = Catalogue(world.store)
    connection = engine.connect()
    files = [str(world.store.local(f.key)) for f in catalogue.files(newest(world), "records")]
    rows = connection.execute(
        f"SELECT document FROM {engine.table('$f')} WHERE kind = 'collection'", {"f": files}
    ).fetchall()
    connection.close()
    assert [json.loads(d).keys() for (d,) in rows] == [{c.name for c in schema.COLLECTION}]
