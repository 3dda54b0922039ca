"""The demo's depot: a dataset of a platform on this machine is fetched, verified and archived."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from builder.demo import dataset
from builder.demo.shelf import Shelf, serve
from builder.filesets import wiring
from builder.filesets.item import Outcome, Request
from builder.filesets.resources import means
from builder.filesets.run import Results
from builder.filesets.strategies.table import Materials
from builder.http.addresses import Guard, networks
from builder.http.fetch import AGENT
from builder.runtime import Clock
from builder.store.folder import FolderStore
from functions.config.configuration import Configuration

_LOOPBACK = networks(["127.0.0.0/8"])
_SECONDS = 60.0


def archived(store: FolderStore, settings: Configuration, clock: Clock, folder: Path) -> Outcome:
    """Ask for the dataset as `sheaf fileset` does, and put what comes of it into the intake.

    `folder` is for what need not last. Raises StoreError.
    """
    with platform() as base:
        outcome = fetched(store, settings, clock, folder, base)
    results = Results(store, folder, clock)
    results.add(outcome)
    results.commit()
    return outcome


@contextmanager
def platform() -> Iterator[str]:
    """Serve the dataset while the block runs; gives the platform's address."""
    shelf = Shelf({})
    with serve(shelf) as base:
        for path, (media, body) in dataset.answers(base).items():
            shelf.put(path, body, media)
        yield base


def fetched(
    store: FolderStore, settings: Configuration, clock: Clock, folder: Path, base: str
) -> Outcome:
    """Ask the platform at `base` for the dataset, and archive it."""
    stop = threading.Event()
    guard = Guard(frozenset({int(base.rpartition(":")[2])}), _LOOPBACK)
    agent = f"{AGENT}/{metadata.version('sheaf')} (demonstration)"
    materials = Materials(
        store=store,
        settings=settings,
        ways=means(settings, agent, guard, stop, folder, lambda: clock().timestamp()),
        environment={},
        clock=clock,
        scratch=folder,
    )
    request = Request(f"{base}{dataset.RECORD}")
    return wiring.ingest(materials, stop, _SECONDS).process(request)
