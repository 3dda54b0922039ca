"""Versions of a dataset: each stays listed with its files, whenever and in whatever order it comes.

Each story is one of a dataset of its own, and all of them are published side by side.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from builder.sources.datasets.ingest import version_order
from builder.sources.datasets.item import FilesetPlatformItem, IngestOutcome, IngestRequest
from builder.sources.datasets.results import Results
from tests.builder.conftest import NAMESPACE, World
from tests.builder.sources.datasets.outcomes import failed, item, outcome
from tests.builder.sources.datasets.published import ingest, rows

FILES = {"1": ("a.csv",), "2": ("a.csv", "b.csv"), "3": ("a.csv", "b.csv", "c.csv")}
State = tuple[int, int, str | None]
"""The files of a version, the publish it is listed since, and the status that closed it.

A turn that changes no story's dataset publishes nothing."""
States = Mapping[str | None, State]


@dataclass(frozen=True)
class Turn:
    """What is published of a dataset at once, which may be a run of years ago, and its versions."""

    outcomes: tuple[IngestOutcome, ...]
    states: States
    late: bool = False


@dataclass
class Told:
    """What is told of a dataset: its versions after each turn, and the results of its requests."""

    states: list[States]
    results: list[tuple[Any, ...]]


def dataset(version: str | None, order: str | None = None, **more: Any) -> FilesetPlatformItem:
    paths = FILES.get((version or "").partition(".")[0], FILES["1"])
    return item(*paths, version=version, order=order, **more)


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


def closed(status: str, version: str) -> IngestOutcome:
    """Return what came of a version whose files are not given."""
    held = dataset(version, version_order("invenio", version, int(version)), manifest=())
    return failed(status, item=held, request=IngestRequest(f"v{version}"))


def gone(version: str | None) -> IngestOutcome:
    tombstone = dataset(version, manifest=None)
    return failed("platform-gone", item=tombstone, request=IngestRequest(f"v{version}"))


def asked_by(url: str, found: IngestOutcome) -> IngestOutcome:
    return replace(found, request=IngestRequest(url))


def turn(*outcomes: IngestOutcome, late: bool = False, **states: State | tuple[int, int]) -> Turn:
    """Return a turn; `v4_2` stands for the version 4.2."""
    named = {name[1:].replace("_", "."): state for name, state in states.items()}
    return Turn(outcomes, {v: (*s, None)[:3] for v, s in named.items()}, late)  # type: ignore[misc]


def in_one_run(versions: str) -> list[Turn]:
    states = {f"v{version}": (len(FILES[version]), 1) for version in versions}
    return [turn(*map(counted, versions), **states)]


def not_given(status: str) -> list[Turn]:
    """Return the story of a version that is first not given, then given, then not again."""
    return [
        turn(counted("1"), v1=(1, 1)),
        turn(closed(status, "2"), v1=(1, 2), v2=(0, 2)),
        turn(counted("2"), v1=(1, 2), v2=(2, 3)),
        turn(closed(status, "2"), v1=(1, 2), v2=(2, 4, status)),
        turn(closed(status, "2"), v1=(1, 2), v2=(2, 4, status)),
        turn(gone("2"), v1=(1, 2), v2=(2, 5, "platform-gone")),
        turn(gone("2"), v1=(1, 2), v2=(2, 5, "platform-gone")),
        turn(counted("2", existing=True), v1=(1, 2), v2=(2, 6)),
        turn(counted("2", existing=True), v1=(1, 2), v2=(2, 6)),
    ]


def older_later(existing: bool) -> list[Turn]:
    return [
        turn(counted("2"), v2=(2, 1)),
        turn(counted("1", existing=existing), v1=(1, 2), v2=(2, 2)),
        turn(counted("1", existing=True), counted("2", existing=True), v1=(1, 2), v2=(2, 2)),
    ]


RUNS = ("12", "21", "121", "212", "312", "1213")
OF_ANOTHER_MAKING = outcome(dataset("1", version_order("zenodo", "1")), request=IngestRequest("v1"))
SAID_ANEW = replace(dataset("2", version_order("invenio", "2", 1)), web_base_url="u", until="2030")
GONE = "platform-gone"
STORIES: Mapping[str, list[Turn]] = {
    **{f"one-run-{versions}": in_one_run(versions) for versions in RUNS},
    "an-older-one-later": older_later(existing=False),
    "an-older-one-later-again": older_later(existing=True),
    "a-third-changes-its-neighbour-and-the-first": [
        turn(counted("1"), v1=(1, 1)),
        turn(counted("2"), v1=(1, 2), v2=(2, 2)),
        turn(counted("3"), v1=(1, 3), v2=(2, 3), v3=(3, 3)),
        turn(counted("4"), v1=(1, 4), v2=(2, 3), v3=(3, 4), v4=(1, 4)),
    ],
    "minor-versions": [
        turn(numbered("4.2"), v4_2=(1, 1)),
        turn(numbered("4.1"), v4_1=(1, 2), v4_2=(1, 2)),
        turn(numbered("4.10"), v4_1=(1, 2), v4_2=(1, 3), v4_10=(1, 3)),
    ],
    "the-same-version-changes": [
        turn(counted("2"), v2=(2, 1)),
        turn(outcome(SAID_ANEW), v2=(2, 2)),
    ],
    "a-newer-one-embargoed": not_given("platform-embargoed"),
    "a-newer-one-restricted": not_given("platform-restricted"),
    "a-token-that-lacks-closes-nothing": [
        turn(counted("1"), v1=(1, 1)),
        turn(closed("needs-token", "1"), v1=(1, 1)),
    ],
    "without-order": [
        turn(unordered("x1"), vx1=(1, 1)),
        turn(unordered("x2"), vx1=(1, 2), vx2=(1, 2)),
        turn(unordered("x1", existing=True), vx1=(1, 2), vx2=(1, 2)),
    ],
    "orders-of-different-making": [
        turn(counted("2"), v2=(2, 1)),
        turn(OF_ANOTHER_MAKING, v1=(1, 2), v2=(2, 2)),
    ],
    "twice-in-one-run": [
        turn(unordered("x1"), vx1=(1, 1)),
        turn(
            unordered("x2"),
            asked_by("another", unordered("x2", existing=True)),
            vx1=(1, 2),
            vx2=(1, 2),
        ),
    ],
    "an-older-one-is-gone": [
        turn(counted("1"), v1=(1, 1)),
        turn(counted("2"), gone("1"), v1=(1, 2, GONE), v2=(2, 2)),
        turn(gone("1"), v1=(1, 2, GONE), v2=(2, 2)),
    ],
    "listed-and-gone-at-once": [
        turn(counted("1"), v1=(1, 1)),
        turn(counted("2"), gone("2"), v1=(1, 2), v2=(2, 2, GONE)),
    ],
    "another-version-of-the-url-is-gone": [
        turn(counted("1"), v1=(1, 1)),
        turn(asked_by("v1", gone("2")), v1=(1, 1)),
    ],
    "the-whole-dataset-is-gone-and-one-comes-back": [
        turn(counted("1"), counted("2"), v1=(1, 1), v2=(2, 1)),
        turn(asked_by("u", gone(None)), v1=(1, 2, GONE), v2=(2, 2, GONE)),
        turn(counted("1", existing=True), v1=(1, 3), v2=(2, 2, GONE)),
    ],
    "a-late-newer-one": [
        turn(counted("1"), v1=(1, 1)),
        turn(counted("2"), v1=(1, 2), v2=(2, 2), late=True),
    ],
    "late-and-gone": [
        turn(counted("2"), v2=(2, 1)),
        turn(asked_by("another", gone("2")), v2=(2, 1), late=True),
    ],
    "a-late-older-one-by-the-same-url": [
        turn(asked_by("u", counted("2")), v2=(2, 1)),
        turn(asked_by("u", counted("1")), v1=(1, 2), v2=(2, 2), late=True),
    ],
}


def of(story: str, found: IngestOutcome) -> IngestOutcome:
    """Return an outcome as one of the story's own dataset."""
    own = replace(found.item.description, doi=f"10.5072/{story}.{found.item.version}")
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


def states(world: World) -> dict[str, dict[str | None, State]]:
    found = rows(
        world,
        "SELECT id, version, coalesce(number, 0), sequence, f.document ->> '$.access.status' "
        "FROM filesets f JOIN records r USING (identifier) LEFT JOIN (SELECT identifier, "
        "count(*) AS number FROM files GROUP BY ALL) USING (identifier)",
    )
    told: dict[str, dict[str | None, State]] = {}
    for story, version, *state in found:
        assert version not in told.setdefault(story, {})
        told[story][version] = (state[0], state[1], state[2])
    return told


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
            found[story].states.append(now[story])
    sql = "SELECT base_url, status, platform_version, identifier FROM ingest_fileset_platform"
    for url, *more in rows(world, f"{sql} ORDER BY base_url"):
        story, _, asked = url.partition("/")
        found[story].results.append((asked, *more))
    related = rows(world, "SELECT document ->> '$.id', identifier, document FROM filesets")
    for story, identifier, document in related:
        links = json.loads(document).get("versions", [])
        found[story].results.append(
            ("related", identifier, [(one["version"], one["relation"]) for one in links])
        )
    yield found
    world.close()


@pytest.mark.sampled(9)
@pytest.mark.parametrize("story", STORIES)
def test_what_is_listed_after_each_turn(told: Mapping[str, Told], story: str) -> None:
    assert told[story].states == [turn.states for turn in STORIES[story]]


@pytest.mark.parametrize("versions", RUNS)
def test_each_request_of_one_run_has_its_result(told: Mapping[str, Told], versions: str) -> None:
    """The version that is listed first has the dataset's identifier."""
    story = f"one-run-{versions}"
    found = {(url, more[-1]) for url, *more in told[story].results if url != "related"}
    own = {v: name(story) + ("" if v == versions[0] else f",{v}") for v in versions}
    assert found == {(f"v{version}", own[version]) for version in versions}


def related(told: Mapping[str, Told], story: str) -> dict[str, list[tuple[str, str | None]]]:
    found = (one[1:] for one in told[story].results if one[0] == "related")
    return {id_.removeprefix(name(story)): links for id_, links in found}


def test_versions_name_their_neighbours_and_the_first_names_all(told: Mapping[str, Told]) -> None:
    new, previous = "IsNewVersionOf", "IsPreviousVersionOf"
    assert related(told, "a-third-changes-its-neighbour-and-the-first") == {
        "": [("2", previous), ("3", previous), ("4", previous)],
        ",2": [("1", new), ("3", previous)],
        ",3": [("2", new), ("4", previous)],
        ",4": [("3", new)],
    }
    assert related(told, "orders-of-different-making") == {"": [("1", None)], ",1": []}
