"""The table of single versions: what look-ups read, and what they do where it has nothing."""

import hashlib
from dataclasses import replace

import pytest

from builder.snapshot.draft import Draft
from builder.snapshot.tables import SnapshotTables
from functions.reading.repository import PublishedRecord
from functions.snapshot import layout, schema
from functions.store.checked_files import CheckedFiles
from functions.store.files import Files
from tests.builder.conftest import World, capture

pytestmark = pytest.mark.shared(2)
NAMES = ("position", *schema.SINGLE)
RENEW = Draft.renew


def versions(world: World, *without: str) -> dict[int, dict[str, object]]:
    """Return all versions by position, read without the rows of these tables."""
    manifest, repository = world.newest(), world.repository()
    tables = {**manifest.tables, **dict.fromkeys(without, ())}
    places = range(1, manifest.last_position + 1)
    read = repository.singles.find(replace(manifest, tables=tables), places, NAMES)
    return {place: dict(fields) for place, fields in read.items()}


def record(world: World, number: int) -> PublishedRecord | None:
    name = f"oai:archive.example.org:{capture(number).identity}"
    return world.repository().record(world.newest(), name)


def read_by(world: World, monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Return the keys of files that DuckDB reads for a record."""
    with monkeypatch.context() as patch:
        keys, rows = [], Files.rows
        patch.setattr(Files, "rows", lambda *a, **v: keys.append(a[2].key) or rows(*a, **v))
        assert record(world, number) is not None
    return keys


def test_texts_have_the_columns_of_those_that_stores_have() -> None:
    """In another order, a text would be read as other values; more or fewer are not read."""
    digest = hashlib.sha256(",".join(schema.SINGLE).encode()).hexdigest()
    assert digest.startswith("f335c1884a64ae4f")


def test_each_version_is_as_in_the_records(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "SINGLE_GROUP_ROWS", 8)
    world.ingest([capture(n, title=None if n % 3 else f"ž {n}\n") for n in range(40)])
    world.add([capture(50, fetch_date="2007", fetch_time=None, url_bytes=b"http://a/\xff")])
    world.add([capture(n, title="anew") for n in range(0, 40, 5)])
    whole = versions(world, layout.SINGLES)
    assert versions(world, "records") == whole
    assert len(whole) == world.newest().last_position == 49
    world.withdraw(f"oai:archive.example.org:{capture(5).identity}")
    assert versions(world, "records") == versions(world, layout.SINGLES)
    assert not [v for v in versions(world, "records").values() if v["url"] == capture(5).url]
    assert not read_by(world, monkeypatch, 6)
    assert world.verify().findings == ()


def test_a_long_text_is_read_from_the_records(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "http://a.cz/" + "x" * layout.SINGLE_BYTES
    world.add([capture(1), capture(2, url=long)])
    assert len(versions(world, "records")) == 1
    assert [version["url"] for version in versions(world).values()] == [capture(1).url, long]
    (key,) = read_by(world, monkeypatch, 2)
    assert key.startswith("records/records/")
    assert world.verify().findings == ()


def test_a_store_of_an_earlier_version_is_read_and_then_completed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(layout, "PLAIN", frozenset())
        earlier.setattr(Draft, "renew", lambda *a: a[1] == layout.SINGLES or RENEW(*a))
        for turn in range(2):
            world.add([capture(n, title=f"{turn}") for n in range(40 - 30 * turn)])
    expected = [record(world, n) for n in range(40)]
    assert None not in expected
    assert not versions(world, "records")
    assert len(read_by(world, monkeypatch, 3)) > 1
    world.add([capture(90)])
    assert [record(world, n) for n in range(40)] == expected
    assert versions(world, "records") == versions(world, layout.SINGLES)
    assert not read_by(world, monkeypatch, 3)
    assert world.verify().findings == ()


def test_a_purge_that_makes_the_table_leaves_no_text_of_its_items(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(Draft, "renew", lambda *a: a[1] == layout.SINGLES or RENEW(*a))
        world.add([capture(n) for n in range(40)])
    world.withdraw(f"oai:archive.example.org:{capture(5).identity}", purge=True)
    assert versions(world, "records") == versions(world, layout.SINGLES)
    assert world.verify().findings == ()


def test_distant_versions_of_a_file_cost_one_request(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "SINGLE_GROUP_ROWS", 8)
    world.add([capture(n) for n in range(40)])
    cuts, cut = [], CheckedFiles.cut
    with monkeypatch.context() as patch:
        patch.setattr(CheckedFiles, "cut", lambda *a: cuts.append(len(a[2])) or cut(*a))
        read = world.repository().singles.find(world.newest(), [1, 2, 20, 39], NAMES)
    assert [*read] == [1, 2, 20, 39]
    assert cuts == [3]


def test_runs_of_long_texts_alone_are_read_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, write = [], SnapshotTables._write_singles
    monkeypatch.setattr(
        SnapshotTables, "_write_singles", lambda *a: runs.append(a[1].span.first) or write(*a)
    )
    for numbers in (range(40), range(50, 51)):
        long = "http://a.cz/" + "x" * layout.SINGLE_BYTES
        world.add([capture(n, url=f"{long}{n}") for n in numbers])
    assert runs == [1, 41]
