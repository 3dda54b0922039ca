"""Texts of other files are added to rows, a row group at a time."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builder.store.parquet.reader import add_texts
from functions.snapshot.errors import StoreError

_TEXTS = [[f"{{{name}{n}}}" for n in range(10)] for name in "ab"]


def _write(folder: Path) -> list[str]:
    paths = [str(folder / f"{number}.parquet") for number in range(2)]
    for path, texts in zip(paths, _TEXTS, strict=True):
        pq.write_table(pa.table({"text": texts}), path, row_group_size=3)
    return paths


def _add(paths: list[str], rows: list[tuple[int, int, str]], size: int) -> list[tuple[str, ...]]:
    batches = (
        pa.record_batch(
            [list(column) for column in zip(*part, strict=True)],
            names=["number", "row", "head"],
        ).append_column("name", pa.array([f"{n},{row}" for n, row, _ in part]))
        for part in (rows[at : at + size] for at in range(0, len(rows), size))
    )
    added = list(add_texts(batches, paths, "text"))
    assert all(batch.schema.names == ["name", "text"] for batch in added)
    return [tuple(row.values()) for batch in added for row in batch.to_pylist()]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_rows_get_their_texts_and_heads(tmp_path: Path, size: int) -> None:
    paths = _write(tmp_path)
    places = [(0, 0), (0, 2), (0, 7), (0, 8), (0, 9), (1, 3), (1, 4), (1, 5)]
    rows = [(n, row, "<" if row == 7 else "") for n, row in places]
    expected = [
        (f"{n},{row}", "<" + _TEXTS[n][row][1:] if row == 7 else _TEXTS[n][row])
        for n, row in places
    ]
    assert _add(paths, rows, size) == expected


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    paths = _write(tmp_path)
    Path(paths[1]).write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=r"1\.parquet cannot be read"):
        _add(paths, [(0, 1, ""), (1, 1, "")], 9)
