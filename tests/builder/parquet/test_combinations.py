"""Combinations of the values of columns."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.parquet.combinations import combine, split_lists
from builder.parquet.pieces import NoColumnsError
from tests.extent import examples

_TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "a b"]))
_LISTS = st.one_of(st.none(), st.lists(st.sampled_from(["a", "b"]), max_size=2))


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(_TEXTS, _LISTS, st.booleans()), min_size=1, max_size=12))
def test_each_record_gets_its_own_values_back(rows: list[tuple[object, object, bool]]) -> None:
    texts, lists, inside = zip(*rows, strict=True)
    columns = [pa.array(texts, pa.string()), pa.array(lists, pa.list_(pa.string()))]
    (texts_, lists_), numbers = combine(columns, pa.array(inside))
    found = [texts_.to_pylist(), split_lists(lists_.to_pylist())]
    for text, some, is_inside, number in zip(
        texts, lists, inside, numbers.to_pylist(), strict=True
    ):
        assert (number is not None) == is_inside
        assert not is_inside or (found[0][number], found[1][number]) == (text, some)
    assert len(texts_) <= len({(text, tuple(some or ())) for text, some, _ in rows}) + 1


def test_more_combinations_than_numbers_are_refused() -> None:
    """Numbers that wrap around would give a record the values of another."""
    column = pa.array([str(n) for n in range(1024)])
    assert len(combine([column] * 6, None)[0][0]) == 1024
    with pytest.raises(NoColumnsError):
        combine([column] * 7, None)
