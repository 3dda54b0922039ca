"""Different combinations of the values of columns, of which each is to be worked on once.

It is apart from the writer, and imports pyarrow like it.
"""

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from builder.parquet.pieces import NoColumnsError

_INNER = "\x1d"
"""What joins lists. No value contains it, because XML forbids it."""
_MOST = 2**63 - 1
"""Combinations that have a number of their own; the arithmetic of arrays does not check this."""


def combine(
    columns: Sequence[pa.Array], mask: pa.BooleanArray | None
) -> tuple[Sequence[pa.Array], pa.Array]:
    """Return the different combinations of values, and the number of that of each record.

    Lists become texts (split_lists). Raises NoColumnsError. Outside of `mask` the number is null.
    """
    coded = [_join_lists(column).dictionary_encode("encode") for column in columns]
    if math.prod(len(one.dictionary) for one in coded) > _MOST:
        raise NoColumnsError
    number = coded[0].indices.cast(pa.int64())
    for other in coded[1:]:
        number = pc.add(pc.multiply(number, len(other.dictionary)), other.indices)
    if mask is not None:
        number = pc.if_else(mask, number, None)
    found = number.dictionary_encode()
    rest, chosen = found.dictionary, []
    for other in reversed(coded):
        many = max(1, len(other.dictionary))
        quotient = pc.divide(rest, many)
        chosen.append(other.dictionary.take(pc.subtract(rest, pc.multiply(quotient, many))))
        rest = quotient
    return chosen[::-1], found.indices


def _join_lists(column: pa.Array) -> pa.Array:
    """Return lists of texts as texts, and other columns as they are."""
    if not pa.types.is_list(column.type):
        return column
    if pc.any(pc.equal(column.flatten(), "")).as_py():
        raise NoColumnsError
    return pc.binary_join(column, _INNER)


def split_lists(texts: Sequence[str | None]) -> Sequence[list[str] | None]:
    """Return the lists that `combine` joined."""
    return [text if text is None else text.split(_INNER) if text else [] for text in texts]
