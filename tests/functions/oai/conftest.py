from collections.abc import Mapping
from datetime import timedelta

import pytest

from tests.functions.oai.client import START, Client, Clock
from tests.functions.reading.memory import Item, MemoryRepository, capture


@pytest.fixture
def repository() -> MemoryRepository:
    return ten_captures()


def holding(items: Mapping[str, Item | None]) -> MemoryRepository:
    """Return a repository in which these items were published an hour ago."""
    repository = MemoryRepository()
    repository.publish(items, START - timedelta(hours=1))
    return repository


def ten_captures() -> MemoryRepository:
    """Return ten captures of an hour ago; half an hour ago one was changed and one deleted."""
    repository = holding(
        {
            f"oai:example.org:{n:02}": capture(
                f"http://www.a{n}.cz/",
                "mime:text:html" if n % 2 else "mime:image:png",
                f"domain:cz:a{n}:www",
                title=f"Page {n}",
                content_mime_type="text/html" if n % 2 else "image/png",
            )
            for n in range(10)
        }
    )
    repository.publish(
        {
            "oai:example.org:03": capture("http://www.a3.cz/", "mime:text:html", title="New"),
            "oai:example.org:05": None,
        },
        START - timedelta(minutes=30),
    )
    return repository


@pytest.fixture
def client(repository: MemoryRepository, clock: Clock) -> Client:
    return Client(repository, clock)
