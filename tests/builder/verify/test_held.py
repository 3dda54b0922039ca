"""An earlier snapshot is served from a copy made by hand (docs/operations/deploy.md).

No harvester misses a later change.
"""

import json
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from builder.store.folder import FolderStore
from functions.http.http_message import Call
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import instant, layout
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import World, capture

DOCUMENT = Path(__file__).parents[3] / "docs" / "operations" / "deploy.md"


class Asked:
    """What a harvester gets of a store."""

    def __init__(self, world: World, root: Path) -> None:
        self.repository = DuckRepository(FolderStore(root))
        settings = world.configuration(SHEAF_PAGES_IDENTIFIERS="2", SHEAF_SERVE_POINTER_SECONDS="0")
        self._application = Application(self.repository, settings, world.clock)

    def __call__(self, query: str) -> str:
        response = self._application.answer(Call("GET", "https://localhost", "/oai", query))
        assert response.status == 200
        return bytes(response.body).decode()  # type: ignore[arg-type]

    def harvest(self, since: str = "") -> tuple[set[str], str]:
        """Return the identifiers of a whole list, and the responseDate of its first page."""
        page = self(f"verb=ListIdentifiers&metadataPrefix=oai_dc{since and '&from='}{since}")
        first, found = page.partition("<responseDate>")[2].partition("<")[0], set(identifiers(page))
        while token := re.search(r"<resumptionToken[^>]*>([^<]+)", page):
            page = self(f"verb=ListIdentifiers&resumptionToken={token[1]}")
            found |= set(identifiers(page))
        return found, first

    def __enter__(self) -> "Asked":
        return self

    def __exit__(self, *_: object) -> None:
        self.repository.close()


def identifiers(page: str) -> list[str]:
    return re.findall("<identifier>([^<]+)", page)


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
    with Asked(world, world.root) as asked:
        page = asked("verb=ListIdentifiers&metadataPrefix=oai_dc")
    token = re.search(r"<resumptionToken[^>]*>([^<]+)", page)
    assert token is not None
    with Asked(world, held) as asked:
        found, when = asked.harvest()
        assert len(found) == 5
        assert when < instant.to_text(Catalogue(world.store).manifest(2).effective)
        world.clock.sleep(86_400)
        assert asked.harvest()[1] == when
        # A token of what is not served is refused.
        assert "badResumptionToken" in asked(f"verb=ListIdentifiers&resumptionToken={token[1]}")
    assert not [f for f in world.verify(FolderStore(held)).findings if f.code != "orphan"]


def test_none_misses_what_was_published_when_the_store_is_served_again(
    world_and_copy: tuple[World, Path],
) -> None:
    world, held = world_and_copy
    with Asked(world, held) as asked:
        _, when = asked.harvest()
    world.add([capture(6, title="As it should be")])
    world.clock.sleep(60)
    with Asked(world, world.root) as asked, Asked(world, held) as before:
        found, _ = asked.harvest(since=when)
        everything, _ = asked.harvest()
        assert len(everything) == 8
        assert found == everything - before.harvest()[0]
