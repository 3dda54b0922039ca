"""The table of URLs: what a publish writes, what a withdrawal takes out, and how it begins."""

import pytest

from functions.content.search import CaptureSearch
from functions.snapshot import layout, schema
from functions.snapshot.manifest import Manifest
from functions.url import surt
from tests.builder.conftest import World, capture

pytestmark = pytest.mark.shared(2)


def published(world: World) -> Manifest:
    manifest = world.publish().manifest
    assert manifest is not None
    return manifest


def rows(world: World) -> list[tuple[str, int, int]]:
    """Return what all files of the table hold, of versions that were superseded too."""
    manifest, repository = world.newest(), (world.opened[0] if world.opened else world.repository())
    found = []
    for file in repository.catalogue.files(manifest, "urls"):
        found += repository.files.rows(
            "SELECT surt, stamp, position FROM read_parquet($file)", file
        )
    return found


def everything(world: World) -> list[int]:
    """Return the positions of all that is found."""
    repository = world.opened[0] if world.opened else world.repository()
    search = CaptureSearch(repository.catalogue, repository.files)
    return [c.position for c in search.captures(world.newest(), "", "\x7f", None, 100_000)]


def damage(world: World) -> set[str]:
    return {finding.code for finding in world.verify().findings}


def test_a_date_is_fourteen_digits(world: World) -> None:
    stamps = {
        "2007-11-05T10:20:30Z": 20071105102030,
        "2007-11-05T10:20:30.123456Z": 20071105102030,
        "2007-11-05T10:20Z": 20071105102000,
        "2007-11-05": 20071105000000,
        "2007-11": 20071101000000,
        "2007": 20070101000000,
        None: 0,
    }
    world.ingest([capture(n, fetch_date=date, fetch_time=None) for n, date in enumerate(stamps)])
    published(world)
    found = {surt: stamp for surt, stamp, _ in rows(world)}
    assert found == {capture(n).url_surtkey: stamp for n, stamp in enumerate(stamps.values())}


def test_of_a_long_url_the_beginning_is_there(world: World) -> None:
    world.ingest([capture(1, url_surtkey="cz,a)/" + "x" * 5000)])
    published(world)
    ((surt, _, _),) = rows(world)
    assert surt == ("cz,a)/" + "x" * 5000)[: schema.SURT_LONGEST]
    assert everything(world) == [1]


def test_a_version_that_was_superseded_is_not_found(world: World) -> None:
    world.ingest([capture(n) for n in range(4)])
    published(world)
    world.ingest([capture(n, title="anew") for n in (1, 2)])
    published(world)
    assert sorted(everything(world)) == [1, 4, 5, 6]
    assert damage(world) == set()


def test_what_is_withdrawn_leaves_no_row(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do versions of it that no file of records has any more."""
    monkeypatch.setattr(layout, "GROUP_ROWS", 4)
    world.ingest([capture(n) for n in range(24)])
    published(world)
    for turn in range(2):
        # So much is superseded that the records are written anew, and the table is not.
        world.ingest([capture(n, title=f"{turn}") for n in range(12)])
        published(world)
    held = {p for _, _, p in rows(world)}
    assert held > set(everything(world))
    identifier = f"oai:archive.example.org:{capture(3).identity}"
    world.withdraw(identifier)
    found = rows(world)
    assert "cz,example,h3)/000003" not in {surt for surt, _, _ in found}
    assert len(found) < len(held)
    assert len(everything(world)) == 23
    assert damage(world) == set()


@pytest.mark.thorough
def test_what_was_found_by_its_url_before_its_method_was_known_leaves_no_row(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "GROUP_ROWS", 4)
    url = capture(3).url
    world.ingest([capture(n, url_surtkey=surt.of(capture(n).url.encode())) for n in range(24)])
    published(world)
    for turn in range(2):
        key = surt.of_request(url.encode(), "POST", "a=1")
        asked = {"fetch_method": "POST", "fetch_body": "a=1", "url_surtkey": key}
        more = [capture(n, title=f"{turn}", **asked if n == 3 else {}) for n in range(12)]
        world.ingest(more)
        published(world)
    world.withdraw(f"oai:archive.example.org:{capture(3).identity}")
    assert not {one for one, _, _ in rows(world) if one.startswith("cz,example,h3)/3")}
    assert damage(world) == set()


def test_what_comes_back_is_found_again(world: World) -> None:
    world.ingest([capture(n) for n in range(4)])
    published(world)
    identifier = f"oai:archive.example.org:{capture(3).identity}"
    world.withdraw(identifier)
    assert len(everything(world)) == 3
    world.reinstate(identifier)
    assert len(everything(world)) == len(rows(world)) == 4
    assert damage(world) == set()


def test_another_capture_of_that_url_and_second_stays(world: World) -> None:
    other = "q" * 24
    world.ingest([capture(3), capture(3, identity=other, fetch_status=404)])
    published(world)
    world.withdraw(f"oai:archive.example.org:{capture(3).identity}")
    (row,) = rows(world)
    assert [row[2]] == everything(world)
