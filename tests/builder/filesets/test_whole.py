"""The whole way: a platform is asked, its files are archived by each strategy, published and read.

What is published says where the bytes lie: they are read from there by that alone.
"""

import hashlib
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builder.demo import samples
from builder.verify import verify
from functions.config import configuration
from tests.builder.conftest import World
from tests.builder.filesets.platform import fetch, platform
from tests.builder.filesets.published import publish, rows

STRATEGIES = {
    "web-fileset": '"web"',
    "s3-fileset": '"s3"',
    "s3-fileset-bundled": '{ backend = "s3", bundle = "always" }',
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    world.clock.now = datetime(2026, 11, 22, 10, tzinfo=UTC)
    yield world
    world.close()


def body(data: bytes, place: int | None, size: int, compression: str | None) -> bytes:
    """Return a file out of the object that has it."""
    if place is None:
        return data
    if compression == "stored":
        return data[place : place + size]
    assert compression == "warc"
    record = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data[place:])
    return record.split(b"\r\n\r\n", 2)[2][:size]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy_is_published_and_the_same_again_changes_nothing(
    world: World, tmp_path: Path, strategy: str
) -> None:
    text = f"http.host_seconds = 0\nfileset.strategy = {STRATEGIES[strategy]}\n"
    settings = configuration.parse(text, {})
    with platform() as base:
        first = fetch(world.store, settings, world.clock, tmp_path / "own", base)
        assert (first.status, first.detail) == ("success", "")
        assert publish(world, first).new == 1
        again = fetch(world.store, settings, world.clock, tmp_path / "own", base)
        built = publish(world, again)
    assert (again.status, built.changed, built.unchanged) == ("success-existing", 0, 1)
    assert rows(world, "SELECT ingest_strategy FROM ingest_fileset_platform") == [(strategy,)]
    files = samples.FILES / "web" / "api" / "records" / "hives-2024" / "files"
    bodies = {path.parent.name: path.read_bytes() for path in files.rglob("content")}
    found = rows(world, "SELECT path, key, place, bytes, compression, sha256 FROM files")
    assert {path for path, *_ in found} == {*bodies}
    for path, key, place, size, compression, sha256 in found:
        assert body(world.store.read(key), place, size, compression) == bodies[path]
        assert hashlib.sha256(bodies[path]).hexdigest() == sha256
    means = verify.VerifyRuntime(world.clock, lambda total: nullcontext(lambda n: None), 256, 1)
    world.clock.sleep(1)
    done = verify.verify(world.store, means)
    assert (done.findings, done.datasets) == ((), 1)
