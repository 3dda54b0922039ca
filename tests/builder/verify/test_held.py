"""An earlier snapshot is served from a copy made by hand (docs/operations/deploy.md).

No harvester misses a later change.
"""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from builder.store.folder import FolderStore
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import instant, layout
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import NAMESPACE, World, capture
from tests.functions.oai.client import Client

DOCUMENT = Path(__file__).parents[3] / "docs" / "operations" / "deploy.md"


@contextmanager
def asking(world: World, root: Path) -> Iterator[Client]:
    """Give a harvester's client of a store that lists two identifiers a page."""
    settings = {"pages_identifiers": 2, "serve_pointer_seconds": 0.0}
    with closing(DuckRepository(FolderStore(root))) as repository:
        yield Client(repository, world.clock, repository_namespace=NAMESPACE, **settings)


def harvest(client: Client, **since: str) -> tuple[set[str], str]:
    """Return the identifiers of a whole list, and the responseDate of its first page."""
    pages = [*client.pages("ListIdentifiers", metadataPrefix="oai_dc", **since)]
    return {name for page in pages for name in page.identifiers}, pages[0].response_date


def fill(world: World) -> None:
    for numbers in (range(5), range(5, 8)):
        world.add([capture(number) for number in numbers])
        world.clock.sleep(3600)


@pytest.fixture
def world_and_copy(world: World, tmp_path: Path) -> tuple[World, Path]:
    """Give a store whose second snapshot is a mistake, and a copy that serves the first."""
    begin(world, "held", fill)
    held = tmp_path / "held"
    shutil.copytree(world.root / "records", held / "records")
    shutil.copytree(
        world.root / "snapshots", held / "snapshots", ignore=lambda folder, names: ["2"]
    )
    catalogue = Catalogue(world.store)
    good, bad = (catalogue.manifest(number).effective for number in (1, 2))
    held.joinpath(layout.POINTER).write_text(pointer(1, good, bad - timedelta(seconds=1)), "utf-8")
    return world, held


def pointer(snapshot: int, effective: datetime, copied: datetime) -> str:
    """Return the documentation's pointer with these values."""
    (written,) = re.findall(r"<<'END'\n(.*?)^END$", DOCUMENT.read_text("utf-8"), re.M | re.S)
    document = json.loads(written)
    document["snapshots"] = [{"snapshot": snapshot, "effective": instant.to_text(effective)}]
    document["copied"] = instant.to_text(copied)
    return json.dumps(document)


def test_it_answers_as_of_before_the_mistake(world_and_copy: tuple[World, Path]) -> None:
    world, held = world_and_copy
    with asking(world, world.root) as client:
        token = client.get("ListIdentifiers", metadataPrefix="oai_dc").next
    assert token
    with asking(world, held) as client:
        found, when = harvest(client)
        assert len(found) == 5
        assert when < instant.to_text(Catalogue(world.store).manifest(2).effective)
        world.clock.sleep(86_400)
        assert harvest(client)[1] == when
        # A token of what is not served is refused.
        page = client.get("ListIdentifiers", resumptionToken=token)
        assert page.codes == ["badResumptionToken"]
    assert not [f for f in world.verify(FolderStore(held)).findings if f.code != "orphan"]


def test_none_misses_what_was_published_when_the_store_is_served_again(
    world_and_copy: tuple[World, Path],
) -> None:
    world, held = world_and_copy
    with asking(world, held) as client:
        _, when = harvest(client)
    world.add([capture(6, title="As it should be")])
    world.clock.sleep(60)
    with asking(world, world.root) as client, asking(world, held) as before:
        found, _ = harvest(client, from_=when)
        everything, _ = harvest(client)
        assert len(everything) == 8
        assert found == everything - harvest(before)[0]
