"""How much the tests try: by default enough to notice what a change breaks, in minutes.

HYPOTHESIS_PROFILE=long tries many more random cases, and others each time; KILL_ALL=1 lets work end
at every place where it can, where otherwise places at equal distances are taken, the last one and
the first among them; RACE_SECONDS=60 lets processes that race do so for a minute.
"""

import os

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
EVERY = os.environ.get("KILL_ALL") == "1"
SECONDS = float(os.environ.get("RACE_SECONDS", "5"))


def examples(count: int) -> int:
    """Return how many random cases are tried where `count` are by default."""
    return count * 20 if LONG else count


def places(count: int, step: int) -> list[int]:
    """Return the places of 1 to `count` that are tried: every `step`th from the last, and 1."""
    return sorted({1, *range(count, 0, -1 if EVERY else -step)})
