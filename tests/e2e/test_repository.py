"""One suite over every implementation of the repository's seam: in memory, and DuckDB."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from builder.intake.captures import Capture
from functions.reading import figures as figures_of_pages
from functions.reading import repository as reading
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import (
    KindFigures,
    PublishedRecord,
    RecordSelection,
    Repository,
    read_batches,
)
from functions.snapshot import oai_name, schema
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Manifest, Span
from tests.builder.conftest import NAMESPACE, Clock, World, capture
from tests.functions.reading.memory import Item, MemoryRepository


def hosted(number: int, **changes: object) -> Capture:
    host = f"h{number % 3}.cz"
    values: dict[str, object] = {
        "url_host_name": f"www.{host}",
        "url_host_registered_domain": host,
        "content_mime_type": f"a/{number}",
        "content_length": number,
    }
    return capture(number, **{**values, **changes})


FIRST = [hosted(n) for n in range(40)]
SECOND = [hosted(3, title="Corrected"), *(capture(n) for n in range(40, 50))]


@dataclass
class Published:
    """A repository in which FIRST, then SECOND was published."""

    repository: Repository
    numbers: tuple[int, int]

    @property
    def now(self) -> Manifest:
        return self.repository.manifest(self.numbers[1])

    def selection(
        self, spec: str | None = None, first: int = 1, kind: str = "capture"
    ) -> RecordSelection:
        return RecordSelection((kind,), Span(first, self.now.last_position), spec)

    def walk(
        self, selection: RecordSelection, limit: int, *, headers: bool = False
    ) -> Iterator[PublishedRecord]:
        for page in read_batches(self.repository, self.now, selection, limit, headers=headers):
            assert len(page) <= limit
            yield from page


def name(one: Capture) -> str:
    return oai_name.to_oai(NAMESPACE, one.identity)


def in_memory() -> Published:
    repository = MemoryRepository(NAMESPACE)
    clock = Clock()
    numbers = []
    for batch in (FIRST, SECOND):
        clock.sleep(100)
        items = {
            name(c): Item(
                c.sets, "capture", {col.name: getattr(c, col.name, None) for col in schema.CAPTURE}
            )
            for c in batch
        }
        numbers.append(repository.publish(items, clock.now))
    return Published(repository, (numbers[0], numbers[1]))


@pytest.fixture(scope="module", params=["memory", "duckdb"])
def published(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Published]:
    """Return what all tests read and none changes."""
    if request.param == "memory":
        yield in_memory()
        return
    world = World(tmp_path_factory.mktemp("published") / "store")
    numbers = []
    for batch in (FIRST, SECOND):
        manifest = world.add(batch).manifest
        assert manifest is not None
        numbers.append(manifest.snapshot)
    yield Published(world.repository(), (numbers[0], numbers[1]))
    world.close()


def test_the_pointer_names_the_snapshots(published: Published) -> None:
    newest = published.repository.pointer().newest()
    assert newest is not None
    assert newest.snapshot == published.numbers[1]
    assert newest.effective == published.now.effective
    with pytest.raises(MissingObject):
        published.repository.manifest(99)


def test_the_manifest_counts_what_is_listed(published: Published) -> None:
    assert [dict(s.records) for s in published.now.sequences] == [{"capture": 39}, {"capture": 11}]
    assert published.now.kinds() == {"capture": 50}
    before = published.repository.manifest(published.numbers[0])
    assert before.kinds() == {"capture": 40}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("limit", [1, 7, 50, 1000])
@pytest.mark.parametrize("spec", [None, "mime:text:html", "mime", "domain:cz:example:h3"])
def test_pages_give_each_record_once_by_position(
    published: Published, spec: str | None, limit: int
) -> None:
    selection = published.selection(spec)
    records = list(published.walk(selection, limit))
    expected = [
        c
        for c in (*FIRST, *SECOND[1:])
        if spec is None or any(s == spec or s.startswith(spec + ":") for s in c.sets)
    ]
    assert {r.identifier for r in records} == set(map(name, expected))
    assert len(records) == len(expected) == published.repository.size(published.now, selection)
    assert [r.position for r in records] == sorted(r.position for r in records)


def test_records_hold_what_was_published(published: Published) -> None:
    by_name = {r.identifier: r for r in published.walk(published.selection(), 9)}
    changed = by_name[name(FIRST[3])]
    assert changed.fields["title"] == "Corrected"
    assert changed.datestamp == published.now.effective
    other = by_name[name(FIRST[4])]
    assert other.datestamp == published.now.sequences[0].effective
    assert other.fields["url"] == FIRST[4].url
    assert other.sets == tuple(sorted(FIRST[4].sets))
    assert (other.kind, other.deleted) == ("capture", False)
    headers = list(published.walk(published.selection(), 9, headers=True))
    assert [(h.identifier, h.sets) for h in headers] == [
        (r.identifier, r.sets) for r in by_name.values()
    ]
    assert not any(h.fields for h in headers)


def test_an_older_snapshot_stays_what_it_was(published: Published) -> None:
    before = published.repository.manifest(published.numbers[0])
    selection = RecordSelection(("capture",), Span(1, before.last_position))
    records = published.repository.page(before, selection, 100, headers=False)
    assert len(records) == 40
    assert "Corrected" not in {r.fields["title"] for r in records}


def test_a_span_of_whole_publishes_has_an_exact_size(published: Published) -> None:
    second = published.now.sequences[1]
    selection = published.selection(first=second.first)
    assert published.repository.size(published.now, selection) == 11
    assert {r.identifier for r in published.walk(selection, 4)} == set(map(name, SECOND))


def test_a_single_record_is_found_by_its_identifier(published: Published) -> None:
    for one in (FIRST[0], FIRST[3], SECOND[-1]):
        record = published.repository.record(published.now, name(one))
        assert record is not None
        assert record.identifier == name(one)
        assert record.fields["url"] == one.url
    changed = published.repository.record(published.now, name(FIRST[3]))
    assert changed is not None
    assert changed.fields["title"] == "Corrected"
    assert published.repository.record(published.now, "oai:other.org:x") is None
    before = published.repository.manifest(published.numbers[0])
    assert published.repository.record(before, name(SECOND[-1])) is None


def test_sets_are_listed_in_their_order(published: Published) -> None:
    everything = published.repository.sets(published.now, "", 1000)
    paged, after = [], ""
    while rows := published.repository.sets(published.now, after, 3):
        paged += rows
        after = rows[-1].spec
    assert tuple(paged) == everything
    assert [r.spec for r in everything] == sorted(r.spec for r in everything)
    assert len(everything) == published.now.sets
    counts = {r.spec: r.records for r in everything}
    assert counts["mime"] == counts["domain"] == 50
    for spec, count in counts.items():
        assert published.repository.has_set(published.now, spec)
        assert published.repository.size(published.now, published.selection(spec)) == count


def test_what_is_not_there_is_empty(published: Published) -> None:
    for nothing in (published.selection("no:such"), published.selection(kind="template")):
        assert published.repository.size(published.now, nothing) == 0
        assert published.repository.page(published.now, nothing, 5, headers=False) == ()
    assert not published.repository.has_set(published.now, "no:such")
    assert not published.repository.has_set(published.now, "mim")
    beyond = published.selection(first=published.now.last_position + 1)
    assert published.repository.page(published.now, beyond, 5, headers=True) == ()


def test_the_figures_of_a_snapshot(published: Published) -> None:
    figures = published.repository.figures(published.now)
    assert figures is not None
    size = sum(range(40))
    assert (figures.captures, figures.bytes) == (50, size)
    assert figures.months == (reading.ValueFigures("2007-11", 50, size),)
    assert [(h.value, h.captures) for h in figures.hosts] == [
        ("www.h0.cz", 14),
        ("www.h1.cz", 13),
        ("www.h2.cz", 13),
    ]
    assert [d.value for d in figures.domains] == ["h0.cz", "h1.cz", "h2.cz"]
    assert figures.different == {"hosts": 3, "domains": 3, "media_types": 41}
    assert figures.media_types[0] == reading.MediaTypeFigures("", {200: (10, 0)})
    assert figures.media_types[0].captures == 10
    assert figures.kinds == {"capture": (50, 0)}
    assert figures.publishes == published.repository.publishes(published.now, None, 9)[::-1]
    before = published.repository.figures(published.repository.manifest(published.numbers[0]))
    assert before is not None
    assert (before.captures, before.kinds) == (40, {"capture": (40, 0)})


def test_the_other_media_types_are_one(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures_of_pages, "SHOWN", 2)
    before = published.repository.manifest(published.numbers[0])
    repository = published.repository
    if isinstance(repository, DuckRepository):  # without cached figures
        repository = DuckRepository(repository.catalogue.reader)
    figures = repository.figures(before)
    assert figures is not None
    assert [t.media_type for t in figures.media_types] == ["a/0", "a/1", None]
    assert figures.media_types[-1].statuses == {200: (38, sum(range(2, 40)))}
    assert len(figures.hosts) == 2


def test_publishes_are_listed_from_the_newest(published: Published) -> None:
    old, new = published.now.sequences
    publishes = published.repository.publishes
    newest = reading.PublishFigures(2, new.effective, (KindFigures("capture", 10, 1, 0, 0, 50, 0),))
    oldest = reading.PublishFigures(1, old.effective, (KindFigures("capture", 40, 0, 0, 0, 40, 0),))
    assert publishes(published.now, None, 5) == (newest, oldest)
    assert publishes(published.now, None, 1) == (newest,)
    assert publishes(published.now, 2, 5) == (oldest,)
    assert publishes(published.now, 1, 5) == ()
    assert publishes(published.repository.manifest(published.numbers[0]), 9, 5) == (oldest,)
