"""Texts of other files are added to rows, a row group at a time."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builder.store.parquet.reader import add_texts
from functions.snapshot.errors import StoreError

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
