"""Publishing: datasets become items, change, go and come back, and the tables tell of each."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from builder.publish import withdraw
from builder.publish.selection import Selection
from builder.sources.datasets.item import FilesetPlatformItem, IngestRequest
from builder.sources.datasets.results import Results
from functions.store import engine
from tests.builder.conftest import NAMESPACE, World, capture
from tests.builder.sources.datasets.outcomes import DESCRIPTION, URL, failed, item, outcome
from tests.builder.sources.datasets.published import begun, publish, rows

pytestmark = pytest.mark.shared(3)

NAME = f"oai:{NAMESPACE}:dataset,invenio,data.example,41"
DOI = "https://doi.org/10.5072/trees.41"
FOLLOWING = {"SHEAF_FILESET_FOLLOW_REMOVALS": "true"}


def stored(world: World) -> Iterator[tuple[Any, ...]]:
    """Yield each row of each data file of the store, whichever snapshot it is of."""
    connection = engine.connect(threads=1)
    for path in sorted((world.root / "records").rglob("*.parquet")):
        values = {"files": [str(path)]}
        yield from connection.execute(f"FROM {engine.table('$files')}", values).fetchall()


def document(world: World) -> dict[str, Any]:
    ((text,),) = rows(world, f"SELECT document FROM records WHERE identifier = '{NAME}'")
    found: dict[str, Any] = json.loads(text)
    return found


def other(number: int) -> FilesetPlatformItem:
    """Return another dataset."""
    told = replace(DESCRIPTION, title=f"Dataset {number}", doi=f"10.5072/x.{number}")
    return item("a.csv", "b.csv", platform_id=f"x{number}", description=told)


def test_a_dataset_is_an_item_with_its_files(world: World) -> None:
    built = publish(world, outcome(item("b.csv", "a.csv")))
    assert (built.new, built.changed, built.records) == (1, 0, 1)
    assert rows(world, "SELECT identifier, kind, deleted FROM records") == [
        (NAME, "fileset", False)
    ]
    assert rows(world, "SELECT path, bytes, status, place FROM files") == [
        ("a.csv", 6, "verified", None),
        ("b.csv", 5, "verified", None),
    ]
    assert rows(
        world, "SELECT base_url, status, file_count, identifier FROM ingest_fileset_platform"
    ) == [(URL, "success", 2, NAME)]
    assert rows(world, "SELECT title, doi, bytes, files FROM filesets") == [
        ("Heights of <larches> & firs", "10.5072/trees.41", 11, 2)
    ]


def test_the_same_again_and_failures_change_no_item(world: World) -> None:
    """What a server does not find is not said to be gone."""
    others = {f"u{number}": other(number) for number in (1, 2)}
    found = [outcome(of, request=IngestRequest(url)) for url, of in others.items()]
    begun(world, outcome(item("a.csv", "b.csv")), *found)
    built = publish(
        world,
        outcome(item("a.csv", "b.csv"), existing=True),
        failed("platform-404", request=IngestRequest("u1")),
        failed("platform-timeout", detail="nothing for 60 s", request=IngestRequest("u2")),
    )
    assert (built.new, built.changed, built.deleted, built.unchanged) == (0, 0, 0, 1)
    assert rows(world, "SELECT DISTINCT sequence, deleted FROM records") == [(1, False)]
    told = "SELECT base_url, status, detail, identifier, hit FROM ingest_fileset_platform"
    named = NAME.removesuffix("41")
    assert rows(world, f"{told} ORDER BY base_url DESC") == [
        ("u2", "platform-timeout", "nothing for 60 s", f"{named}x2", False),
        ("u1", "platform-404", None, f"{named}x1", False),
        (URL, "success-existing", None, NAME, True),
    ]
    assert rows(world, "SELECT count(*) FROM files") == [(6,)]


def test_another_strategy_of_a_version_changes_its_item(world: World) -> None:
    begun(world, outcome(item("a.csv")))
    assert publish(world, outcome(item("a.csv", "b.csv"))).changed == 1
    assert rows(world, "SELECT left_sets FROM records") == [
        (["status:success-file", "strategy:s3-file"],)
    ]


def test_what_is_gone_says_so_and_stays_with_its_files(world: World) -> None:
    begun(world, outcome(item("a.csv", "b.csv")), outcome(other(1), request=IngestRequest("u1")))
    built = publish(world, failed("platform-gone", detail="a duplicate"))
    assert (built.changed, built.deleted) == (1, 0)
    told = document(world)
    since = f"{world.clock():%Y-%m-%d}"
    assert told["access"] == {"status": "platform-gone", "since": since, "reason": "a duplicate"}
    assert (told["status"], len(told["files"])) == ("success", 2)
    assert rows(world, f"SELECT sets FROM records WHERE identifier = '{NAME}'") == [
        (
            [
                "host:data.example",
                "platform:invenio",
                "status:platform-gone",
                "status:success",
                "strategy:s3-fileset",
            ],
        )
    ]
    assert rows(world, "SELECT count(*) FROM files") == [(4,)]
    assert publish(world, failed("platform-gone", detail="otherwise said")).changed == 0
    assert publish(world, outcome(item("a.csv", "b.csv"), existing=True)).changed == 1
    assert "access" not in document(world)
    assert rows(world, f"SELECT left_sets FROM records WHERE identifier = '{NAME}'") == [
        (["status:platform-gone"],)
    ]


def test_what_is_gone_is_deleted_if_removals_are_followed(world: World) -> None:
    begun(world, outcome(item("a.csv", "b.csv")), outcome(other(1), request=IngestRequest("u1")))
    built = publish(world, failed("platform-gone"), **FOLLOWING)
    assert (built.changed, built.deleted) == (1, 1)
    assert rows(world, "SELECT identifier, deleted, reason, sets FROM records WHERE deleted") == [
        (
            NAME,
            True,
            None,
            ["host:data.example", "platform:invenio", "status:success", "strategy:s3-fileset"],
        )
    ]
    assert rows(world, "SELECT count(*) FROM files") == [(2,)]
    assert publish(world, failed("platform-gone"), **FOLLOWING).changed == 0
    built = publish(world, outcome(item("a.csv", "b.csv"), existing=True))
    assert (built.changed, built.deleted) == (1, 0)
    assert rows(world, "SELECT count(*) FROM files") == [(4,)]


def test_what_is_gone_and_was_never_listed_is_nothing(world: World) -> None:
    built = publish(world, failed("platform-gone", item=item("a.csv")))
    assert (built.new, built.records) == (0, 0)
    assert rows(world, "SELECT status, identifier FROM ingest_fileset_platform") == [
        ("platform-gone", None)
    ]


def test_a_tombstone_need_not_tell_the_id_of_all_versions(world: World) -> None:
    begun(world, outcome(item("a.csv", "b.csv")))
    gone = item(platform_id="41-2", version="1.2", manifest=None)
    assert publish(world, failed("platform-gone", item=gone)).changed == 1
    assert document(world)["access"]["status"] == "platform-gone"


def test_a_withdrawn_dataset_gets_no_new_versions(world: World) -> None:
    begun(world, outcome(item("a.csv", "b.csv")))
    world.withdraw(NAME)
    newer = outcome(item("a.csv", version="2"), request=IngestRequest("v2"))
    assert publish(world, newer, outcome(item("a.csv", version="3"))).new == 0


def test_the_newest_of_several_results_counts_whatever_it_was_asked_by(world: World) -> None:
    one = replace(DESCRIPTION, title="By its DOI")
    two = replace(DESCRIPTION, title="By its page")
    publish(
        world,
        outcome(item("a.csv", "b.csv", description=one), request=IngestRequest(DOI)),
        outcome(item("a.csv", "b.csv", description=two)),
        failed("stalled", request=IngestRequest(DOI)),
    )
    assert document(world)["title"] == "By its page"
    assert rows(
        world, "SELECT base_url, status, identifier FROM ingest_fileset_platform ORDER BY ALL"
    ) == [(URL, "success", NAME), (DOI, "stalled", NAME)]


@pytest.mark.parametrize("url", [URL, "u9"])
@pytest.mark.parametrize("late", ["listed", "gone"])
def test_a_run_that_comes_late_takes_nothing_back(world: World, late: str, url: str) -> None:
    begun(world, outcome(item("a.csv", "b.csv")))
    results = Results(world.store, world.root.parent / "scratch", world.clock)
    old = outcome(item("a.csv")) if late == "listed" else failed("platform-gone")
    old = replace(old, request=IngestRequest(url), item=item("a.csv"), at="20200101000000")
    results.add(old)
    results.commit()
    assert world.publish().changed == 0
    assert rows(world, "SELECT deleted FROM records") == [(False,)]
    assert rows(world, "SELECT count(*) FROM files") == [(2,)]
    told = f"SELECT status, identifier FROM ingest_fileset_platform WHERE base_url = '{URL}'"
    assert rows(world, told) == [("success", NAME)]


def test_a_failure_that_came_later_by_another_url_holds_nothing_up(world: World) -> None:
    begun(world, outcome(item("a.csv")), failed("stalled", request=IngestRequest(DOI)))
    known = item("a.csv", "b.csv")
    publish(world, failed("stalled", request=IngestRequest(DOI), item=known))
    results = Results(world.store, world.root.parent / "scratch", world.clock)
    at = rows(world, "SELECT updated FROM ingest_fileset_platform WHERE hit")
    after = f"{at[0][0] + timedelta(microseconds=1):%Y%m%d%H%M%S}"
    results.add(replace(outcome(known, request=IngestRequest("u2")), at=after))
    results.commit()
    assert world.publish().changed == 1


def test_withdrawn_datasets_stay_so_and_no_table_tells_of_them(world: World) -> None:
    begun(world, outcome(item("a.csv", "b.csv")), outcome(other(1), request=IngestRequest("u1")))
    world.withdraw(NAME, "a secret", purge=True)
    assert rows(world, "SELECT DISTINCT identifier FROM files") == [
        (f"oai:{NAMESPACE}:dataset,invenio,data.example,x1",)
    ]
    hushed = (
        "SELECT status, manifest, total_size, detail FROM ingest_fileset_platform "
        f"WHERE identifier = '{NAME}'"
    )
    assert rows(world, hushed) == [("success", None, None, None)]
    publish(world, outcome(item("a.csv", "b.csv", "secret.csv")))
    assert rows(world, f"SELECT deleted, reason FROM records WHERE identifier = '{NAME}'") == [
        (True, "a secret")
    ]
    assert rows(world, hushed) == [("success", None, None, None)]
    assert rows(world, f"SELECT count(*) FROM files WHERE identifier = '{NAME}'") == [(0,)]
    held = "".join(map(str, stored(world)))
    assert "Dataset 1" in held
    assert "secret.csv" not in held
    assert "larches" not in held


def test_what_was_told_of_a_withdrawn_dataset_before_it_was_listed_goes_too(world: World) -> None:
    refused = failed("too-many-files", request=IngestRequest(DOI), item=item("a.csv", "secret.csv"))
    publish(world, refused, outcome(other(1), request=IngestRequest("u1")))
    publish(world, outcome(item("a.csv")))
    world.withdraw(NAME, "a secret", purge=True)
    told = "SELECT base_url, manifest IS NULL FROM ingest_fileset_platform ORDER BY ALL"
    assert rows(world, told) == [(URL, True), (DOI, True), ("u1", False)]
    held = "".join(map(str, stored(world)))
    assert "Dataset 1" in held
    assert "secret.csv" not in held


def test_restored_datasets_have_their_files_again(world: World) -> None:
    begun(world, outcome(item("a.csv", "b.csv")))
    world.withdraw(NAME)
    assert rows(world, "SELECT count(*) FROM files") == [(0,)]
    world.reinstate(NAME)
    assert rows(world, "SELECT kind, deleted FROM records") == [("fileset", False)]
    assert rows(world, "SELECT count(*) FROM files") == [(2,)]
    publish(world, outcome(item("a.csv", "b.csv"), existing=True))
    assert rows(world, "SELECT file_count FROM ingest_fileset_platform") == [(2,)]


def test_datasets_are_published_beside_captures(world: World) -> None:
    world.ingest([capture(number) for number in range(5)], ("collection:c",))
    publish(world, *(outcome(other(n), request=IngestRequest(f"u{n}")) for n in range(3)))
    assert rows(world, "SELECT kind, count(*) FROM records GROUP BY ALL ORDER BY ALL") == [
        ("capture", 5),
        ("collection", 1),
        ("fileset", 3),
    ]


def test_expiry_leaves_what_is_kept_of_datasets(world: World) -> None:
    begun(world, outcome(item("a.csv", "b.csv")))
    publish(world, failed("platform-404"))
    store = world.store
    store.create("filesets/invenio/data.example/41/1.2.0123456789ab/files/a.csv", b"1")
    store.create("warcs/invenio-data.example-41-0123456789ab-20261122100000.warc.gz", b"1")
    world.clock.sleep(timedelta(days=400).total_seconds())
    world.expire()
    assert len([*store.keys("filesets/")]) == len([*store.keys("warcs/")]) == 1


def test_datasets_are_shown_before_they_are_withdrawn_by_their_set(world: World) -> None:
    begun(world, outcome(item("a.csv", "b.csv")), outcome(other(1), request=IngestRequest("u1")))
    asked = Selection((), "platform:invenio", None, None, None, None)
    shown = withdraw.preview_selection(
        world.store, world.configuration(), world.runtime(), asked, None
    )
    assert (shown.count, shown.kinds["datasets"], shown.hosts) == (2, 2, ())
    assert {one.title for one in shown.items} == {"Dataset 1", "Heights of <larches> & firs"}
    world.withdraw(asked)
    assert rows(world, "SELECT count(*) FROM filesets") == [(0,)]
    assert rows(world, "SELECT count(*) FROM files") == [(0,)]
