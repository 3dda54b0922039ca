"""Row groups with footers of their own: what a request cuts out of a data file is a file itself."""

import zlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from functions.snapshot import layout
from functions.snapshot.manifest import DataFile, Manifest
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.publish.test_scale import generated, made, small

__all__ = ["small"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "GROUP_ROWS", 256)
        patch.setattr(layout, "FILE_GROUPS", 8)
        one = generated(tmp_path_factory.mktemp("store"))
        return one, made(one, 2, 512)


def files(store: Any, table: str) -> list[tuple[DataFile, Path]]:
    catalogue = Catalogue(store[0])
    return [(f, store[0].local(f.key)) for f in catalogue.files(store[1], table)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("table", ["sets", "records", "originals", "revisits", "faults"])
def test_a_row_group_that_is_cut_out_is_a_parquet_file(
    store: Any, table: str, tmp_path: Path
) -> None:
    connection = engine.connect()
    many = 0
    for file, path in files(store, table):
        whole = pq.ParquetFile(path)
        assert sum(file.groups[-1].byte_range) <= file.bytes
        for number, group in enumerate(file.groups):
            assert group.tail > 0
            offset, size = group.byte_range
            with path.open("rb") as source:
                source.seek(offset)
                assert zlib.crc32(source.read(size)) == group.check
            cut = tmp_path / f"{number}.parquet"
            with path.open("rb") as source, cut.open("wb") as target:
                source.seek(offset)
                target.seek(offset)
                target.write(source.read(size))
            rows = pq.read_table(cut)
            assert rows.num_rows == group.rows
            assert rows.equals(whole.read_row_group(number))
            sql = f"SELECT count(*) FROM {engine.table('$file')}"
            assert connection.execute(sql, {"file": str(cut)}).fetchall() == [(group.rows,)]
            cut.unlink()
        many += len(file.groups) > 1
    assert many or table not in ("records", "originals")


def test_they_take_little(store: Any) -> None:
    """Of row groups as small as here much; of those of 4,096 rows a sixteenth of that."""
    found = [group for file, _ in files(store, "records") for group in file.groups[:-1]]
    assert max(group.tail for group in found) < 4500


@pytest.mark.parametrize(("table", "column"), [("words", "word"), ("copies", "url_host_name")])
def test_texts_that_hardly_repeat_but_are_sorted_have_no_dictionary(
    store: Any, table: str, column: str
) -> None:
    for _, path in files(store, table):
        group = pq.ParquetFile(path).metadata.row_group(0)
        chunks = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
        assert "DELTA_BYTE_ARRAY" in chunks[column].encodings


def manifest_of(store: Any) -> Manifest:
    return Catalogue(store[0]).manifest(store[1].snapshot)


def test_a_manifest_holds_the_leaves_that_requests_need(store: Any) -> None:
    manifest = manifest_of(store)
    named = {r.key for table in layout.SERVED for r in manifest.tables.get(table, ())}
    assert manifest.leaves.keys() == named
    alone = Catalogue(store[0])
    for some in manifest.tables.values():
        for reference in some:
            if reference.key in manifest.leaves:
                assert alone.leaf(reference) == manifest.leaves[reference.key]


def test_a_manifest_holds_no_more_than_it_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "INLINED", 1000)
    one = generated(tmp_path)
    manifest = manifest_of((one, made(one, 1, 512)))
    assert sum(len(leaf.to_json()) for leaf in manifest.leaves.values()) <= 1000
    assert manifest.leaves.keys() < {
        r.key for table in layout.SERVED for r in manifest.tables.get(table, ())
    }
