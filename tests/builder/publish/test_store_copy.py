"""Export: a copy is whole, true and up to date, whatever comes in between."""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import pytest
from lxml import etree

from builder.obi.key import name
from builder.publish.selection import Selection
from builder.publish.store_copy import CopyResult, export
from builder.publish.withdraw import withdraw
from builder.store.copier import ForeignTarget
from builder.store.findings import DAMAGE
from builder.store.folder import FolderStore
from builder.verify.verify import Verified
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, DamagedStore, NothingPublished, StoreError
from functions.snapshot.pointer import Expiry, Pointer, PointerEntry
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue
from tests.bucket import fresh
from tests.builder.conftest import Clock, World, capture
from tests.builder.interrupted import Interrupted
from tests.builder.obi.conftest import Time
from tests.builder.obi.holding import HANDLE, LONG, filled_in, ingested
from tests.builder.outputs.log.conftest import sign_with
from tests.builder.sources.datasets.kept import keep
from tests.builder.sources.datasets.outcomes import item
from tests.builder.sources.datasets.published import ingest
from tests.extent import places
from tests.functions.oai.client import content, event, respond
from tests.interleaving.killer import Killed

pytestmark = pytest.mark.shared(3)


@pytest.fixture
def target(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "copy")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A store with several snapshots, one of them retired, and an intake."""
    world = World(tmp_path_factory.mktemp("filled") / "store")
    for number in range(5):
        world.add([capture(n, title=str(number)) for n in range(number * 7, 40)])
    chosen = Selection(set="domain:cz:example:h3")
    withdraw(world.store, world.configuration(), world.runtime(), chosen, "asked for")
    world.clock.sleep(100)
    world.expire(keep=4)
    world.ingest([capture(500)])
    return world


@pytest.fixture
def source(filled: World, tmp_path: Path) -> World:
    """Give a copy of that store to each test."""
    shutil.copytree(filled.root, tmp_path / "store")
    return World(tmp_path / "store", Clock(filled.clock.now), filled.runs)


def copied(world: World, name: str) -> World:
    """Return a copy of a store, beside it."""
    other = World(world.root.with_name(name), Clock(world.clock.now), world.runs)
    shutil.copytree(world.root, other.root)
    return other


@pytest.fixture(scope="module")
def onward(filled: World) -> World:
    """Give the same store when it was published once more."""
    world = copied(filled, "onward")
    world.publish()
    return world


@pytest.fixture(scope="module")
def later(onward: World) -> World:
    """Give that store when all but its newest snapshot was expired."""
    world = copied(onward, "later")
    world.clock.sleep(100)
    world.expire(keep=1)
    return world


def become(world: World, other: World) -> None:
    """Make a store what another one is, as a publish or an expiry would."""
    shutil.rmtree(world.root)
    shutil.copytree(other.root, world.root)
    world.clock.now = other.clock.now


def exported(world: World, target: Writer, **options: Any) -> CopyResult:
    return export(world.store, target, world.runtime(), **options)


_FOUND: dict[tuple[object, ...], Verified] = {}


def looked_through(world: World, store: Writer) -> Verified:
    """Return what verify tells of a store; of equal ones, at the same time, it is asked once."""
    objects = {key: hashlib.sha256(store.read(key)).digest() for key in store.keys("")}
    seen = (world.clock.now, *sorted(objects.items()))
    if seen not in _FOUND:
        _FOUND[seen] = world.verify(store)
    return _FOUND[seen]


def problems(world: World, store: Writer) -> list[str]:
    """Return what verify finds in a store."""
    return [f"{f.code} {f.object} {f.problem}" for f in looked_through(world, store).findings]


def contents(store: Writer) -> dict[str, bytes]:
    return {key: store.read(key) for key in store.keys("") if not key.startswith(layout.INTAKE)}


def answers(world: World, store: Writer, *requests: dict[str, str]) -> list[bytes]:
    """Return what a handler over the store answers, but for the responseDate."""
    repository = DuckRepository(store)
    settings = world.configuration(SHEAF_PAGES_RECORDS="6")
    application = Application(repository, settings, world.clock)
    found = []
    for request in requests:
        while request:
            body = content(respond(application, event(urlencode(request))))
            found.append(re.sub(rb"<responseDate>[^<]*</responseDate>", b"", body))
            token = etree.fromstring(body).findtext(".//{*}resumptionToken")
            request = {"verb": request["verb"], "resumptionToken": token} if token else {}
    repository.close()
    return found


REQUESTS = (
    {"verb": "Identify"},
    {"verb": "ListSets"},
    {"verb": "ListRecords", "metadataPrefix": "oai_dc"},
    {"verb": "ListRecords", "metadataPrefix": "oai_dc", "set": "mime:image"},
    {"verb": "ListIdentifiers", "metadataPrefix": "oai_dc", "set": "domain:cz:example:h3"},
)


@pytest.fixture(scope="module")
def answered(filled: World) -> list[bytes]:
    """Give what that store answers to these."""
    return answers(filled, filled.store, *REQUESTS)


def test_a_copy_is_the_store_without_its_intake(source: World, target: Writer) -> None:
    done = exported(source, target)
    there, here = contents(target), contents(source.store)
    pointer = Pointer.from_json(there.pop(layout.POINTER))
    assert replace(pointer, copied=None) == Pointer.from_json(here.pop(layout.POINTER))
    assert there == here
    for key in (layout.WITNESS, layout.IDENTITY):  # they go with the pointer, and are not counted
        here.pop(key)
    assert done.objects == len(here)
    assert done.bytes == sum(map(len, here.values()))
    assert done.snapshots == (3, 4, 5, 6)
    assert (done.there, done.retired) == (0, ())
    assert problems(source, target) == []
    assert list(target.keys(layout.INTAKE)) == []
    again = exported(source, target)
    assert (again.objects, again.bytes, again.there) == (0, 0, done.objects)


def test_a_copy_answers_as_the_store_does_and_a_harvest_goes_on_there(
    source: World, target: Writer, answered: list[bytes]
) -> None:
    exported(source, target)
    assert len(answered) > 12
    assert answers(source, target, *REQUESTS) == answered
    lists = [page for page in answered if b"<ListRecords>" in page]
    token = etree.fromstring(lists[0]).findtext(".//{*}resumptionToken")
    assert token
    rest = answers(source, target, {"verb": "ListRecords", "resumptionToken": token})
    assert len(rest) > 3
    assert rest == lists[1 : len(rest) + 1]


def test_the_newest_snapshot_alone(source: World, target: Writer, answered: list[bytes]) -> None:
    done = exported(source, target, newest_only=True)
    assert done.snapshots == (6,)
    pointer = Catalogue(target).pointer()
    assert [entry.snapshot for entry in pointer.entries] == [6]
    assert pointer.retired == ((1, 5),)
    assert problems(source, target) == []
    assert answers(source, target, *REQUESTS) == answered
    # And the others later on.
    assert exported(source, target).snapshots == (3, 4, 5, 6)
    assert Catalogue(target).pointer().retired == ((1, 2),)
    assert problems(source, target) == []


def test_an_earlier_copy_is_brought_up_to_date(
    source: World, onward: World, target: Writer
) -> None:
    first = exported(source, target)
    become(source, onward)
    done = exported(source, target)
    assert done.snapshots == (3, 4, 5, 6, 7)
    assert 0 < done.objects < first.objects
    assert problems(source, target) == []
    assert answers(source, target, *REQUESTS) == answers(source, source.store, *REQUESTS)


def test_what_the_store_retires_the_copy_does_too(
    source: World, later: World, target: Writer
) -> None:
    exported(source, target)
    become(source, later)
    done = exported(source, target)
    assert done.retired == (3, 4, 5, 6)
    assert done.snapshots == (7,)
    assert problems(source, target) == []
    assert contents(target).keys() == contents(source.store).keys()
    assert Catalogue(target).pointer().retired == ((1, 6),)


def test_a_copy_of_a_copy_and_back(source: World, target: Writer, tmp_path: Path) -> None:
    exported(source, target)
    back = FolderStore(tmp_path / "back")
    export(target, back, source.runtime())
    assert contents(back) == contents(target)


def test_one_can_publish_to_a_copy(source: World, target: Writer) -> None:
    exported(source, target)
    copy = World(target.root, source.clock, runs=70)
    assert copy.add([capture(700)]).new == 1
    assert Catalogue(target).pointer().copied is None
    assert problems(source, target) == []
    with pytest.raises(ForeignTarget, match="has snapshot 7, but the store only 6"):
        exported(source, target)


def test_a_copy_is_true_as_of_its_pointer(source: World, onward: World, target: Writer) -> None:
    """Else a harvester of the copy would miss what the store published before the next export."""
    exported(source, target)
    read = source.clock.now
    become(source, onward)
    source.clock.sleep(3600)
    repository = DuckRepository(target)
    application = Application(repository, source.configuration(), source.clock)
    body = content(respond(application, event("verb=Identify")))
    repository.close()
    said = etree.fromstring(body).findtext("{*}responseDate")
    assert said is not None
    assert said <= read.strftime("%Y-%m-%dT%H:%M:%SZ")


_NEVER = 1 << 30


class Failing:
    """A target whose nth write ends the process, before it or after it."""

    def __init__(self, store: Writer, at: int, *, after: bool = False) -> None:
        self.store = store
        self.left = at
        self.after = after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)
        if name not in {"create_all", "replace", "remove"}:
            return method

        def write(*arguments: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.after:
                raise Killed
            result = method(*arguments)
            if name == "create_all":
                result = list(result)
            if self.left == 0:
                raise Killed
            return result

        def write_each(objects: Iterable[tuple[str, bytes]]) -> Iterator[bool]:
            for each in objects:
                yield from write([each])

        return write_each if name == "create_all" else write


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Path]:
    """A signed store of every kind, and an earlier copy of which a snapshot is retired since."""
    world = World((folder := tmp_path_factory.mktemp("ready")) / "store")
    filled_in(world.root, Time(world.clock))
    signed = sign_with(world, folder / "sheaf.key")
    for number in range(3):
        world.add([capture(n, title=str(number)) for n in range(5 - number)], **signed.settings)
        if number == 0:
            exported(world, FolderStore(folder / "copy"))
            ingest(world, keep(world.store, item("a.csv", "b.csv")))
            ingested(world.store, Time(world.clock), {HANDLE: "new"})
        world.clock.sleep(100)
    world.expire(keep=2)
    assert problems(world, FolderStore(folder / "copy")) == []
    return world, folder / "copy"


def settle_copy(world: World, target: Writer) -> None:
    """Copy the store, and see that the copy has every object, with the bytes it must have."""
    exported(world, target)
    assert problems(world, target) == []
    there, here = contents(target), contents(world.store)
    others = {key for key in here.keys() - there.keys() if not key.startswith("log/")}
    differing = {key for key in there if there[key] != here.get(key)}
    assert (others, differing - {layout.POINTER, layout.IDENTITY}) == (set(), set())


EVERY_KIND = {
    "records/records/": "changed gone",
    "snapshots/leaves/": "changed gone",
    "snapshots/3/views.sql": "changed gone",
    "obi/;packs/": "changed gone",
    "obi/;runs/*log.parquet": "changed gone",
    "obi/*documents.parquet": "changed gone",
    f"obi/*{name(LONG)}": "changed gone",
    "filesets/*a.csv": "changed gone",
    "filesets/*fileset.json": "changed",  # without its record, a dataset is not finished
    "log/tile/entries/*3": "gone",
    "log/tile/0/*3": "gone",
    "log/snapshots/3.json": "",
}
"""How keys begin and end, and what of an object no copy is made of."""


def pick(store: Writer, place: str) -> str:
    head, _, tail = place.partition("*")
    return [key for key in store.keys(head) if key.endswith(tail)][-1]


@pytest.mark.parametrize(("place", "refused"), EVERY_KIND.items())
def test_each_object_is_put_back_at_the_copy_and_missed_in_the_store(
    ready: tuple[World, Path], tmp_path: Path, place: str, refused: str
) -> None:
    """A copy that was made is left as it is, and one that is begun gets no pointer."""
    world, _ = ready
    target, key = FolderStore(tmp_path / "copy"), pick(world.store, place)
    shutil.copytree(world.root, tmp_path / "store")
    source = World(tmp_path / "store", Clock(world.clock.now))
    settle_copy(source, target)
    # At the copy: gone, or of another size.
    path, data = target.path(key), target.read(key)
    for change in (None, data[:-1]):
        path.unlink()
        if change is not None:
            path.write_bytes(change)
        settle_copy(source, target)
    path.write_bytes(data)
    before = contents(target)
    for change in refused.split():
        source.store.path(key).unlink()
        if change == "changed":
            source.store.path(key).write_bytes(b"~" * len(data))
        begun = FolderStore(tmp_path / change)
        with pytest.raises(DamagedStore):
            exported(source, begun)
        assert begun.tag(key) is None
        # The log comes after the pointer.
        assert key.startswith("log/") or Catalogue(begun).pointer().entries == ()
    assert contents(target) == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("earlier", [False, True], ids=["empty", "update"])
def test_an_export_may_end_at_any_write(
    ready: tuple[World, Path], tmp_path: Path, earlier: bool, after: bool
) -> None:
    """Every eighth write is tried, in each of the four cases (see tests.extent).

    Between the end of a write and the next one there is nothing, so that the cases complement
    each other. Each begins at the same time, so that the copies that come of it are equal.
    """
    world, copy = ready
    start = world.clock.now

    def begun(name: str) -> Path:
        root = tmp_path / name
        if earlier:
            shutil.copytree(copy, root)
        return root

    whole = Failing(FolderStore(begun("whole")), _NEVER)
    exported(world, cast(Writer, whole))
    writes = _NEVER - whole.left
    assert writes > 15
    for at in places(writes, 8):
        root = begun(str(at))
        target = FolderStore(root)
        failing = Failing(target, at, after=after)
        world.clock.now = start
        with pytest.raises(Killed):
            exported(world, cast(Writer, failing))
        pointer = Catalogue(target).pointer()
        assert pointer.entries or not earlier
        if pointer.entries:  # the old state or the new one, whole
            damage = [f for f in looked_through(world, target).findings if f.kind == DAMAGE]
            # What follows the pointer: the records of publishes, then the log, which verify holds
            # to be cut off until the copy goes on, as below. What is copied of it stands.
            assert {finding.code for finding in damage} <= {"obi-publish-missing", "log-truncated"}
            assert all("copy" in finding.remedy for finding in damage)
        world.clock.sleep(200)  # a lease has run out
        settle_copy(world, target)
        shutil.rmtree(root, ignore_errors=True)
    world.clock.now = start


@pytest.mark.sampled(3)
@pytest.mark.parametrize("at", range(1, 40, 6))
def test_the_source_may_be_expired_meanwhile(
    source: World, later: World, target: Writer, at: int
) -> None:
    calls = 0

    class Expiring(FolderStore):
        def read(self, key: str) -> bytes:
            nonlocal calls
            calls += 1
            if calls == at:
                become(source, later)
            return super().read(key)

    done = export(Expiring(source.root), target, source.runtime())
    assert problems(source, target) == []
    if calls >= at:
        assert done.snapshots[-1] in {6, 7}
    assert exported(source, target).snapshots == ((7,) if calls >= at else (3, 4, 5, 6))
    assert problems(source, target) == []


def test_a_snapshot_that_is_not_in_effect_yet_is_waited_for(
    source: World, onward: World, target: Writer
) -> None:
    become(source, onward)
    effective = newest_of(source.store).effective
    source.clock.now = effective - timedelta(seconds=2)
    assert exported(source, target).snapshots[-1] == 7
    assert source.clock.now >= effective
    copied = Catalogue(target).pointer().copied
    assert copied is not None
    assert copied >= effective
    assert problems(source, target) == []


@pytest.mark.thorough
def test_a_publish_that_is_about_to_tell_that_it_was_in_time_is_waited_for(
    source: World, onward: World, target: Writer
) -> None:
    become(source, onward)
    pointer = Catalogue(source.store).pointer()
    (source.root / layout.POINTER).write_bytes(replace(pointer, settled=False).to_json())
    source.clock.now = newest_of(source.store).effective

    def sleep(seconds: float) -> None:
        source.clock.sleep(seconds)
        (source.root / layout.POINTER).write_bytes(pointer.to_json())

    runtime = replace(source.runtime(), sleep=sleep)
    assert export(source.store, target, runtime).snapshots[-1] == 7
    assert problems(source, target) == []


def newest_of(store: Writer) -> PointerEntry:
    entry = Catalogue(store).pointer().newest()
    assert entry is not None
    return entry


def test_what_may_have_come_too_late_is_not_copied(source: World, target: Writer) -> None:
    pointer = Catalogue(source.store).pointer()
    late = replace(pointer, settled=False)
    (source.root / layout.POINTER).write_bytes(late.to_json())
    with pytest.raises(StoreError, match="run `sheaf publish`"):
        exported(source, target)
    assert list(target.keys("")) == []
    source.publish()
    exported(source, target)
    assert Catalogue(target).pointer().settled
    assert problems(source, target) == []


def test_an_expiry_in_progress_is_not_copied(source: World, target: Writer) -> None:
    pointer = Catalogue(source.store).pointer()
    going = replace(pointer, expiry=Expiry((3, 4), source.clock.now))
    (source.root / layout.POINTER).write_bytes(going.to_json())
    assert exported(source, target).snapshots == (5, 6)
    copied = Catalogue(target).pointer()
    assert copied.expiry is None
    assert copied.retired == ((1, 4),)
    assert problems(source, target) == []


def test_damaged_views_are_not_copied_and_those_of_a_copy_are_replaced(
    source: World, target: Writer
) -> None:
    exported(source, target)
    key = layout.views_key(max(source.verify().snapshots))
    good = source.store.read(key)
    target.replace(key, good.replace(b"SELECT", b"SELECS"), target.tag(key))
    exported(source, target)
    assert target.read(key) == good
    source.store.replace(key, good[:-1], source.store.tag(key))
    with pytest.raises(DamagedStore, match=f"{key}: .*sheaf verify --repair"):
        exported(source, target)
    assert target.read(key) == good


# Targets that are refused.


def test_the_store_itself_and_an_empty_source(source: World, tmp_path: Path) -> None:
    with pytest.raises(ForeignTarget, match="the store itself"):
        exported(source, source.store)
    with pytest.raises(NothingPublished):
        export(FolderStore(tmp_path / "empty"), source.store, source.runtime())


def test_a_folder_that_holds_something_else(source: World, target: Writer) -> None:
    target.create("notes.txt", b"mine")
    with pytest.raises(ForeignTarget, match=r"notes\.txt"):
        exported(source, target)
    assert list(target.keys("")) == ["notes.txt"]


def test_another_store(source: World, make_world: Callable[[str], World], tmp_path: Path) -> None:
    other = make_world("other")
    other.clock.sleep(7)
    other.add([capture(n) for n in range(40)])
    before = contents(other.store)
    with pytest.raises(ForeignTarget, match="another store"):
        exported(source, other.store)
    assert contents(other.store) == before


def test_a_target_that_somebody_else_moves(source: World, target: Writer) -> None:
    rival = Interrupted(target, "replace", lambda: exported(source, target))
    exported(source, cast(Writer, rival))
    assert problems(source, target) == []
    assert rival.left in {0, -1}  # it was moved once, or once more


def test_a_target_that_is_moved_every_time(source: World, target: Writer) -> None:
    class Rival:
        def __getattr__(self, name: str) -> Any:
            def conflict(key: str, data: bytes, tag: str | None) -> str:
                raise Conflict(f"{key} was changed")

            return conflict if name == "replace" else getattr(target, name)

    with pytest.raises(Conflict, match="8 times"):
        exported(source, cast(Writer, Rival()))


def test_progress_counts_every_byte_of_data(source: World, target: Writer) -> None:
    totals: list[int] = []
    counts: list[int] = []

    def progress(total: int) -> Any:
        totals.append(total)
        return nullcontext(counts.append)

    exported(source, target, progress=progress)
    assert sum(counts) == totals[0]
    assert totals[0] > sum(e.bytes for e in target.entries(layout.RECORDS))


@pytest.mark.thorough
@pytest.mark.parametrize("server", ["moto_server", "weed_server"])
def test_a_bucket_is_a_target_and_a_source(
    ready: tuple[World, Path], tmp_path: Path, server: str, request: pytest.FixtureRequest
) -> None:
    """Folder to bucket to folder: every byte at every key, of long names and large objects too."""
    world, _ = ready
    with closing(fresh(request.getfixturevalue(server))) as bucket:
        done = exported(world, bucket)
        again = exported(world, bucket)
        assert (again.objects, again.bytes, again.there) == (0, 0, done.objects)
        assert problems(world, bucket) == []
        back = FolderStore(tmp_path / "back")
        export(bucket, back, world.runtime())
        assert contents(back) == contents(bucket)
    settle_copy(world, back)
