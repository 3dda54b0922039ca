"""The demo's dataset on a platform of this machine, asked for as `sheaf fileset` does it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.commands.demo import samples
from builder.http.addresses import PublicAddresses, networks
from builder.runtime import Clock
from builder.sources.datasets import wiring
from builder.sources.datasets.item import IngestOutcome, IngestRequest
from builder.sources.datasets.wiring import Materials, make_ways
from builder.store.folder import FolderStore
from functions.config.configuration import Configuration

STRATEGIES = {
    "web-fileset": '"web"',
    "s3-fileset": '"s3"',
    "s3-fileset-bundled": '{ backend = "s3", bundle = "always" }',
}


@contextmanager
def platform() -> Iterator[str]:
    """Serve the dataset while the block runs; give the platform's address."""
    with TemporaryDirectory() as folder, samples.serve_web(Path(folder)) as base:
        samples.write_web(Path(folder), base)
        yield base


def fetch(
    store: FolderStore, settings: Configuration, clock: Clock, folder: Path, base: str
) -> IngestOutcome:
    """Ask the platform at `base` for the dataset, and archive it."""
    stop = threading.Event()
    guard = PublicAddresses(frozenset({int(base.rpartition(":")[2])}), networks(["127.0.0.0/8"]))
    materials = Materials(
        store=store,
        settings=settings,
        ways=make_ways(settings, "Sheaf", guard, stop, lambda: clock().timestamp()),
        environment={},
        clock=clock,
        scratch=folder,
    )
    request = IngestRequest(f"{base}{samples.DATASET_RECORD}")
    return wiring.ingest(materials, stop, 60.0).process(request)
