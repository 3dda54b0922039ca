"""A store to publish into."""

from tests.builder.conftest import world

__all__ = ["world"]
