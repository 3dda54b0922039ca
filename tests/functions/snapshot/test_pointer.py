import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.snapshot.errors import DamagedStore, NewerSchema, NothingPublished, OlderSchemaError
from functions.snapshot.pointer import Expiry, Pointer, PointerEntry

START = datetime(2026, 1, 1, tzinfo=UTC)


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
    ],
)
def test_a_pointer_edited_by_hand_is_told(damaged: bytes) -> None:
    with pytest.raises(DamagedStore):
        Pointer.from_json(damaged)


def test_no_flipped_bit_is_read_as_another_pointer() -> None:
    whole = Pointer(
        (entry(4, 0), entry(7, 10)),
        expiry=Expiry((5, 6), START + timedelta(minutes=2), "one"),
        retired=((1, 3),),
        copied=START,
        expiries=2,
    )
    data = whole.to_json()
    for place in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << (place % 8)
        with suppress(DamagedStore, NewerSchema, OlderSchemaError):
            assert Pointer.from_json(bytes(flipped)) == whole


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


def test_a_newer_schema_is_refused() -> None:
    with pytest.raises(NewerSchema, match="later Sheaf"):
        Pointer.from_json(b'{"schema": 99, "snapshots": []}')


def test_an_older_schema_is_refused() -> None:
    with pytest.raises(OlderSchemaError, match=r"schema 1 of a Sheaf before 0\.2\.0"):
        Pointer.from_json(b'{"schema": 1, "snapshots": []}')


def test_all_that_a_pointer_holds_is_read_again() -> None:
    whole = Pointer(
        (entry(4, 0), entry(7, 10)),
        settled=False,
        expiry=Expiry((5, 6), START + timedelta(minutes=2)),
        retired=((1, 2), (4, 4)),
        expiries=3,
    )
    assert Pointer.from_json(whole.to_json()) == whole
    plain = Pointer((entry(1, 0),))
    assert Pointer.from_json(plain.to_json()) == plain
    assert b"expir" not in plain.to_json()
    assert b"retired" not in plain.to_json()


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


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"schema": 3, "snapshots": [], "settled": "yes"}',
        b'{"schema": 3, "snapshots": [], "settled": true, "expiry": {}}',
        b'{"schema": 3, "snapshots": [], "settled": true, "expiry": {"snapshots": 1}}',
        b'{"schema": 3, "snapshots": [], "settled": true, "retired": [[1]]}',
        b'{"schema": 3, "snapshots": [], "settled": true, "expiries": "many"}',
    ],
)
def test_damage_to_what_expiry_wrote_is_told(damaged: bytes) -> None:
    with pytest.raises(DamagedStore, match=r"current\.json is damaged.*restore a copy"):
        Pointer.from_json(damaged)
