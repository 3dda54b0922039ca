"""A store's id and its witness: old pointers are refused, tokens are good in one store alone."""

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from builder.snapshot import recovery
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import Expiry, Pointer, PointerEntry, Witness
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import World, capture
from tests.builder.publish.test_store_copy import problems
from tests.functions.oai.client import Client, Page, configured, content, event, respond
from tests.functions.oai.validity import valid

pytestmark = pytest.mark.shared(2)

LIST = {"verb": "ListIdentifiers", "metadataPrefix": "oai_dc"}


def filled(world: World) -> None:
    """Publish twice: 20 items, then 10 more."""

    def fill(world: World) -> None:
        for first in (0, 20):
            world.add([capture(n) for n in range(first, first + (20 if not first else 10))])
            world.clock.sleep(100)

    begin(world, "two publishes", fill)


def pointer(world: World) -> Pointer:
    return Catalogue(world.store).pointer()


def witness(world: World) -> Witness:
    return Catalogue(world.store).witness()


def put_back(world: World, *, settled: bool = True) -> bytes:
    """Put back the pointer of the first publish; return the right one."""
    path = world.root / layout.POINTER
    right = path.read_bytes()
    whole = pointer(world)
    first = Catalogue(world.store).manifest(1)
    path.write_bytes(replace(whole, entries=(PointerEntry(1, first.effective),)).to_json())
    if not settled:
        for number in (1, 2):
            (world.root / layout.settled_key(number)).unlink()
    return right


def asked(client: Client, **arguments: str) -> Page | None:
    """Return the answer, None for 503."""
    reply = client.raw(urlencode(arguments))
    return None if reply["statusCode"] == 503 else Page(valid(content(reply)))


def client(world: World, store: Any = None, size: int = 100) -> Client:
    repository = DuckRepository(store or world.store)
    world.opened.append(repository)
    found = Client(repository, world.clock)  # type: ignore[arg-type]
    settings = configured(pages_identifiers=size)
    found.application = Application(repository, settings, world.clock)
    return found


def starts(world: World) -> bool:
    """Tell whether a function that begins now answers."""
    return asked(client(world), **LIST) is not None


# The pointer and the witness.


def test_an_old_pointer_with_an_expiry_in_it_removes_nothing(world: World) -> None:
    """A publish would complete the expiry, and take all that came later for orphans."""
    filled(world)
    put_back(world)
    old = replace(pointer(world), expiry=Expiry((), world.clock.now))
    (world.root / layout.POINTER).write_bytes(old.to_json())
    before = set(world.store.keys(""))
    world.clock.sleep(3 * 86400)
    for work in (world.publish, world.expire):
        with pytest.raises(DamagedStore, match="was restored"):
            work()
    assert set(world.store.keys("")) == before


def test_a_pointer_of_another_store_is_refused(make_world: Callable[[str], World]) -> None:
    one, other = make_world("one"), make_world("other")
    for world, name in ((one, "1" * 32), (other, "2" * 32)):
        world.identity = name
        world.add([capture(1)])
    data = (other.root / layout.POINTER).read_bytes()
    (one.root / layout.POINTER).write_bytes(data)
    with pytest.raises(DamagedStore, match="belongs to another store"):
        recovery.current(one.store)
    assert not starts(one)
    (found,) = problems(one, one.store)
    assert found.startswith("pointer-foreign")
    (other.root / layout.WITNESS).unlink()
    assert not starts(other)


def test_a_witness_of_a_snapshot_that_is_gone_is_named(world: World) -> None:
    filled(world)
    put_back(world)
    for key in layout.snapshot_keys(2):
        (world.root / key).unlink(missing_ok=True)
    found = [p for p in problems(world, world.store) if p.startswith("witness-ahead")]
    assert "snapshot 2, which does not exist" in found[0]


def test_a_copy_of_the_manifest_in_the_witness_is_compared_with_it(world: World) -> None:
    filled(world)
    right = witness(world)
    assert right.manifest.encode() == world.store.read(layout.manifest_key(2))
    for other in (world.store.read(layout.manifest_key(1)).decode(), "{}"):
        (world.root / layout.WITNESS).write_bytes(
            Witness(right.store, right.newest, other).to_json()
        )
        assert starts(world)  # by the manifest itself
        (found,) = problems(world, world.store)
        assert found.startswith("witness-damaged snapshots/newest.json its copy of")
        repair = recovery.find_repair(world.store)
        assert Witness.from_json(repair[1]) == Witness(right.store, right.newest)
    # A reader that began by a witness of another store does not keep what that said.
    repository, data = world.repository(), right.manifest.replace(right.store, "0" * 32).encode()
    other = json.dumps({n: v for n, v in json.loads(data).items() if n != "sha256"})
    (world.root / layout.WITNESS).write_bytes(Witness("0" * 32, right.newest, other).to_json())
    assert repository.witness() is not None
    (world.root / layout.WITNESS).write_bytes(right.to_json())
    assert repository.witness() == right
    assert repository.manifest(2).store == right.store
    (world.root / layout.manifest_key(2)).write_bytes(b"{")
    assert starts(world)  # by the copy, which is sound
    (found,) = problems(world, world.store)
    assert found.startswith("manifest-damaged")
    assert recovery.find_repair(world.store) is None


def test_a_server_that_starts_while_a_publish_moves_the_pointer_is_not_misled(world: World) -> None:
    """It reads the old pointer, and the witness of the new one."""
    filled(world)
    world.ingest([capture(50)])

    published = threading.Event()

    class Meanwhile(DuckRepository):
        def pointer(self) -> Pointer:
            found = super().pointer()
            if not published.is_set():
                world.publish()
                published.set()
            return found

    repository = Meanwhile(world.store)
    world.opened.append(repository)
    read = repository.witness

    def slow() -> Witness | None:
        assert published.wait(60)
        return read()

    repository.witness = slow
    application = Application(repository, configured(), world.clock)
    assert respond(application, event(urlencode(LIST)))["statusCode"] == 200


# A server that runs.


def test_a_running_server_never_goes_back(world: World, caplog: pytest.LogCaptureFixture) -> None:
    filled(world)
    running = client(world, size=12)
    page = asked(running, **LIST)
    right = put_back(world, settled=False)
    caplog.set_level(logging.ERROR, "sheaf")
    for _ in range(3):
        world.clock.sleep(3600)
        again = asked(running, **LIST)
        assert again.identifiers == page.identifiers
        last = asked(running, verb="ListIdentifiers", resumptionToken=page.next)
        assert len(last.identifiers) == 12
    (told,) = caplog.messages
    assert "an old copy was restored" in told
    assert "sheaf verify" in told
    (world.root / layout.POINTER).write_bytes(right)
    world.add([capture(50)])
    page = asked(running, **LIST)
    assert page.token.get("completeListSize") == "31"


def test_a_running_server_that_missed_a_publish_says_nothing(world: World) -> None:
    """It cannot tell what is in effect, so it does not end a list."""
    filled(world)
    running = client(world)
    assert asked(running, **LIST) is not None
    world.add([capture(50)])
    world.clock.sleep(3600)
    put_back(world)
    assert asked(running, **LIST) is None


# The store's id.


def test_an_id_is_drawn_once_and_is_in_pointer_witness_and_manifest(world: World) -> None:
    world.identity = "a" * 32
    filled_by(world, 1)
    world.identity = "b" * 32
    filled_by(world, 2)
    assert not recovery.begin_identity(world.store, lambda: "c" * 32)
    assert pointer(world).store == witness(world).store == world.newest().store == "a" * 32
    assert world.newest().former == ()
    world.clock.sleep(10 * 365 * 86400)
    world.expire()
    assert witness(world).number == 2


def filled_by(world: World, number: int) -> None:
    world.add([capture(number)])
    world.clock.sleep(100)


def made_old(world: World) -> None:
    """Make the store one from before there were ids."""
    whole = pointer(world)
    for number in (1, 2):
        path = world.root / layout.manifest_key(number)
        bare = replace(Manifest.from_json(path.read_bytes()), store="", identified=False)
        path.write_bytes(bare.to_json())
    (world.root / layout.WITNESS).unlink()
    (world.root / layout.IDENTITY).unlink()
    (world.root / layout.POINTER).write_bytes(replace(whole, store="").to_json())


def test_an_old_pointer_of_a_store_without_a_witness_is_found_by_settled(world: World) -> None:
    filled(world)
    made_old(world)
    put_back(world)
    with pytest.raises(DamagedStore, match="2 was published: an old copy was restored"):
        recovery.current(world.store)
