"""Memory of Python objects: how much a test may take."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_most(many: int) -> Iterator[None]:
    """Take the block for wrong if its new objects ever have so many bytes, or more."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < many
