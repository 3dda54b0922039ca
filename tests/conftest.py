"""For all tests."""

import os

import pytest


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Keep the end of the output readable.

    Hypothesis holds modules until the interpreter is gone, and DuckDB's binding then lists its own
    types as leaked, on standard error, in some fifty lines. Nothing else is said that late.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
