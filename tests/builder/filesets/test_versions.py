"""Versions of one dataset: an older one never takes a newer one back, whenever it comes.

Each story is one of a dataset of its own, and all of them are published side by side.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from builder.filesets.ingest import version_order
from builder.filesets.item import FilesetPlatformItem, IngestOutcome, IngestRequest
from builder.filesets.results import Results
from tests.builder.conftest import NAMESPACE, World
from tests.builder.filesets.outcomes import failed, item, outcome
from tests.builder.filesets.published import ingest, rows

FILES = {"1": ("a.csv",), "2": ("a.csv", "b.csv"), "3": ("a.csv", "b.csv", "c.csv")}
State = tuple[str | None, bool, int, int]
"""The version that is listed, whether it is gone, its files, and the publish it is listed since."""


@dataclass(frozen=True)
class Turn:
    """What is published of a dataset at once, which may be a run of years ago, and its state."""

    outcomes: tuple[IngestOutcome, ...]
    state: State
    late: bool = False


@dataclass
class Told:
    """What is told of a dataset after each turn: its state, and the results of its requests."""

    states: list[State]
    results: list[tuple[Any, ...]]


def dataset(version: str, ordering: str | None = None, **more: Any) -> FilesetPlatformItem:
    paths = FILES.get(version.partition(".")[0], FILES["1"])
    return item(*paths, version=version, order=ordering, **more)


def counted(version: str, *, existing: bool = False) -> IngestOutcome:
    """Return what came of a version that its platform counts, asked for by its own URL."""
    told = dataset(version, version_order("invenio", version, int(version)))
    return outcome(told, existing=existing, request=IngestRequest(f"v{version}"))


def numbered(version: str) -> IngestOutcome:
    """Return what came of a version of Dataverse's."""
    return outcome(
        dataset(version, version_order("dataverse", version)), request=IngestRequest(f"v{version}")
    )


def unordered(version: str, *, existing: bool = False) -> IngestOutcome:
    """Return what came of a version that nothing tells the order of."""
    return outcome(dataset(version), existing=existing, request=IngestRequest(f"v{version}"))


def gone(version: str) -> IngestOutcome:
    tombstone = dataset(version, manifest=None)
    return failed("platform-gone", item=tombstone, request=IngestRequest(f"v{version}"))


def asked_by(url: str, found: IngestOutcome) -> IngestOutcome:
    return replace(found, request=IngestRequest(url))


def turn(
    *outcomes: IngestOutcome, version: str | None, since: int, files: int = 1, late: bool = False
) -> Turn:
    return Turn(outcomes, (version, version is None, files, since), late)


def in_one_run(versions: str) -> list[Turn]:
    newest = max(versions)
    found = map(counted, versions)
    return [turn(*found, version=newest, since=1, files=len(FILES[newest]))]


def not_given(status: str) -> list[Turn]:
    held = dataset("2", version_order("invenio", "2", 2), manifest=())
    return [
        turn(counted("1"), version="1", since=1),
        turn(failed(status, item=held), version="2", since=2, files=0),
        turn(counted("1", existing=True), version="2", since=2, files=0),
    ]


def older_later(existing: bool) -> list[Turn]:
    return [
        turn(counted("2"), version="2", since=1, files=2),
        turn(counted("1", existing=existing), version="2", since=1, files=2),
    ]


RUNS = ("12", "21", "121", "212", "312", "1213")
OF_ANOTHER_MAKING = outcome(dataset("1", version_order("zenodo", "1")), request=IngestRequest("v1"))
SAID_ANEW = replace(dataset("2", version_order("invenio", "2", 1)), web_base_url="u", until="2030")
STORIES: Mapping[str, list[Turn]] = {
    **{f"one-run-{versions}": in_one_run(versions) for versions in RUNS},
    "an-older-one-later": older_later(existing=False),
    "an-older-one-later-again": older_later(existing=True),
    "a-newer-one-later": [
        turn(counted("1"), version="1", since=1),
        turn(counted("2", existing=True), version="2", since=2, files=2),
    ],
    "minor-versions": [
        turn(numbered("4.2"), version="4.2", since=1),
        turn(numbered("4.1"), version="4.2", since=1),
        turn(numbered("4.10"), version="4.10", since=3),
    ],
    "the-same-version-changes": [
        turn(counted("2"), version="2", since=1, files=2),
        turn(outcome(SAID_ANEW), version="2", since=2, files=2),
    ],
    "a-newer-one-embargoed": not_given("platform-embargoed"),
    "a-newer-one-restricted": not_given("platform-restricted"),
    "without-order-listed-when-it-comes-and-not-again": [
        turn(unordered("x1"), version="x1", since=1),
        turn(unordered("x2"), version="x2", since=2),
        turn(unordered("x1", existing=True), version="x2", since=2),
        turn(unordered("x1"), version="x1", since=4),
    ],
    "orders-of-different-making-are-not-compared": [
        turn(counted("2"), version="2", since=1, files=2),
        turn(replace(OF_ANOTHER_MAKING, status="success-existing"), version="2", since=1, files=2),
        turn(OF_ANOTHER_MAKING, version="1", since=3),
    ],
    "twice-in-one-run-is-new-all-the-same": [
        turn(unordered("x1"), version="x1", since=1),
        turn(
            unordered("x2"), asked_by("another", unordered("x2", existing=True)),
            version="x2", since=2,
        ),
    ],
    "an-older-one-is-gone": [
        turn(counted("1"), version="1", since=1),
        turn(counted("2"), gone("1"), version="2", since=2, files=2),
    ],
    "an-older-one-is-gone-later": [
        turn(counted("1"), version="1", since=1),
        turn(counted("2"), version="2", since=2, files=2),
        turn(gone("1"), version="2", since=2, files=2),
    ],
    "one-is-gone-that-was-never-listed": [
        turn(counted("1"), version="1", since=1),
        turn(counted("2"), gone("2"), version="1", since=1),
    ],
    "an-older-one-once-the-newest-is-gone": [
        turn(counted("2"), version="2", since=1, files=2),
        turn(gone("2"), gone("1"), version=None, since=2, files=0),
        turn(counted("1", existing=True), version="1", since=3),
    ],
    "a-late-newer-one": [
        turn(counted("1"), version="1", since=1),
        turn(counted("2"), version="2", since=2, files=2, late=True),
    ],
    "late-and-gone": [
        turn(counted("2"), version="2", since=1, files=2, late=True),
        turn(counted("1"), version="2", since=1, files=2),
        turn(asked_by("another", gone("2")), version=None, since=3, files=0, late=True),
    ],
    "late-and-without-order": [
        turn(unordered("x2"), version="x2", since=1),
        turn(unordered("x1"), version="x2", since=1, late=True),
    ],
}  # fmt: skip


def of(story: str, found: IngestOutcome) -> IngestOutcome:
    """Return an outcome as one of the story's own dataset."""
    assert found.item is not None
    assert found.item.description is not None
    own = replace(found.item.description, doi=f"10.5072/{story}")
    return replace(
        found,
        request=IngestRequest(f"{story}/{found.request.base_url}"),
        item=replace(found.item, platform_id=story, description=own),
    )


def publish(world: World, turns: Mapping[str, Turn]) -> None:
    """Publish a turn of each story, late ones out of a run of years ago."""
    kept = Results(world.store, world.root.parent / "scratch", world.clock)
    for story, turn in turns.items():
        if turn.late:
            for found in turn.outcomes:
                kept.add(replace(of(story, found), at="20200101000000"))
    kept.commit()
    ingest(
        world,
        *(of(story, one) for story, t in turns.items() if not t.late for one in t.outcomes),
    )
    world.publish()


def name(story: str) -> str:
    return f"oai:{NAMESPACE}:dataset,invenio,data.example,{story}"


def states(world: World) -> dict[str, State]:
    found = rows(
        world,
        "SELECT identifier, document ->> '$.version', deleted, coalesce(number, 0), sequence "
        "FROM records LEFT JOIN (SELECT identifier, count(*) AS number FROM files GROUP BY ALL) "
        "USING (identifier)",
    )
    return {identifier: (version, *more) for identifier, version, *more in found}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Told]]:
    """What is told of each story's dataset once all stories were published, turn by turn."""
    world = World(tmp_path_factory.mktemp("versions") / "store")
    found = {story: Told([], []) for story in STORIES}
    for number in range(max(map(len, STORIES.values()))):
        turns = {story: turns[number] for story, turns in STORIES.items() if turns[number:]}
        publish(world, turns)
        now = states(world)
        for story in turns:
            found[story].states.append(now[name(story)])
    sql = "SELECT base_url, status, platform_version, identifier FROM ingest_fileset_platform"
    for url, *more in rows(world, f"{sql} ORDER BY base_url"):
        story, _, asked = url.partition("/")
        found[story].results.append((asked, *more))
    yield found
    world.close()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("story", STORIES)
def test_what_is_listed_after_each_turn(told: Mapping[str, Told], story: str) -> None:
    assert told[story].states == [turn.state for turn in STORIES[story]]


@pytest.mark.parametrize("versions", RUNS)
def test_each_request_of_one_run_has_its_result(told: Mapping[str, Told], versions: str) -> None:
    story = f"one-run-{versions}"
    found = {(url, identifier) for url, _, _, identifier in told[story].results}
    assert found == {(f"v{version}", name(story)) for version in versions}


@pytest.mark.parametrize("again", ["", "-again"])
def test_an_older_version_has_its_result(told: Mapping[str, Told], again: str) -> None:
    story = f"an-older-one-later{again}"
    assert told[story].results == [
        ("v1", "success-existing" if again else "success-file", "1", name(story)),
        ("v2", "success", "2", name(story)),
    ]
