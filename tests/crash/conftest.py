"""The worlds and homes of the other packages."""

from ..builder.conftest import world
from ..whole.conftest import home

__all__ = ["home", "world"]
