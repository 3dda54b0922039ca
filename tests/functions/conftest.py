import pytest

from tests.functions.oai.client import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()
