"""Table of strategies by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from builder.filesets.protocols import Downloader, FilesetError, FilesetIngestStrategy
from builder.filesets.resources import Ways
from builder.filesets.strategies.archiveorg import Items
from builder.filesets.strategies.archiveorg_client import ArchiveClient
from builder.filesets.strategies.bundled import Bundled
from builder.filesets.strategies.s3 import ObjectStrategy
from builder.filesets.strategies.web import Captured
from functions.config.configuration import Configuration
from functions.snapshot.store import Writer

GoOn = Callable[[], None]
"""Called now and then; raises FilesetError to end a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Materials:
    """Dependencies of strategies.

    `scratch` is a folder on this machine for temporary files. `environment` may have the keys for
    archive.org (IA_ACCESS_KEY, IA_SECRET_KEY).
    """

    store: Writer
    settings: Configuration
    ways: Ways
    environment: Mapping[str, str]
    clock: Callable[[], datetime]
    scratch: Path


def strategy(materials: Materials, name: str, until: float, go_on: GoOn) -> FilesetIngestStrategy:
    """Create a strategy by name; it downloads nothing after `until` (the clock of `ways`).

    Raises FilesetError (not-implemented) if this machine lacks what the strategy requires.
    """
    try:
        make = MAKERS[name]
    except KeyError:
        raise FilesetError("not-implemented", f"there is no strategy {name}") from None
    return make(materials, name, materials.ways.downloader(until), go_on)


def _objects(m: Materials, name: str, downloader: Downloader, go_on: GoOn) -> FilesetIngestStrategy:
    return ObjectStrategy(name, m.store, downloader, m.settings, go_on)


def _make_bundled(
    m: Materials, name: str, downloader: Downloader, go_on: GoOn
) -> FilesetIngestStrategy:
    return Bundled(m.store, downloader, m.settings, go_on)


def _make_captured(
    m: Materials, name: str, downloader: Downloader, go_on: GoOn
) -> FilesetIngestStrategy:
    def wall() -> float:
        return m.clock().timestamp()

    return Captured(name, m.store, downloader, m.settings, m.scratch, wall, go_on)


def _items(m: Materials, name: str, downloader: Downloader, go_on: GoOn) -> FilesetIngestStrategy:
    archive = ArchiveClient.of(m.environment, m.settings, m.ways.client.agent, go_on)
    return Items(name, m.store, downloader, m.settings, archive, m.scratch, go_on)


MAKERS: Mapping[str, Callable[[Materials, str, Downloader, GoOn], FilesetIngestStrategy]] = {
    "web-file": _make_captured,
    "web-fileset": _make_captured,
    "web-fileset-bundled": _make_captured,
    "archiveorg-file": _items,
    "archiveorg-fileset": _items,
    "archiveorg-fileset-bundled": _items,
    "s3-file": _objects,
    "s3-fileset": _objects,
    "s3-fileset-bundled": _make_bundled,
}
