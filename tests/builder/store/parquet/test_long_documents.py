"""Long documents: neither a batch of rows nor a row group has more than fit in memory."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from builder.store.parquet import writer
from tests.builder.conftest import resize

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
