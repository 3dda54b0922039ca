"""Tokens are good in the store that gave them, and in what shares its history."""

from pathlib import Path
from typing import Any

import pytest

from builder.publish.store_copy import export
from builder.snapshot import recovery
from tests.builder.conftest import World, capture
from tests.builder.publish.test_store_copy import problems
from tests.builder.snapshot.test_identity import (
    LIST,
    asked,
    client,
    filled,
    made_old,
    pointer,
    witness,
)


def token_of(world: World, store: Any = None) -> str:
    page = asked(client(world, store, size=4), **LIST)
    assert page is not None
    assert page.next
    return page.next


def goes_on(world: World, token: str, store: Any = None) -> bool:
    page = asked(client(world, store, size=4), verb="ListIdentifiers", resumptionToken=token)
    assert page is not None
    assert page.codes in ([], ["badResumptionToken"])
    return not page.codes


@pytest.mark.thorough
def test_a_copy_keeps_the_id_until_it_is_published_to(world: World, tmp_path: Path) -> None:
    filled(world)
    early = token_of(world)
    copy = World(tmp_path / "copy", world.clock, runs=50, identity="c" * 32)
    export(world.store, copy.store, world.runtime())
    assert pointer(copy).store == witness(copy).store == world.identity
    assert goes_on(world, early, copy.store)
    for one, first in ((world, 60), (copy, 80)):
        one.add([capture(n) for n in range(first, first + 5)])
        one.clock.sleep(100)
    assert copy.newest().store == "c" * 32
    # What both have in common goes on at both; what came later does not.
    assert goes_on(world, early)
    assert goes_on(world, early, copy.store)
    late, late_of_copy = token_of(world), token_of(world, copy.store)
    assert goes_on(world, late)
    assert not goes_on(world, late, copy.store)
    assert goes_on(world, late_of_copy, copy.store)
    assert not goes_on(world, late_of_copy)
    assert problems(world, copy.store) == []


def test_a_store_from_before_there_were_ids_gets_one_and_its_tokens_go_on(world: World) -> None:
    filled(world)
    made_old(world)
    assert recovery.current(world.store)[0].store == ""
    early = token_of(world)
    assert goes_on(world, early)
    assert problems(world, world.store) == []
    assert world.publish().manifest is None  # nothing is new, but there is a witness now
    assert witness(world).number == 2
    assert goes_on(world, early)
    world.add([capture(60)])
    world.clock.sleep(100)
    assert pointer(world).store == world.newest().store == world.identity
    assert world.newest().former == ((2, ""),)
    late = token_of(world)
    assert late != early
    assert goes_on(world, early)
    assert goes_on(world, late)
    assert problems(world, world.store) == []
