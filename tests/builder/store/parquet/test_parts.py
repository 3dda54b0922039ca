"""Row groups: footers of their own, texts of other files added, and long documents."""

import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builder.store.parquet import writer
from builder.store.parquet.reader import add_texts
from functions.snapshot import layout
from functions.snapshot.errors import StoreError
from functions.snapshot.manifest import DataFile, Manifest
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.conftest import resize
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


_PLACES = [(0, 0), (0, 2), (0, 7), (0, 8), (0, 9), (1, 3), (1, 4), (1, 5)]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_rows_get_their_texts_and_heads(tmp_path: Path, size: int) -> None:
    paths = [str(tmp_path / f"{number}.parquet") for number in range(2)]
    for path in paths:
        texts = pa.table({"text": [f"{{{path}{row}}}" for row in range(10)]})
        pq.write_table(texts, path, row_group_size=3)
    rows = [{"number": n, "row": row, "head": "<" if row == 7 else ""} for n, row in _PLACES]
    batches = [pa.RecordBatch.from_pylist(rows[at : at + size]) for at in range(0, 8, size)]
    added = [text for b in add_texts(batches, paths, "text") for text in b.to_pydict()["text"]]
    assert added == [f"{'<' if row == 7 else '{'}{paths[n]}{row}}}" for n, row in _PLACES]
    Path(paths[1]).write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=r"1\.parquet cannot be read"):
        list(add_texts(batches, paths, "text"))


_SIZES = [5, 300, 1, 1, 1, 900, 2, 2, 400, 500, 1]


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_row_groups_and_batches_end_before_documents_are_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    resize(monkeypatch, GROUP_ROWS=4)
    monkeypatch.setattr(writer, "GROUP_BYTES", 800)
    monkeypatch.setattr(writer, "_BATCH_BYTES", 800)
    path = tmp_path / "rows.parquet"
    columns = writer.parse_columns("kind VARCHAR, document VARCHAR")
    rows = writer.RowWriter(path, columns, batch)
    for size in _SIZES:
        rows.append(("a", "x" * size))
    rows.close()
    with pq.ParquetFile(path) as file:
        assert file.num_row_groups == {1: 11, 3: 4, 100: 3}[batch]
        batches = [file.read_row_group(at) for at in range(file.num_row_groups)]
        parts = (part for table in batches for part in table.to_batches())
        (written,) = writer.write_table(parts, "records", tmp_path, {"position": 1, "sequence": 1})
    assert [group.rows for group in written.groups] == [4, 1, 1, 3, 2]
    table = pq.read_table(written.path, columns=["document"])
    assert [len(text.as_py()) for text in table.column(0)] == _SIZES
