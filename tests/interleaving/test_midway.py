"""Ten thousand records, and a publish in the middle of their harvest: nothing is lost."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.sources.events import Capture
from builder.withdraw.selection import Selection
from builder.withdraw.withdraw import withdraw
from tests.builder.conftest import NAMESPACE, World, capture
from tests.functions.oai.client import Client, Page
from tests.interleaving.held import Held, records

COUNT = 10_000
PAGE = 500
CHANGED = range(4_000, 6_000, 4)  # 500, of which a harvest in its middle has seen about half
GONE = range(3_000, 7_000, 40)  # 100, 25 of them changed as well
SETS = [None, "mime:image:png", "domain:cz:example:h3"]


def name(number: int) -> str:
    return f"oai:{NAMESPACE}:{capture(number).identity}"


def placed(number: int, **changes: object) -> Capture:
    """Return a capture whose place in the natural order is its number."""
    return capture(number, url_surtkey=f"cz,example)/{number:06}", **changes)


def within(numbers: range, spec: str | None) -> set[str]:
    def has(number: int) -> bool:
        return any(f"{s}:".startswith(f"{spec}:") for s in capture(number).sets)

    return {name(number) for number in numbers if spec is None or has(number)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Publish all records once; each test goes on from a copy."""
    world = World(tmp_path_factory.mktemp("whole") / "store")
    world.ingest([placed(number) for number in range(COUNT)])
    world.publish()
    return world.root


@pytest.fixture
def world(whole: Path, tmp_path: Path) -> Iterator[World]:
    shutil.copytree(whole, tmp_path / "store")
    world = World(tmp_path / "store", runs=1)
    world.clock.sleep(3600)
    yield world
    world.close()


def change(world: World) -> None:
    world.ingest([placed(number, title="changed") for number in CHANGED])
    assert world.publish().changed == len(CHANGED)


def take_down(world: World) -> None:
    chosen = Selection(identifiers=tuple(name(number) for number in GONE))
    withdraw(world.store, world.configuration(), world.runtime(), chosen, "asked for")


def retire(world: World) -> None:
    """Expire the snapshot that the harvest began in, as soon as that may be."""
    world.clock.sleep(120)
    assert 1 in world.expire().retired


class Harvest:
    """A list that is harvested to its middle, and then to its end."""

    def __init__(self, world: World, spec: str | None, size: int) -> None:
        self.client = Client(
            world.repository(),
            world.clock,
            pages_records=PAGE,  # type: ignore[arg-type]
        )
        self.pages: list[Page] = []
        arguments = {} if spec is None else {"set": spec}
        self.walk = self.client.pages(metadataPrefix="oai_dc", **arguments)
        while len(self.records()) < size // 2:
            self.pages.append(next(self.walk))

    def end(self) -> None:
        self.pages += self.walk

    def records(self) -> list[tuple[str, Held]]:
        return [one for page in self.pages for one in records(page)]

    def size(self) -> int:
        assert self.pages[-1].token is not None
        return int(self.pages[-1].token.get("completeListSize", 0))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("spec", SETS)
def test_what_changed_comes_behind_the_snapshot_that_the_harvest_began_in(
    world: World, spec: str | None
) -> None:
    everything, changed = within(range(COUNT), spec), within(CHANGED, spec)
    harvest = Harvest(world, spec, len(everything))
    change(world)
    harvest.end()
    found = harvest.records()
    first, then = found[: len(everything)], found[len(everything) :]
    assert {n for n, _ in first} == everything  # nothing lost, and nothing twice
    assert {held.item.title for n, held in first if n in changed} != {"changed"}
    assert sorted(n for n, _ in then) == sorted(changed)
    assert {held.item.title for _, held in then} == {"changed"}
    assert harvest.size() == len(found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("spec", SETS)
def test_a_harvest_goes_on_where_its_snapshot_was_retired(world: World, spec: str | None) -> None:
    everything, changed = within(range(COUNT), spec), within(CHANGED, spec)
    harvest = Harvest(world, spec, len(everything))
    before = {n for n, _ in harvest.records()}
    change(world)
    retire(world)
    harvest.end()
    later = harvest.records()[len(before) :]
    assert len({n for n, _ in later}) == len(later)  # nothing twice since
    assert {n for n, _ in later} == everything - before | changed
    assert [n for n, _ in later[-len(changed) :]] == [
        name(n) for n in CHANGED if name(n) in changed
    ]
    assert {held.item.title == "changed" for n, held in later if n in changed} == {True}
    assert harvest.size() == len(before) + len(later)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("gone", [False, True], ids=["kept", "retired"])
@pytest.mark.parametrize("spec", SETS)
def test_what_was_withdrawn_comes_as_tombstones(world: World, spec: str | None, gone: bool) -> None:
    everything, changed = within(range(COUNT), spec), within(CHANGED, spec)
    withdrawn = within(GONE, spec)
    harvest = Harvest(world, spec, len(everything))
    change(world)
    take_down(world)
    if gone:
        retire(world)
    harvest.end()
    found = harvest.records()
    holdings = dict(found)
    assert holdings.keys() == everything
    assert {n for n, held in holdings.items() if held.item.deleted} == withdrawn
    titles = {n for n, held in holdings.items() if held.item.title == "changed"}
    assert titles == changed - withdrawn
    if not gone:
        assert len(found) == len(everything) + len(changed | withdrawn)
    assert harvest.size() == len(found)
