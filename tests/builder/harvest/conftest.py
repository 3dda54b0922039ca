"""The homes of the other packages, and harvests that do not wait."""

import pytest

from tests.e2e.conftest import home

__all__ = ["home"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask at once what is asked again."""
    monkeypatch.setenv("SHEAF_HTTP_BACKOFF_SECONDS", "0")
