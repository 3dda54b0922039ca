"""The witness: what it holds, and which pointers it contradicts."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, NewerSchema, OlderSchemaError
from functions.snapshot.pointer import Pointer, PointerEntry
from functions.snapshot.witness import Witness, contradiction

START = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = (PointerEntry(number, START + timedelta(minutes=number)) for number in (1, 2))
OTHER = PointerEntry(2, START + timedelta(hours=1))


def test_what_a_witness_holds_is_read_again() -> None:
    for witness in (Witness("a"), Witness("a", TWO)):
        assert Witness.from_json(witness.to_json()) == witness


def test_no_flipped_bit_is_read_as_another_witness() -> None:
    data = Witness("a" * 32, TWO).to_json()
    for place in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << (place % 8)
        with suppress(DamagedStore, NewerSchema, OlderSchemaError):
            assert Witness.from_json(bytes(flipped)) == Witness("a" * 32, TWO)


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
