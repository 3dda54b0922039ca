"""Policy for the dumps of a store: which differences are merged, and when a complete dump is made.

The newest difference always stands alone, so that catching up after one publish takes one small
file. Older ones are merged like the runs of a snapshot, so the index stays short. A record
is rewritten about once each time its difference doubles in size.
"""

from collections.abc import Sequence

from builder.snapshot.compaction import RECORDS_RATIO, runs_to_merge

LISTED = 8
"""Differences besides the newest one that are listed before any are merged."""
_SHARE = 2
"""All differences together have at most one part in so many of the complete dump's bytes."""


def count_merged(sizes: Sequence[int]) -> int:
    """Return how many differences before the newest one become one: 0, or at least 2.

    `sizes` are the bytes of all differences, the newest last.
    """
    older = sizes[:-1]
    if len(older) <= LISTED:
        return 0
    count = 1 + runs_to_merge(older[:-1], older[-1], RECORDS_RATIO)
    return count if count > 1 else 0


def is_complete_due(complete: int, sizes: Sequence[int]) -> bool:
    """Return whether a new complete dump costs less than the differences behind the last one.

    These have `sizes` bytes, and the complete dump has `complete`.
    """
    return sum(sizes) * _SHARE > complete


def count_kept(complete: int, sizes: Sequence[int]) -> int:
    """Return how many of the last differences a new complete dump leaves, at least the newest."""
    count = 1
    while count < len(sizes) and sum(sizes[-count - 1 :]) * _SHARE <= complete:
        count += 1
    return min(count, len(sizes))
