"""A home of the command line."""

from tests.e2e.conftest import home

__all__ = ["home"]
