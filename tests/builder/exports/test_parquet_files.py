"""`sheaf export parquet`: all live rows in order, in large row groups, with a description."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.exports.parquet import parquet_files
from functions.store import engine
from tests.builder.conftest import World, capture
from tests.e2e.conftest import Result, sheaf

_ROWS = 2048  # the smallest row group of DuckDB


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Give a store of two publishes, in which a part of the captures changed."""
    world = World(tmp_path_factory.mktemp("filled") / "store")
    world.add([capture(n) for n in range(5_000)])
    world.add([capture(n, title="žluť") for n in range(0, 5_000, 3)])
    yield world
    world.close()


def export(world: World, folder: Path, *more: str) -> Result:
    return sheaf("export", "parquet", folder, "--store", world.root, *more)


def rows(sql: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return connection.execute(sql).fetchall()


def test_captures_come_whole_in_order_and_described(
    filled: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "GROUP_ROWS", _ROWS)
    monkeypatch.setattr(parquet_files, "FILE_ROWS", 2 * _ROWS)
    done = export(filled, tmp_path / "out")
    assert done.code == 0, done.err
    names = [f"captures-{number:05}.parquet" for number in range(2)]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [*names, "croissant.json"]
    files = f"read_parquet({[str(tmp_path / 'out' / name) for name in names]})"
    found = rows(f"SELECT url_surtkey, identifier, title FROM {files}")
    assert [row[0] for row in found] == sorted(row[0] for row in found)
    assert len({row[1] for row in found}) == len(found) == 5_000
    assert len([row for row in found if row[2] == "žluť"]) == 1_667
    groups = rows(
        "SELECT DISTINCT file_name, row_group_id, row_group_num_rows FROM "
        f"parquet_metadata({[str(tmp_path / 'out' / name) for name in names]}) ORDER BY ALL"
    )
    assert [row[2] for row in groups] == [_ROWS, _ROWS, 5_000 - 2 * _ROWS]
    described = json.loads((tmp_path / "out" / "croissant.json").read_text("utf-8"))
    told = [one for one in described["distribution"] if one["@type"] == "cr:FileObject"]
    for name, one in zip(names, told, strict=True):
        data = (tmp_path / "out" / name).read_bytes()
        assert (one["contentUrl"], one["contentSize"]) == (name, f"{len(data)} B")
        assert one["sha256"] == hashlib.sha256(data).hexdigest()
    (table,) = described["recordSet"]
    columns = rows(f"DESCRIBE SELECT * FROM {files}")
    assert [f["source"]["extract"]["column"] for f in table["field"]] == [c[0] for c in columns]
    types = {field["name"]: (field["dataType"], field.get("repeated")) for field in table["field"]}
    assert types["fetch_status"] == ("sc:Integer", None)
    assert types["fetch_time"] == ("sc:DateTime", None)
    assert types["sets"] == ("sc:Text", True)
    assert all(f.get("description") for f in table["field"] if f["name"].startswith("url_"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("view", parquet_files.VIEWS)
def test_every_view_can_be_exported(filled: World, tmp_path: Path, view: str) -> None:
    done = export(filled, tmp_path / "out", "--view", view)
    assert done.code == 0, done.err
    (path,) = (tmp_path / "out").glob("*.parquet")
    ((count,),) = rows(f"SELECT count(*) FROM '{path}'")
    told = sheaf("query", "--store", filled.root, "--json", f"SELECT count(*) AS n FROM {view}")
    assert told.json["n"] == count
