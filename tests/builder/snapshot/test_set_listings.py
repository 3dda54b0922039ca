"""Listings over files cut very small, so that every boundary is met, against a plain model."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.snapshot import set_listings
from builder.snapshot.set_listings import SetIndex
from builder.snapshot.sql import Statements
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import RecordSelection, read_batches
from functions.snapshot import layout, oai_name
from functions.snapshot.manifest import Manifest, Span
from functions.store import engine
from tests.builder.conftest import NAMESPACE, World, capture, resize
from tests.extent import examples

_MANY = 100
"""Records of a page that holds all that there are."""
SPECS = ("mime:a:x", "mime:a:y", "mime:b:x", "domain:d:e", "domain:d", "topic:c", "rare:r")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    resize(monkeypatch, GROUP_ROWS=4, FILE_GROUPS=3, LEAF_FILES=2)
    monkeypatch.setattr(set_listings, "SET_BYTES", 1 << 40)  # a query for each file


@pytest.fixture(params=[0, 4], ids=["copied", "in-place"])
def spread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Copy every set that touches three row groups, or hardly any."""
    monkeypatch.setattr(set_listings, "SPREAD", request.param)
    return int(request.param)


@dataclass
class Model:
    """What the listing should be: item number -> (sequence of its version, title, sets).

    `been` are the sets that it ever was in, with all above them, and `alive` for each sequence the
    sets with a live record.
    """

    items: dict[int, tuple[int, str, frozenset[str]]] = field(default_factory=dict)
    been: dict[int, set[str]] = field(default_factory=dict)
    alive: dict[int, set[str]] = field(default_factory=dict)

    def apply(self, sequence: int, batch: dict[int, tuple[str, frozenset[str]]]) -> bool:
        changed = False
        for number, (title, sets) in batch.items():
            _, old_title, old_sets = self.items.get(number, (0, None, frozenset()))
            united = frozenset(oai_name.most_specific_sets({*sets, *_kept(old_sets, sets)}))
            if (title, united) != (old_title, old_sets):
                self.items[number] = (sequence, title, united)
                self.been.setdefault(number, set()).update(*map(oai_name.set_lineage, united))
                changed = True
        if changed:
            every = (sets for _, _, sets in self.items.values())
            self.alive[sequence] = {
                a for sets in every for s in sets for a in oai_name.set_lineage(s)
            }
        return changed

    def members(self, spec: str | None, first: int, last: int) -> set[int]:
        """Return what is listed: also what has left the set."""
        return {
            number
            for number, (sequence, _, _) in self.items.items()
            if first <= sequence <= last and (spec is None or spec in self.been[number])
        }

    def lives(self, spec: str | None, number: int) -> bool:
        sets = self.items[number][2]
        return spec is None or any(spec in oai_name.set_lineage(s) for s in sets)


def _kept(old: frozenset[str], new: frozenset[str]) -> Iterator[str]:
    """Yield the sets that survive when the same record is read again."""
    roots = {s.partition(":")[0] for s in new}
    for spec in old:
        if spec.startswith("collection:") or spec.partition(":")[0] not in roots:
            yield spec


batches = st.lists(
    st.dictionaries(
        st.integers(0, 60),
        st.tuples(st.sampled_from(["t", "u"]), st.frozensets(st.sampled_from(SPECS), max_size=4)),
        min_size=1,
        max_size=50,
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.sampled(2)
@settings(
    max_examples=examples(5),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(batches, st.integers(1, 9))
def test_listings_are_what_the_model_says(
    spread: int, history: list[dict[int, tuple[str, frozenset[str]]]], limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world, model = World(Path(folder) / "store"), Model()
        sequence = 0
        for batch in history:
            captures = [
                capture(n, title=title, sets=oai_name.most_specific_sets(sets))
                for n, (title, sets) in batch.items()
            ]
            built = world.add(captures)
            fresh = model.apply(sequence + 1, batch)
            assert (built.new + built.changed > 0) == fresh
            sequence += fresh
        # What it was in between is what a shorter history ends with.
        repository = world.repository()
        newest = repository.pointer().newest()
        assert newest is not None
        _check(repository, newest.snapshot, model, limit)
        world.close()


def _check(repository: DuckRepository, snapshot: int, model: Model, limit: int) -> None:
    manifest = repository.manifest(snapshot)
    count = len(manifest.sequences)
    specs = {a for s in SPECS for a in oai_name.set_lineage(s)}
    rows = {row.spec: row for row in _all_sets(repository, manifest, limit)}
    known = {spec: row.records for spec, row in rows.items()}
    assert manifest.sets == len(known)
    assert manifest.emptied == sum(row.live == 0 for row in rows.values())
    for sequence in range(1, count + 1):
        live, empty = (
            {r.spec for r in _all_sets(repository, manifest, limit, sequence, live=live)}
            for live in (True, False)
        )
        before = {spec for n in range(1, sequence) for spec in model.alive[n]}
        assert live == model.alive[sequence]
        assert empty == before - live
    for spec in (None, *sorted(specs)):
        everything = model.members(spec, 1, count)
        if spec is not None:
            assert known.get(spec, 0) == len(everything)
            if spec in rows:
                assert rows[spec].live == sum(model.lives(spec, n) for n in everything)
                stamps = {manifest.sequences[model.items[n][0] - 1].effective for n in everything}
                assert (rows[spec].first, rows[spec].last) == (min(stamps), max(stamps))
            assert repository.has_set(manifest, spec) == bool(everything)
        for first in range(1, count + 1):
            span = Span(manifest.sequences[first - 1].first, manifest.last_position)
            selection = RecordSelection(("capture",), span, spec)
            expected = model.members(spec, first, count)
            assert repository.size(manifest, selection) == len(expected)
            # The whole list is read by pages of any size, at most some seven of them, and what
            # lies behind a place at once.
            size = max(limit, len(expected) // 6) if first == 1 else _MANY
            records = [*chain.from_iterable(read_batches(repository, manifest, selection, size))]
            assert [r.position for r in records] == sorted({r.position for r in records})
            numbers = {f"oai:{NAMESPACE}:{capture(n).identity}": n for n in expected}
            assert {numbers[r.identifier] for r in records} == expected
            assert len(records) == len(expected)
            for record in records:
                number = numbers[record.identifier]
                version, title, sets = model.items[number]
                assert record.datestamp == manifest.sequences[version - 1].effective
                assert record.deleted != model.lives(spec, number)
                if not record.deleted:
                    assert int(record.fields["url"].rpartition("/")[2]) == number
                    assert record.fields["title"] == title
                    assert set(record.sets) == sets
                    continue
                assert record.fields == {}
                gone = {s for s in model.been[number] if not model.lives(s, number)}
                below = {s for s in gone if oai_name.is_within_set(s, str(spec))}
                assert record.sets == oai_name.most_specific_sets(below)
    assert repository.page(manifest, selection_of("template", manifest), 5, headers=True) == ()
    selection = selection_of("capture", manifest)
    for record in chain.from_iterable(read_batches(repository, manifest, selection, 50)):
        assert repository.record(manifest, record.identifier) == record


def selection_of(kind: str, manifest: Manifest) -> RecordSelection:
    return RecordSelection((kind,), Span(1, manifest.last_position))


def _all_sets(repository, manifest, limit, *sequence, live=True):  # type: ignore[no-untyped-def]
    after = ""
    while rows := repository.sets(manifest, after, limit, *sequence, live=live):
        yield from rows
        after = rows[-1].spec


def test_a_scattered_set_is_copied_and_a_dense_one_is_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "GROUP_ROWS", 32)
    manifest = world.add(
        [
            capture(n, url_surtkey=f"cz,a)/{n:04}", sets=("m:rare",) if n % 60 == 7 else ("m:all",))
            for n in range(1200)
        ]
    ).manifest
    assert manifest is not None
    assert manifest.rows("copies") == 20  # m:rare's own records; m:all and m are read in place
    repository = world.repository()
    selection = RecordSelection(("capture",), Span(1, 1200), "m:rare")
    records = repository.page(manifest, selection, 100, headers=True)
    assert [r.position for r in records] == list(range(8, 1200, 60))
    assert all(not r.fields for r in records)


def test_a_file_of_sets_may_have_a_large_number() -> None:
    """A billion captures have more files of sets than 32 bits can number in steps of a million."""
    connection = engine.connect()
    connection.execute("CREATE TABLE set_totals AS SELECT 's' || n AS listing FROM range(9) t(n)")
    connection.execute("CREATE TABLE set_files AS SELECT 3000::INTEGER AS home, '' AS first")
    sql = Statements(set_listings.__file__).get("set_parts")
    parts = connection.execute(sql, {"most": 4.0}).fetchall()
    assert parts == [(3_000_000_000, "s0"), (3_000_000_001, "s3"), (3_000_000_002, "s6")]
    assert {SetIndex.home(part) for part, _ in parts} == {3000}
