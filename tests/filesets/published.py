"""Stores into which outcomes are published, and what their views tell then."""

from dataclasses import replace
from typing import Any

from builder import views
from builder.filesets.item import Outcome
from builder.filesets.run import Results
from builder.revision import Built
from functions.oai import engine
from functions.store.catalog import Catalogue
from tests.builder.conftest import World


def ingest(world: World, *outcomes: Outcome) -> None:
    """Put outcomes into the intake; each is of a second of its own."""
    results = Results(world.store, world.root.parent / "scratch", world.clock)
    for one in outcomes:
        world.clock.sleep(1)
        results.add(replace(one, at=f"{world.clock():%Y%m%d%H%M%S}"))
    results.commit()


def publish(world: World, *outcomes: Outcome) -> Built:
    ingest(world, *outcomes)
    return world.publish()


def rows(world: World, sql: str) -> list[tuple[Any, ...]]:
    """Ask the views of the newest snapshot."""
    catalogue = Catalogue(world.store)
    entry = catalogue.pointer().newest()
    assert entry is not None
    connection = engine.connect(threads=1)
    text = views.stored(catalogue, catalogue.manifest(entry.snapshot))
    connection.execute(f"SET VARIABLE root = '{world.root}/'")
    connection.execute(text)
    return connection.execute(sql).fetchall()
