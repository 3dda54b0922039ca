"""How much the tests try: by default enough to notice what a change breaks, in minutes.

TEST_ALL=1 takes all cases of tests that are marked `sampled`, where otherwise every few are taken,
and all tests of modules that are marked `shared`, many of which begin alike and cost much;
eight times as many random cases, and six times as many places where work ends; it runs the tests
that are marked `thorough`, each of which has a quicker one beside it. TEST_REST=1 takes as much, of
those tests alone of which less is tried by default: with it, `make prove-all` proves the rest.
HYPOTHESIS_PROFILE=long tries many more random cases, and others each time; KILL_ALL=1 lets work end
at every place where it can, where otherwise places at equal distances are taken, the last one and
the first among them. PLACES names further servers of buckets (tests/places.py), as `make
prove-places` does.
"""

import os

REST = os.environ.get("TEST_REST") == "1"
ALL = REST or os.environ.get("TEST_ALL") == "1"
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
PLACES = os.environ.get("PLACES", "").split()
EVERY = os.environ.get("KILL_ALL") == "1"


def examples(count: int) -> int:
    """Return how many random cases are tried where `count` are with TEST_ALL=1."""
    if LONG:
        return count * 20
    return count if ALL else min(count, max(2, -(-count // 8)))


def places(count: int, step: int) -> list[int]:
    """Return the places of 1 to `count` that are tried: every `step`th from the last, and 1.

    By default it is every sixth of these.
    """
    step = 1 if EVERY else step if ALL else 6 * step
    return sorted({1, *range(count, 0, -step)})
