"""Stores into which outcomes are published, and what their views tell then."""

from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from builder.snapshot import views
from builder.snapshot.transaction import ChangeResult
from builder.sources.datasets.item import IngestOutcome
from builder.sources.datasets.results import Results
from functions.snapshot.pointer import PointerEntry
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import World


def ingest(world: World, *outcomes: IngestOutcome) -> None:
    """Put outcomes into the intake; each is of a second of its own."""
    results = Results(world.store, world.root.parent / "scratch", world.clock)
    for one in outcomes:
        world.clock.sleep(1)
        results.add(replace(one, at=f"{world.clock():%Y%m%d%H%M%S}"))
    results.commit()


def publish(world: World, *outcomes: IngestOutcome, **settings: str) -> ChangeResult:
    ingest(world, *outcomes)
    return world.publish(**settings)


def begun(world: World, *outcomes: IngestOutcome) -> None:
    """Publish outcomes into a store that has nothing yet; equal ones are published once."""

    def fill(empty: World) -> None:
        publish(empty, *outcomes)

    begin(world, repr(outcomes), fill)


def rows(world: World, sql: str) -> list[tuple[Any, ...]]:
    """Ask the views of the newest snapshot."""
    entry = Catalogue(world.store).pointer().newest()
    return _viewing(world.root, entry).execute(sql).fetchall()


@lru_cache(maxsize=1)
def _viewing(root: Path, entry: PointerEntry) -> engine.Connection:
    """Return what has the views of this snapshot, of which tests ask several questions."""
    catalogue = Catalogue(World(root).store)
    connection = _connection()
    connection.execute(f"SET VARIABLE root = '{root}/'")
    connection.execute(views.store_views(catalogue, catalogue.manifest(entry.snapshot)))
    return connection


@cache
def _connection() -> engine.Connection:
    return engine.connect(threads=1)
