"""The homes of the other packages."""

from tests.e2e.conftest import home

__all__ = ["home"]
