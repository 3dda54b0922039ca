"""A large publish says at the start what disk it needs."""

import shutil
from dataclasses import replace
from typing import NamedTuple

import pytest

from builder.publish import publish
from tests.builder.conftest import World, capture


class Usage(NamedTuple):
    free: int


@pytest.mark.parametrize(
    ("free", "more"), [(5_000, ""), (500, "; set TMPDIR to a larger disk")], ids=["much", "little"]
)
def test_the_need_of_a_large_publish_is_announced(
    world: World, monkeypatch: pytest.MonkeyPatch, free: int, more: str
) -> None:
    monkeypatch.setattr(publish, "_LARGE", 3)
    monkeypatch.setattr(publish, "_SCRATCH_BYTES", 300 * 10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(free * 10**9))
    world.ingest([capture(1), capture(2)])
    said: list[str] = []
    runtime = replace(world.runtime(), say=said.append)
    publish.publish(world.store, world.configuration(), runtime)
    assert not [text for text in said if "may need" in text]
    world.ingest([capture(3), capture(4), capture(5)])
    publish.publish(world.store, world.configuration(), runtime)
    (text,) = (text for text in said if "may need" in text)
    assert text.startswith("3 captures may need 900 GB in ")
    assert f"where {free:,} GB are free".replace(",", "") in text
    assert text.endswith(f"GB in the store{more}")
