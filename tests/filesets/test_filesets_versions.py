"""Versions of one dataset: an older one never takes a newer one back, whenever it comes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.filesets.item import FilesetPlatformItem, Outcome, Request
from builder.filesets.order import order
from builder.filesets.run import Results
from tests.builder.conftest import NAMESPACE, World
from tests.filesets.outcomes import failed, item, outcome
from tests.filesets.published import publish, rows

NAME = f"oai:{NAMESPACE}:dataset,invenio,data.example,41"
FILES = {"1": ("a.csv",), "2": ("a.csv", "b.csv"), "3": ("a.csv", "b.csv", "c.csv")}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    yield world
    world.close()


def dataset(version: str, ordering: str | None = None, **more: Any) -> FilesetPlatformItem:
    paths = FILES.get(version.partition(".")[0], FILES["1"])
    return item(*paths, version=version, order=ordering, **more)


def counted(version: str, *, existing: bool = False) -> Outcome:
    """Return what came of a version that its platform counts, asked for by its own URL."""
    told = dataset(version, order("invenio", version, int(version)))
    return outcome(told, existing=existing, request=Request(f"v{version}"))


def numbered(version: str) -> Outcome:
    """Return what came of a version of Dataverse's."""
    return outcome(dataset(version, order("dataverse", version)), request=Request(f"v{version}"))


def unordered(version: str, *, existing: bool = False) -> Outcome:
    """Return what came of a version that nothing tells the order of."""
    return outcome(dataset(version), existing=existing, request=Request(f"v{version}"))


def listed(world: World) -> list[tuple[Any, ...]]:
    """Return the version that the item tells of, whether it is gone, and how many files it has."""
    return rows(
        world,
        "SELECT document ->> '$.version', deleted, (SELECT count(*) FROM files) FROM records",
    )


def results(world: World) -> list[tuple[Any, ...]]:
    return rows(
        world,
        "SELECT base_url, status, platform_version, identifier FROM ingest_fileset_platform "
        "ORDER BY base_url",
    )


def late(world: World, found: Outcome) -> None:
    """Publish a run of years ago."""
    kept = Results(world.store, world.root.parent / "scratch", world.clock)
    kept.add(replace(found, at="20200101000000"))
    kept.commit()
    world.publish()


@pytest.mark.parametrize("turns", ["12", "21", "121", "212", "312", "1213"])
def test_the_newest_of_one_run_is_listed_in_whatever_turn_they_end(
    world: World, turns: str
) -> None:
    publish(world, *(counted(version) for version in turns))
    newest = max(turns)
    assert listed(world) == [(newest, False, len(FILES[newest]))]
    assert {(url, name) for url, _, _, name in results(world)} == {(f"v{n}", NAME) for n in turns}


@pytest.mark.parametrize("existing", [False, True])
def test_an_older_version_in_a_later_run_changes_nothing(world: World, existing: bool) -> None:
    publish(world, counted("2"))
    built = publish(world, counted("1", existing=existing))
    assert (built.new, built.changed, built.unchanged) == (0, 0, 1)
    assert listed(world) == [("2", False, 2)]
    assert results(world) == [
        ("v1", "success-existing" if existing else "success-file", "1", NAME),
        ("v2", "success", "2", NAME),
    ]


def test_a_newer_version_in_a_later_run_is_a_change(world: World) -> None:
    publish(world, counted("1"))
    assert publish(world, counted("2", existing=True)).changed == 1
    assert listed(world) == [("2", False, 2)]


def test_minor_versions_are_in_order_too(world: World) -> None:
    publish(world, numbered("4.2"))
    assert publish(world, numbered("4.1")).changed == 0
    assert publish(world, numbered("4.10")).changed == 1
    assert listed(world)[0][0] == "4.10"


def test_the_same_version_again_may_change(world: World) -> None:
    publish(world, counted("2"))
    told = dataset("2", order("invenio", "2", 1))
    assert publish(world, outcome(replace(told, web_base_url="u", until="2030"))).changed == 1


@pytest.mark.parametrize("status", ["platform-embargoed", "platform-restricted"])
def test_a_newer_version_that_is_not_given_is_listed(world: World, status: str) -> None:
    publish(world, counted("1"))
    held = dataset("2", order("invenio", "2", 2), manifest=())
    assert publish(world, failed(status, item=held)).changed == 1
    assert listed(world) == [("2", False, 0)]
    assert publish(world, counted("1", existing=True)).changed == 0


def test_a_version_of_no_order_is_listed_when_it_comes_and_not_again(world: World) -> None:
    publish(world, unordered("x1"))
    assert publish(world, unordered("x2")).changed == 1
    assert publish(world, unordered("x1", existing=True)).changed == 0
    assert listed(world)[0][0] == "x2"
    assert publish(world, unordered("x1")).changed == 1


def test_orders_of_different_making_are_not_compared(world: World) -> None:
    publish(world, counted("2"))
    record = outcome(dataset("1", order("zenodo", "1")), request=Request("v1"))
    assert publish(world, replace(record, status="success-existing")).changed == 0
    assert publish(world, record).changed == 1
    assert listed(world)[0][0] == "1"


def test_what_came_twice_in_one_run_is_new_all_the_same(world: World) -> None:
    publish(world, unordered("x1"))
    again = replace(unordered("x2", existing=True), request=Request("another"))
    assert publish(world, unordered("x2"), again).changed == 1
    assert listed(world)[0][0] == "x2"


def gone(version: str) -> Outcome:
    tombstone = dataset(version, manifest=None)
    return failed("platform-gone", item=tombstone, request=Request(f"v{version}"))


@pytest.mark.parametrize("apart", [False, True])
def test_that_an_older_version_is_gone_leaves_a_newer_one(world: World, apart: bool) -> None:
    publish(world, counted("1"))
    if apart:
        publish(world, counted("2"))
        publish(world, gone("1"))
    else:
        publish(world, counted("2"), gone("1"))
    assert listed(world) == [("2", False, 2)]


def test_that_a_version_is_gone_that_was_never_listed_leaves_the_item(world: World) -> None:
    publish(world, counted("1"))
    publish(world, counted("2"), gone("2"))
    assert listed(world) == [("1", False, 1)]


def test_an_older_version_is_listed_once_the_newest_is_gone(world: World) -> None:
    publish(world, counted("2"))
    assert publish(world, gone("2"), gone("1")).deleted == 1
    assert publish(world, counted("1", existing=True)).changed == 1
    assert listed(world)[0][:2] == ("1", False)


def test_a_late_run_of_a_newer_version_is_not_held_up_by_an_older_one(world: World) -> None:
    publish(world, counted("1"))
    late(world, counted("2"))
    assert listed(world) == [("2", False, 2)]


def test_a_late_run_that_says_it_is_gone_is_not_held_up_by_an_older_one(world: World) -> None:
    late(world, counted("2"))
    publish(world, counted("1"))
    late(world, replace(gone("2"), request=Request("another")))
    assert rows(world, "SELECT deleted FROM records") == [(True,)]


def test_a_late_run_of_no_order_takes_nothing_back(world: World) -> None:
    publish(world, unordered("x2"))
    late(world, unordered("x1"))
    assert listed(world)[0][0] == "x2"
