from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from functions.reading import record_rows
from functions.snapshot import schema
from functions.snapshot.errors import DamagedStore
from functions.snapshot.manifest import (
    Leaf,
    LeafReference,
    Manifest,
    RowGroup,
    Sequence,
    Span,
    overlapping,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
SEQUENCES = (
    Sequence(1, START, 1, 100, {"capture": 90}),
    Sequence(2, START + timedelta(days=1), 101, 120, {"capture": 20}),
)
LEAF = LeafReference("snapshots/leaves/x.json", ("a", 1), ("b", 9), 100, 1, 5000)
MANIFEST = Manifest(3, START, "a.cz", SEQUENCES, {"copies": (LEAF,)}, 7, {"list": "1"}, (2,), 5)


def test_dates_select_whole_sequences() -> None:
    second = timedelta(seconds=1)
    assert MANIFEST.select(None, None) == SEQUENCES
    assert MANIFEST.select(START, START) == SEQUENCES[:1]
    assert MANIFEST.select(START + second, None) == SEQUENCES[1:]
    assert MANIFEST.select(None, START - second) == ()


def test_kinds_are_counted_once_for_all_requests() -> None:
    assert MANIFEST.kinds() == {"capture": 110}
    assert MANIFEST.kinds() is MANIFEST.kinds()
    assert replace(MANIFEST, sequences=SEQUENCES[:1]).kinds() == {"capture": 90}


def test_the_share_of_a_span_in_each_publish() -> None:
    assert record_rows.span_shares(MANIFEST, Span(51, 110)) == {1: 0.5, 2: 0.5}
    assert record_rows.span_shares(MANIFEST, Span(121, 130)) == {}


KINDS = ("capture",)


def test_living_stretches_join_their_neighbours() -> None:
    assert record_rows.find_spans(MANIFEST, {1, 2}, KINDS) == [Span(1, 120)]
    assert record_rows.find_spans(MANIFEST, {2}, KINDS) == [Span(101, 120)]
    assert record_rows.find_spans(MANIFEST, set(), KINDS) == []


def test_kinds_have_stretches_of_their_own() -> None:
    first, second = SEQUENCES
    some = structs.replace(second, starts={"capture": second.first, "collection": second.last})
    manifest = replace(MANIFEST, sequences=(first, some))
    assert Manifest.from_json(manifest.to_json()) == manifest
    both = {1, 2}
    assert record_rows.find_spans(manifest, both, ("collection",)) == [
        Span(first.first, first.last),  # of which nothing is said
        Span(second.last, second.last),
    ]
    assert record_rows.find_spans(manifest, both, KINDS) == [Span(first.first, second.last - 1)]
    assert record_rows.find_spans(manifest, both, ("capture", "collection")) == [
        Span(first.first, second.last)
    ]
    assert record_rows.living_sequences(manifest, ("collection",)) == set()


@given(st.lists(st.integers(1, 5), min_size=1, max_size=20), st.integers(0, 110), st.integers(0, 9))
def test_overlapping_finds_every_group_that_can_hold_the_range(
    sizes: list[int], first: int, more: int
) -> None:
    groups, start = [], 1
    for size in sizes:
        groups.append(RowGroup(start, start + size - 1, size, 0, 0, 0, 0))
        start += size + 1  # a gap, as dead rows would leave
    expected = [g for g in groups if g.last >= first and g.first <= first + more]  # type: ignore[operator]
    assert list(overlapping(groups, first, first + more)) == expected


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{}",
        b'{"schema": 3}',
        b"[]",
        b'{"schema": null}',
        MANIFEST.to_json().replace(b'"tables":{', b'"tables":[],"x":{'),
        MANIFEST.to_json().replace(b'"snapshot":3', b'"snapshot":"x"'),
        MANIFEST.to_json().replace(b'"capture":90', b'"capture":null'),
        MANIFEST.to_json().replace(b'"sets":7', b'"sets":null'),
        MANIFEST.to_json().replace(b'"formats":{}', b'"formats":5'),
        MANIFEST.to_json().replace(b'"formats":{}', b'"formats":{"a":["1","2026",1]}'),
    ],
)
def test_damage_is_told(damaged: bytes) -> None:
    for read in (Manifest.from_json, Leaf.from_json):
        with pytest.raises(DamagedStore):
            read(damaged)


def test_every_column_has_meaning_and_example() -> None:
    for table, columns in schema.TABLES.items():
        assert set(schema.ORDER[table]) <= {c.name for c in columns}
        assert len({c.name for c in columns}) == len(columns)
        assert all(c.meaning and c.example for c in columns)
