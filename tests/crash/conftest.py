"""The worlds and homes of the other packages."""

from tests.builder.conftest import world
from tests.e2e.conftest import home

__all__ = ["home", "world"]
