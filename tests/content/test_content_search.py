"""The search: what is found of a store's captures by SURT and date, held against all of them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from random import Random

import pytest

from builder.selection import Selection
from builder.sources import event
from builder.withdraw import withdraw
from functions.content.capture import Capture
from functions.content.seam import NEWEST
from functions.content.search import Search
from functions.oai import repository
from functions.oai.duck import DuckRepository
from functions.snapshot import identifier, layout, schema
from functions.snapshot.manifest import Manifest, Span
from tests.builder.conftest import World, capture

_LONG = "x" * 600


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    yield world
    world.close()


def taken(surt: str, date: str | None, digest: str = "A", **changes: object) -> event.Capture:
    """Return a capture of a URL whose SURT is that, at a date (W3CDTF)."""
    url = f"http://example.org/{surt}"
    exact = date is not None and len(date) == 20
    return capture(
        0,
        identity=identifier.capture_identity(url.encode(), date or "", 200, digest),
        url=url,
        url_surtkey=surt,
        fetch_date=date,
        fetch_time=datetime.fromisoformat(date or "").replace(tzinfo=None) if exact else None,
        content_digest=digest,
        **changes,
    )


def published(world: World) -> Manifest:
    manifest = world.publish().manifest
    assert manifest is not None
    return manifest


def searching(world: World) -> Search:
    repository = world.repository()
    return Search(repository.catalogue, repository.files)


def listed(world: World, manifest: Manifest) -> list[repository.Record]:
    records: DuckRepository = world.repository()
    selection = repository.Selection(("capture",), Span(1, manifest.last_position))
    page = records.page(manifest, selection, 1_000_000, headers=False)
    return [record for record in page if not record.deleted]


def expected(
    world: World, manifest: Manifest, first: str, last: str, since: int = 0, until: int = NEWEST
) -> list[Capture]:
    """Return what a search has to find, by a look at every record that is listed."""
    captures = [
        Capture.of(r.identifier, r.position, r.sets, r.fields) for r in listed(world, manifest)
    ]
    return sorted(
        (c for c in captures if first <= c.surt < last and since <= number(c) <= until), key=place
    )


def number(capture: Capture) -> int:
    return int(capture.stamp or "0")


def place(capture: Capture) -> tuple[str, int, int]:
    return capture.surt[: schema.SURT_LONGEST], number(capture), capture.position


def stores(world: World, seed: int) -> Manifest:
    """Publish several times, with changes, revisits of other URLs and withdrawals between."""
    random = Random(seed)
    surts = [f"org,{name}){path}" for name in "abc" for path in ("/", "/a", "/b?x=1", "/" + _LONG)]
    surts += [surts[3] + "y", surts[3] + "z", "org,a:8080)/", "dns:a.org"]
    dates = ["2007", "2007-11", "2007-11-05", None]
    dates += [f"2010-01-{day:02}T00:00:{second:02}Z" for day in (1, 2, 3) for second in range(10)]
    manifest = None
    for turn in range(5):
        found = [
            taken(random.choice(surts), random.choice(dates), random.choice("ABC"))
            for _ in range(120)
        ]
        unlike = [event_with(one, title=f"turn {turn}") for one in found]
        world.ingest(list({one.identity: one for one in unlike}.values()))
        manifest = published(world)
        if turn in (1, 3):
            chosen = random.sample(listed(world, manifest), 20)
            selection = Selection(identifiers=tuple(record.identifier for record in chosen))
            withdraw(world.store, world.configuration(), world.outside(), selection, "asked")
    newest = world.repository().pointer().newest()
    assert newest is not None
    assert manifest is not None
    return world.repository().manifest(newest.snapshot)


def event_with(one: event.Capture, **changes: object) -> event.Capture:
    values = {name: getattr(one, name) for name in event.Capture.__slots__} | changes
    return event.Capture(**values)  # type: ignore[arg-type]


RANGES: Sequence[tuple[str, str]] = (
    ("org,a)/", "org,a)/ "),
    ("org,a)/", "org,a)0"),
    ("org,a)", "org,a-"),
    ("", "\x7f"),
    ("org,b)/a", "org,b)/a\0"),
    ("org,b)/" + _LONG, "org,b)/" + _LONG + " "),
    ("org,a)/" + _LONG, "org,a)/" + _LONG + "z"),
    ("zz", "zzz"),
)


@pytest.mark.parametrize("groups", [4, layout.GROUP_ROWS])
def test_what_is_found_is_what_is_listed(
    world: World, monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    monkeypatch.setattr(layout, "GROUP_ROWS", groups)
    manifest = stores(world, seed=groups)
    found = searching(world)
    for first, last in RANGES:
        for since, until in ((0, NEWEST), (20071101000000, 20100102000005), (1, 0)):
            wanted = expected(world, manifest, first, last, since, until)
            got = found.captures(manifest, first, last, None, 10_000, since, until)
            assert got == wanted, (first, last, since, until)
            few = found.captures(manifest, first, last, None, 7, since, until)
            assert few == wanted[:7]
