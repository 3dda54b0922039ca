"""A home that lasts, and harvests that do not wait."""

import pytest

from tests.e2e.conftest import lasting_home

__all__ = ["lasting_home"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask at once what is asked again."""
    monkeypatch.setenv("SHEAF_HTTP_BACKOFF_SECONDS", "0")
