"""A pointer that was lost is told from one that never was."""

import pytest

from builder import loss
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore
from functions.snapshot.pointer import Pointer

from .conftest import World, capture


def pointed(world: World, pointer: Pointer | None) -> None:
    path = world.root / layout.POINTER
    path.unlink(missing_ok=True)
    if pointer is not None:
        path.write_bytes(pointer.to_json())


def test_a_store_that_is_new_or_whole_has_lost_nothing(world: World) -> None:
    loss.check(world.store)
    world.ingest([capture(1)])
    loss.check(world.store)
    world.publish()
    loss.check(world.store)


def test_what_a_first_publish_that_died_has_left_is_no_loss(world: World) -> None:
    world.ingest([capture(1)])
    world.publish()
    pointed(world, Pointer())
    loss.check(world.store)
    pointed(world, None)
    with pytest.raises(DamagedStore, match=r"snapshots up to 1, and no current\.json that names"):
        loss.check(world.store)


def test_a_pointer_that_names_none_of_several_publishes_is_lost(world: World) -> None:
    for number in range(2):
        world.ingest([capture(number)])
        world.publish()
    pointed(world, Pointer())
    with pytest.raises(DamagedStore, match=r"up to 2, .* \(docs/operating.md says how\)"):
        loss.check(world.store)


def test_a_first_publish_meanwhile_is_no_loss(world: World) -> None:
    world.ingest([capture(1)])
    world.publish()
    loss.check_unnamed(world.store, None)
