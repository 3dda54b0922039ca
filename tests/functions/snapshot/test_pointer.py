import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, NothingPublished
from functions.snapshot.pointer import Expiry, Pointer, PointerEntry, Witness, contradiction

START = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = (PointerEntry(number, START + timedelta(minutes=number)) for number in (1, 2))
OTHER = PointerEntry(2, START + timedelta(hours=1))


def entry(number: int, seconds: int) -> PointerEntry:
    return PointerEntry(number, START + timedelta(seconds=seconds))


def test_readers_go_by_the_clock() -> None:
    pointer = Pointer((entry(1, 0), entry(2, 10)))
    assert pointer.at(START + timedelta(seconds=9)) == entry(1, 0)
    assert pointer.at(START + timedelta(seconds=10)) == entry(2, 10)
    with pytest.raises(NothingPublished):
        pointer.at(START - timedelta(seconds=1))


def test_moving_forgets_what_was_followed_long_ago() -> None:
    pointer = Pointer((entry(1, 0), entry(2, 10), entry(3, 200)))
    moved = pointer.move_to(entry(4, 300), START + timedelta(seconds=69))
    assert moved.entries == (entry(1, 0), entry(2, 10), entry(3, 200), entry(4, 300))
    moved = pointer.move_to(entry(4, 300), START + timedelta(seconds=70))
    assert moved.entries == (entry(2, 10), entry(3, 200), entry(4, 300))


def test_json_round_trip() -> None:
    pointer = Pointer((entry(1, 0), entry(2, 10)))
    assert Pointer.from_json(pointer.to_json()) == pointer
    assert json.loads(pointer.to_json()).keys() == {
        "schema",
        "sheaf",
        "snapshots",
        "settled",
        "sha256",
    }
    copied = Pointer((entry(1, 0),), retired=((1, 2),), copied=START)
    assert Pointer.from_json(copied.to_json()) == copied


def test_what_is_published_to_a_copy_makes_it_a_store_of_its_own() -> None:
    copied = Pointer((entry(1, 0),), copied=START)
    assert copied.trim(START).complete_expiry().copied == START
    assert copied.move_to(entry(2, 10), START).copied is None


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{}",
        b"[1]",
        b'{"schema": 3}',
        b'{"schema": 3, "snapshots": [{"snapshot": 1}]}',
        b'{"schema": 3, "snapshots": [{"snapshot": 1, "effective": "yesterday"}]}',
        b'{"schema": "x", "snapshots": []}',
        b"\xff\xfe",
        b'{"schema": 3, "snapshots": [], "settled": "yes"}',
        b'{"schema": 3, "snapshots": [], "settled": true, "expiry": {}}',
        b'{"schema": 3, "snapshots": [], "settled": true, "expiry": {"snapshots": 1}}',
        b'{"schema": 3, "snapshots": [], "settled": true, "retired": [[1]]}',
        b'{"schema": 3, "snapshots": [], "settled": true, "expiries": "many"}',
    ],
)
def test_a_pointer_edited_by_hand_is_told(damaged: bytes) -> None:
    with pytest.raises(DamagedStore, match=r"current\.json is damaged.*restore a copy"):
        Pointer.from_json(damaged)


def test_a_pointer_may_be_written_by_hand_but_not_changed() -> None:
    pointer = Pointer((entry(1, 0), entry(2, 10)))
    document = json.loads(pointer.to_json())
    document["snapshots"].pop()
    with pytest.raises(DamagedStore, match="remove sha256"):
        Pointer.from_json(json.dumps(document).encode())
    del document["sha256"]
    assert Pointer.from_json(json.dumps(document).encode()) == Pointer((entry(1, 0),))
    with pytest.raises(DamagedStore, match="remarks"):
        Pointer.from_json(json.dumps({**document, "remarks": 1}).encode())


def test_snapshots_out_of_order_are_told() -> None:
    with pytest.raises(DamagedStore, match="not in order"):
        Pointer.from_json(Pointer((entry(2, 10), entry(1, 20))).to_json())


@given(st.lists(st.integers(1, 40), unique=True), st.lists(st.integers(1, 40), unique=True))
def test_what_expired_is_retired_in_as_few_ranges_as_can_be(one: list[int], two: list[int]) -> None:
    pointer = Pointer((entry(99, 0),))
    for numbers in (one, two):
        going = replace(pointer, expiry=Expiry(tuple(sorted(numbers)), START))
        assert all(going.is_retired(number) for number in numbers)
        pointer = going.complete_expiry()
        assert pointer != going
        assert pointer.expiry is None
    assert [n for n in range(50) if pointer.is_retired(n)] == sorted({*one, *two})
    for (_, last), (first, _) in pairwise(pointer.retired):
        assert first > last + 1
    assert Pointer.from_json(pointer.to_json()) == pointer


def test_no_pointer_is_like_one_before_an_expiry() -> None:
    """A publish tells by the pointer's bytes whether something was removed meanwhile."""
    before = Pointer((entry(1, 0),))
    after = replace(before, expiry=Expiry((), START)).complete_expiry()
    assert after.to_json() != before.to_json()
    assert replace(after, expiry=Expiry((), START)).complete_expiry().to_json() != after.to_json()


def test_moving_keeps_what_is_known_of_expiries() -> None:
    pointer = Pointer((entry(3, 0),), retired=((1, 2),), expiries=1)
    moved = pointer.move_to(entry(4, 10), START)
    assert (moved.retired, moved.expiries, moved.settled) == (((1, 2),), 1, False)
    assert moved.trim(START + timedelta(days=1)).entries == (entry(4, 10),)


def test_a_witness_written_by_hand_needs_no_digest() -> None:
    data = b'{"schema": 3, "store": "a", "snapshot": 1, "effective": "2026-01-01T00:01:00Z"}'
    assert Witness.from_json(data) == Witness("a", ONE)
    with pytest.raises(DamagedStore, match="sheaf verify"):
        Witness.from_json(b'{"schema": 3, "snapshot": 1}')


@pytest.mark.parametrize(
    ("pointer", "witness", "code"),
    [
        (Pointer(), None, None),
        (Pointer((ONE,)), None, None),  # a store from before there were witnesses
        (Pointer((ONE,), store="a"), None, "witness-missing"),
        (Pointer((ONE, TWO), store="a"), Witness("a", TWO), None),
        (Pointer((ONE, TWO), store="a"), Witness("a", ONE), None),  # a publish goes on, or died
        (Pointer((ONE, TWO), store="b"), Witness("a", ONE), None),  # a copy became its own store
        (Pointer((TWO,)), Witness("a", TWO), None),  # the id comes with the next publish
        (Pointer((ONE,), store="a"), Witness("a", TWO), "pointer-behind"),
        (Pointer((), store="a"), Witness("a", TWO), "pointer-behind"),
        (Pointer(), Witness("a", TWO), "pointer-behind"),
        (Pointer(), Witness("a"), None),  # `sheaf init` died in between
        (Pointer((ONE,), copied=START), Witness("a", TWO), None),  # serves an earlier snapshot
        (Pointer((ONE,), copied=START, store="a"), Witness("a", TWO), "pointer-behind"),
        (Pointer((OTHER,), store="a"), Witness("a", TWO), "pointer-foreign"),
        (Pointer((TWO,), store="b"), Witness("a", TWO), "pointer-foreign"),
    ],
)
def test_what_contradicts_the_witness(
    pointer: Pointer, witness: Witness | None, code: str | None
) -> None:
    found = contradiction(pointer, witness)
    assert (found and found.code) == code
    if found:
        assert "sheaf verify" in str(found.error())


def test_only_folders_of_snapshots_are_numbers() -> None:
    names = ["snapshots/10/", "snapshots/9/", "snapshots/leaves/", layout.WITNESS, "snapshots/7"]
    assert layout.numbers_in(names) == [9, 10]
