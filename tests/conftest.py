"""For all tests."""

import atexit
import os

pytest_plugins = ["tests.bucket"]


def _end_quietly() -> None:
    """Keep the end of the output readable.

    Hypothesis holds modules until the interpreter is gone, and DuckDB's binding then lists its own
    types as leaked, on standard error, in some fifty lines. Nothing else is said that late.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


atexit.register(_end_quietly)
