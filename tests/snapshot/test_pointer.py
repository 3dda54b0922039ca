from datetime import UTC, datetime, timedelta

import pytest

from functions.snapshot.errors import DamagedStore, NewerSchema, NothingPublished
from functions.snapshot.pointer import Entry, Pointer

START = datetime(2026, 1, 1, tzinfo=UTC)


def entry(number: int, seconds: int) -> Entry:
    return Entry(number, START + timedelta(seconds=seconds))


def test_readers_go_by_the_clock() -> None:
    pointer = Pointer((entry(1, 0), entry(2, 10)))
    assert pointer.at(START + timedelta(seconds=9)) == entry(1, 0)
    assert pointer.at(START + timedelta(seconds=10)) == entry(2, 10)
    with pytest.raises(NothingPublished):
        pointer.at(START - timedelta(seconds=1))


def test_moving_forgets_what_was_followed_long_ago() -> None:
    pointer = Pointer((entry(1, 0), entry(2, 10), entry(3, 200)))
    moved = pointer.moved(entry(4, 300), START + timedelta(seconds=69))
    assert moved.entries == (entry(1, 0), entry(2, 10), entry(3, 200), entry(4, 300))
    moved = pointer.moved(entry(4, 300), START + timedelta(seconds=70))
    assert moved.entries == (entry(2, 10), entry(3, 200), entry(4, 300))


def test_json_round_trip() -> None:
    pointer = Pointer((entry(1, 0), entry(2, 10)))
    assert Pointer.from_json(pointer.to_json()) == pointer


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{}",
        b"[1]",
        b'{"schema": 1}',
        b'{"schema": 1, "snapshots": [{"snapshot": 1}]}',
        b'{"schema": 1, "snapshots": [{"snapshot": 1, "effective": "yesterday"}]}',
        b'{"schema": "x", "snapshots": []}',
        b"\xff\xfe",
    ],
)
def test_a_pointer_edited_by_hand_is_told(damaged: bytes) -> None:
    with pytest.raises(DamagedStore):
        Pointer.from_json(damaged)


def test_snapshots_out_of_order_are_told() -> None:
    with pytest.raises(DamagedStore, match="not in order"):
        Pointer.from_json(Pointer((entry(2, 10), entry(1, 20))).to_json())


def test_a_newer_schema_is_refused() -> None:
    with pytest.raises(NewerSchema, match="later Sheaf"):
        Pointer.from_json(b'{"schema": 99, "snapshots": []}')
