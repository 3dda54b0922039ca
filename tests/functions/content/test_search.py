"""The search: what is found of a store's captures by SURT and date, held against all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random

import pytest

from builder.intake.captures import Capture
from builder.publish.selection import Selection
from builder.publish.withdraw import withdraw
from functions.content import search
from functions.content.capture_row import CaptureRow
from functions.content.protocols import NEWEST, BytePlace
from functions.content.search import CaptureSearch
from functions.reading import repository
from functions.snapshot import layout, oai_name, schema
from functions.snapshot.manifest import Manifest, Span
from functions.store import engine, files
from tests.builder.conftest import World, capture

pytestmark = pytest.mark.shared(2)

_LONG = "x" * 600


def taken(surt: str, date: str | None, digest: str = "A", **changes: object) -> Capture:
    """Return a capture of a URL whose SURT is that, at a date (W3CDTF)."""
    url = f"http://example.org/{surt}"
    exact = date is not None and len(date) == 20
    return capture(
        0,
        identity=oai_name.capture_identity(url.encode(), date or "", 200, digest),
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


@dataclass
class Held:
    """A store with a history, its newest snapshot, what finds in it, and all that is listed."""

    world: World
    manifest: Manifest
    search: CaptureSearch
    listed: Sequence[CaptureRow]

    def expected(
        self, first: str, last: str, since: int = 0, until: int = NEWEST
    ) -> list[CaptureRow]:
        """Return what a search has to find, by a look at every capture."""
        return [c for c in self.listed if first <= c.surt < last and since <= place(c)[1] <= until]


def place(capture: CaptureRow) -> tuple[str, int, int]:
    return capture.surt[: schema.SURT_LONGEST], int(capture.stamp or "0"), capture.position


def held(world: World, manifest: Manifest) -> Held:
    duck = world.repository()
    selection = repository.RecordSelection(("capture",), Span(1, manifest.last_position))
    page = duck.page(manifest, selection, 1_000_000, headers=False)
    found = (
        CaptureRow.of(r.identifier, r.position, r.sets, r.fields) for r in page if not r.deleted
    )
    return Held(
        world, manifest, CaptureSearch(duck.catalogue, duck.files), sorted(found, key=place)
    )


def history(world: World, seed: int, count: int) -> Held:
    """Publish several times so many, with changes and withdrawals between."""
    random = Random(seed)
    surts = [f"org,{name}){path}" for name in "abc" for path in ("/", "/a", "/b?x=1", "/" + _LONG)]
    surts += [surts[3] + "y", surts[3] + "z", "org,a:8080)/", "dns:a.org"]
    dates = ["2007", "2007-11", "2007-11-05", None]
    dates += [f"2010-01-{day:02}T00:00:{second:02}Z" for day in (1, 2, 3) for second in range(10)]
    for turn in range(3):
        found = [
            taken(random.choice(surts), random.choice(dates), random.choice("ABC"), title=f"{turn}")
            for _ in range(count)
        ]
        world.ingest(list({one.identity: one for one in found}.values()))
        manifest = published(world)
        if turn == 1:
            chosen = random.sample(held(world, manifest).listed, 12)
            selection = Selection(identifiers=tuple(capture.identifier for capture in chosen))
            withdraw(world.store, world.configuration(), world.runtime(), selection, "asked")
    return held(world, manifest)


@pytest.fixture(scope="module", params=[4, 4096])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Held]:
    """A store of several publishes, with row groups of so many rows."""
    world = World(tmp_path_factory.mktemp("search") / "store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "GROUP_ROWS", request.param)
        # Small groups are many already; of a large one more is found than is read at once.
        yield history(world, request.param, count=60 if request.param == 4 else 100)
    world.close()


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


@pytest.mark.sampled(9)
@pytest.mark.parametrize("span", [(0, NEWEST), (20071101000000, 20100102000005), (1, 0)])
@pytest.mark.parametrize("within", RANGES)
def test_what_is_found_is_what_is_listed(
    store: Held, within: tuple[str, str], span: tuple[int, int]
) -> None:
    wanted = store.expected(*within, *span)
    assert store.search.captures(store.manifest, *within, None, 10_000, *span) == wanted
    assert store.search.captures(store.manifest, *within, None, 7, *span) == wanted[:7]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("groups", [0, 1, 1000])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_page_by_page_it_is_the_same(
    store: Held, monkeypatch: pytest.MonkeyPatch, limit: int, is_reverse: bool, groups: int
) -> None:
    """Also where a search may read next to nothing, and ends before it has found enough."""
    monkeypatch.setattr(search, "GROUPS", groups)
    # One by one it is as many searches as captures; those of the long SURTs are the hard ones.
    first, last = "org,b)/x" if limit == 1 else "org,b", "org,c"
    found: list[CaptureRow] = []
    place, pages = None, 0
    while True:
        page = store.search.page(
            store.manifest, first, last, place, limit, 20071101000000, reverse=is_reverse
        )
        assert len(page.captures) <= limit
        found += page.captures
        pages += 1
        if page.after is None:
            break
        assert place is None or (page.after < place if is_reverse else page.after > place)
        place = page.after
    wanted = store.expected(first, last, 20071101000000)
    assert len(wanted) > 3
    assert found == (wanted[::-1] if is_reverse else wanted)
    assert pages >= len(wanted) // limit


@pytest.mark.sampled(3)
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("limit", [1, 9])
def test_a_search_goes_on_behind_any_place(store: Held, limit: int, is_reverse: bool) -> None:
    if layout.GROUP_ROWS > 64:  # that a group is read on in
        limit *= 10
    everything = store.expected("", "\x7f")
    for number in range(0, len(everything), 29):
        surt, stamp, position = place(everything[number])
        for beside in (0, -1, 1):
            at = BytePlace(surt, stamp, position + beside)
            page = store.search.page(
                store.manifest, "", "\x7f", at, limit, reverse=is_reverse
            ).captures
            behind = [c for c in everything if (place(c) < at if is_reverse else place(c) > at)]
            assert list(page) == (behind[::-1] if is_reverse else behind)[:limit]


def test_a_place_of_an_older_snapshot_is_one_of_a_newer(tmp_path: Path) -> None:
    """What changed meanwhile behind it comes as it is then; nothing that stayed is lost."""
    world = World(tmp_path / "store")
    captures = [taken("org,a)/", f"2010-01-01T00:00:{n:02}Z") for n in range(30)]
    world.ingest(captures)
    before = held(world, published(world))
    page = before.search.page(before.manifest, "org,a)/", "org,a)0", None, 10)
    world.ingest([taken("org,a)/", f"2010-01-01T00:00:{n:02}Z", title="x") for n in range(5, 15)])
    after = held(world, published(world))
    rest = after.search.page(after.manifest, "org,a)/", "org,a)0", page.after, 100)
    assert rest.after is None
    assert [c.stamp[-2:] for c in rest.captures] == [f"{n:02}" for n in range(9, 30)]
    world.close()


def test_what_is_far_down_costs_no_more_than_what_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One URL with very many captures: its dates lead to the few row groups that have them."""
    monkeypatch.setattr(layout, "GROUP_ROWS", 8)
    world = World(tmp_path / "store")
    world.ingest([taken("org,a)/", f"2010-01-01T{n // 60:02}:{n % 60:02}:00Z") for n in range(800)])
    found = held(world, published(world))
    asked: list[object] = []
    read = files.Files.plain

    def plain(self: files.Files, table: str, *place: object) -> object:
        asked.extend([table] if table == "urls" else [])
        return read(self, table, *place)  # type: ignore[arg-type]

    monkeypatch.setattr(files.Files, "plain", plain)
    exact = ("org,a)/", "org,a)/ ")
    for since, until in ((0, NEWEST), (20100101120000, NEWEST), (0, 20100101120000)):
        asked.clear()
        assert len(found.search.captures(found.manifest, *exact, None, 3, since, until)) == 3
        assert len(asked) <= 2
        asked.clear()
        page = found.search.page(found.manifest, *exact, None, 3, since, until, reverse=True)
        assert len(page.captures) == 3
        assert len(asked) <= 2
    world.close()


def test_expressions_are_matched_in_the_order_of_texts(store: Held) -> None:
    texts = ["abc", "", "ab", "x\ny"]
    assert store.search.matching("b", texts, False) == [True, False, True, False]
    assert store.search.matching("ab?c?", texts, True) == [True, False, True, False]
    assert store.search.matching(".*", [], True) == []
    for bad in ("(", "(?=a)", "a{1001}", "\\1(a)"):
        with pytest.raises(engine.QueryError):
            store.search.matching(bad, texts, True)
