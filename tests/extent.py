"""How much the tests try: by default enough to notice what a change breaks, in minutes.

TEST_ALL=1 takes all cases of tests that are marked `sampled`, where otherwise every second or third
is taken, and twice as many random cases; it runs the tests that are marked `thorough`, each of
which has a quicker one beside it.
HYPOTHESIS_PROFILE=long tries many more random cases, and others each time; KILL_ALL=1 lets work end
at every place where it can, where otherwise places at equal distances are taken, the last one and
the first among them; RACE_SECONDS=60 lets processes that race do so for a minute.
"""

import os

ALL = os.environ.get("TEST_ALL") == "1"
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
EVERY = os.environ.get("KILL_ALL") == "1"
SECONDS = float(os.environ.get("RACE_SECONDS", "5" if ALL else "2"))


def examples(count: int) -> int:
    """Return how many random cases are tried where `count` are with TEST_ALL=1."""
    if LONG:
        return count * 20
    return count if ALL else -(-count // 2)


def places(count: int, step: int) -> list[int]:
    """Return the places of 1 to `count` that are tried: every `step`th from the last, and 1."""
    return sorted({1, *range(count, 0, -1 if EVERY else -step)})
