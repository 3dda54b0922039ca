"""The table of URLs: what a publish writes, what a withdrawal takes out, and how it begins."""

import pytest

from functions.content.search import CaptureSearch
from functions.snapshot import layout, schema, surt
from tests.builder.conftest import World, capture

pytestmark = pytest.mark.shared(2)


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
    world.add([capture(90, url_surtkey="cz,a)/" + "x" * 5000)])
    found = {surt: stamp for surt, stamp, _ in rows(world)}
    long = ("cz,a)/" + "x" * 5000)[: schema.SURT_LONGEST]  # of a long URL the beginning is there
    assert found.pop(long) == 20071105000000
    assert found == {capture(n).url_surtkey: stamp for n, stamp in enumerate(stamps.values())}
    assert len(everything(world)) == len(stamps) + 1


def test_what_is_withdrawn_leaves_no_row(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do versions of it that no file of records has any more."""
    monkeypatch.setattr(layout, "GROUP_ROWS", 4)
    world.add([capture(n) for n in range(24)])
    for turn in range(2):
        # So much is superseded that the records are written anew, and the table is not.
        world.add([capture(n, title=f"{turn}") for n in range(12)])
    held = {p for _, _, p in rows(world)}
    assert held > set(everything(world))  # what was superseded is not found
    assert len(everything(world)) == 24
    identifier = f"oai:archive.example.org:{capture(3).identity}"
    world.withdraw(identifier)
    found = rows(world)
    assert "cz,example,h3)/000003" not in {surt for surt, _, _ in found}
    assert len(found) < len(held)
    assert len(everything(world)) == 23
    assert damage(world) == set()
    world.reinstate(identifier)  # what comes back is found again
    assert len(everything(world)) == 24
    assert damage(world) == set()
    # Another capture of that URL and second stays.
    world.add([capture(3, identity="q" * 24, fetch_status=404)])
    world.withdraw(identifier)
    assert [row[0] for row in rows(world)].count(capture(3).url_surtkey) == 1
    assert len(everything(world)) == 24


@pytest.mark.thorough
def test_what_was_found_by_its_url_before_its_method_was_known_leaves_no_row(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "GROUP_ROWS", 4)
    url = capture(3).url
    world.add([capture(n, url_surtkey=surt.of(capture(n).url.encode())) for n in range(24)])
    for turn in range(2):
        key = surt.of_request(url.encode(), "POST", "a=1")
        asked = {"fetch_method": "POST", "fetch_body": "a=1", "url_surtkey": key}
        more = [capture(n, title=f"{turn}", **asked if n == 3 else {}) for n in range(12)]
        world.add(more)
    world.withdraw(f"oai:archive.example.org:{capture(3).identity}")
    assert not {one for one, _, _ in rows(world) if one.startswith("cz,example,h3)/3")}
    assert damage(world) == set()
