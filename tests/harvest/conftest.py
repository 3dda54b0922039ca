"""The homes of the other packages."""

from ..whole.conftest import home

__all__ = ["home"]
