"""Sheaf's own ways to platforms, led to the fake server: all between is as it is in earnest.

with serving() as server:
    there = world(server, tmp_path)
    there.api().document("https://zenodo.org/api/records/1")
    there.downloader().download(file, 10**9, there.sink)
"""

import io
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builder.http.limits import Limits
from builder.sources.datasets import wiring
from builder.sources.datasets.download.api import PlatformApi
from builder.sources.datasets.download.download import FileDownloader
from builder.sources.datasets.item import FilesetManifestFile
from builder.sources.datasets.wiring import Materials, Ways
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.config.gathering import STRATEGY
from functions.snapshot.store import Writer
from tests.bucket import fresh
from tests.builder.http import certificates
from tests.builder.sources.datasets.body import Body, digest
from tests.builder.sources.datasets.names import Names
from tests.builder.sources.datasets.server import Server

AGENT = "Sheaf/test (+mailto:a@example.org)"
QUICK = Limits(connect=10, first_byte=10, rate=1)
"""For tests of a loaded machine; tests of what is slow have limits of their own."""
PLAIN = {"http.host_seconds": 0, "http.backoff_seconds": 0, "http.host_concurrent": 16}


@dataclass
class World:
    """A server, the ways to it, and what was kept and thrown away in sinks."""

    server: Server
    names: Names
    ways: Ways
    settings: configuration.Configuration
    stop: threading.Event
    scratch: Path
    kept: list[bytes] = field(default_factory=list)
    thrown: list[bytes] = field(default_factory=list)

    def api(self, seconds: float = 60) -> PlatformApi:
        return self.ways.api(time.monotonic() + seconds)

    def downloader(self, seconds: float = 60) -> FileDownloader:
        return self.ways.downloader(time.monotonic() + seconds)

    @contextmanager
    def sink(self) -> Iterator[io.BytesIO]:
        """Keep the bytes in memory if the block ends."""
        sink = io.BytesIO()
        try:
            yield sink
        except BaseException:
            self.thrown.append(sink.getvalue())
            raise
        self.kept.append(sink.getvalue())

    def materials(self, store: Writer, **more: Any) -> Materials:
        """Return what strategies and an ingest are made of, over a store."""
        given: dict[str, Any] = {
            "settings": self.settings,
            "environment": {},
            "clock": lambda: datetime.fromtimestamp(self.ways.client.wall(), UTC),
            "scratch": self.scratch,
        }
        return Materials(store=store, ways=self.ways, **(given | more))

    def strategy(
        self,
        name: str,
        store: Writer,
        go_on: Callable[[], None] = lambda: None,
        environment: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> Any:
        """Return a strategy over a store, with settings of `fileset_settings`."""
        given = fileset_settings(**settings)
        materials = self.materials(store, settings=given, environment=environment or {})
        return wiring.make_strategy(materials, name, self.ways.client.clock() + 60, go_on)

    def paced(self, limits: Limits) -> "World":
        return replace(self, ways=replace(self.ways, limits=limits))


def world(
    server: Server,
    folder: Path,
    *,
    wall: Callable[[], float] = time.time,
    clock: Callable[[], float] = time.monotonic,
    elsewhere: Mapping[str, str] | None = None,
    limits: Limits = QUICK,
    **settings: Any,
) -> World:
    """Return the ways that a configuration allows, which is quick; `__` of a key stands for `.`."""
    given = PLAIN | {name.replace("__", "."): value for name, value in settings.items()}
    found = settings_of(given)
    names = Names(server, dict(elsewhere or {}))
    stop = threading.Event()
    ways = wiring.make_ways(
        found, AGENT, names, stop, wall, clock=clock, tls=certificates.trusted()
    )
    return World(server, names, replace(ways, limits=limits), found, stop, folder)


@contextmanager
def open_store(request: pytest.FixtureRequest, folder: Path, place: str) -> Iterator[Writer]:
    """Give an empty store in a folder, or in a bucket of a server of the tests."""
    if place == "folder":
        yield FolderStore(folder / "store")
        return
    endpoint = request.getfixturevalue(f"{place}_server")
    with closing(fresh(endpoint, part=5 << 20)) as bucket:
        yield bucket


def settings_of(given: Mapping[str, Any]) -> configuration.Configuration:
    """Return a configuration with other values, as if they stood in sheaf.toml."""
    settings = configuration.parse("", {})
    for key, value in given.items():
        settings = settings.having(key, value)
    return settings


def fileset_settings(**given: Any) -> configuration.Configuration:
    """Return a configuration with keys of fileset, and fields of its strategy and its limits.

    `max_files`, `max_bytes` and `max_file_bytes` are its limits, `tries` and `host_concurrent`
    are keys of http.
    """
    keys: dict[str, Any] = {}
    for name, value in given.items():
        if name in STRATEGY.fields:
            keys.setdefault("fileset.strategy", {})[name] = value
        elif name.startswith("max_"):
            keys.setdefault("fileset.limits", {})[name.removeprefix("max_")] = value
        else:
            room = "http" if name in ("tries", "host_concurrent") else "fileset"
            keys[f"{room}.{name}"] = value
    return settings_of(keys)


def manifest_file(
    url: str, body: Body | None = None, path: str = "a.bin", digests: str = "md5", **more: Any
) -> FilesetManifestFile:
    """Return a file of a manifest that tells of a body its size and the `digests` named."""
    told: dict[str, Any] = {"platform_url": url, "path": path}
    if body is not None:
        told["size"] = len(body)
        told |= {name: digest(name, body) for name in digests.split()}
    return FilesetManifestFile(**(told | more))
