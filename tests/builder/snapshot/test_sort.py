"""Sorts of more rows than memory holds: the disk is used, in ranges, and nothing stays behind."""

from pathlib import Path

import pytest

from builder.snapshot import sort
from builder.snapshot.draft import Draft
from builder.store.folder import FolderStore
from builder.store.parquet.writer import batches
from functions.store import engine
from functions.store.catalog import Catalogue

ROWS, MEMORY = 900_000, 64
_UNION = """
SELECT range AS n, repeat('x', 80) || range AS t FROM range(10)
UNION ALL SELECT nullif(hash(range) % 1000, 7), repeat('y', 80) || range FROM range($rows)
"""


def sorted_rows(folder: Path, sql: str, order: str, size: int) -> tuple[list[tuple[object]], int]:
    """Return the sorted rows, and the number of queries that gave them."""
    connection = engine.connect(threads=1, memory_megabytes=MEMORY, scratch=folder)
    rows: list[tuple[object]] = []
    queries = 0
    for query, values in sort.sort(connection, folder, (sql, {"rows": ROWS}), order, size, True):
        queries += 1
        for batch in batches(engine.stream(connection, query, values)):
            rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return rows, queries


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("order", "size", "least"), [("n, t", 100 << 20, 1), ("n, t", 1 << 30, 3), ("ALL", 1 << 30, 3)]
)
def test_a_union_larger_than_memory_is_sorted(
    tmp_path: Path, order: str, size: int, least: int
) -> None:
    rows, queries = sorted_rows(tmp_path, _UNION, order, size)
    assert len(rows) == ROWS + 10
    assert rows == sorted(rows, key=lambda row: (row[0] is None, row))  # type: ignore[type-var]
    assert rows[-1][0] is None
    assert least <= queries <= 5
    assert not (tmp_path / "unsorted.parquet").exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("value", "count"), [("1", 2), ("NULL::INTEGER", 1)])
def test_rows_of_one_value_are_one_range_and_no_value_makes_none(
    tmp_path: Path, value: str, count: int
) -> None:
    sql = f"SELECT {value} AS n, range AS t FROM range($rows)"
    rows, queries = sorted_rows(tmp_path, sql, "n, t", 1 << 30)
    assert (len(rows), queries) == (ROWS, count)


def test_what_is_left_of_an_aborted_sort_is_removed(tmp_path: Path) -> None:
    connection = engine.connect(threads=1, memory_megabytes=MEMORY, scratch=tmp_path)
    rows = (_UNION, {"rows": 1000})
    queries = sort.sort(connection, tmp_path, rows, "n, t", 1 << 30, True)
    next(queries)
    assert (tmp_path / "unsorted.parquet").exists()
    queries.close()  # type: ignore[attr-defined]
    assert not (tmp_path / "unsorted.parquet").exists()


def test_wide_rows_are_sorted_on_disk(tmp_path: Path) -> None:
    connection = engine.connect(threads=1, memory_megabytes=MEMORY, scratch=tmp_path)
    path = str(tmp_path / "wide.parquet")
    rows = (
        "SELECT range AS identifier, repeat(md5(range::VARCHAR), 99) AS document FROM range(6000)"
    )
    connection.execute(f"COPY ({rows}) TO {engine.quote(path)} (ROW_GROUP_SIZE 2048)")
    store = FolderStore(tmp_path / "store")
    draft = Draft(store, connection, tmp_path, Catalogue(store), {})
    for sources, is_on_disk in (((), False), ((path,), True)):
        queries = draft.sort("records", (rows, {}), "identifier", 6000, True, sources)
        next(queries)
        assert (tmp_path / "unsorted.parquet").exists() == is_on_disk
        queries.close()  # type: ignore[attr-defined]
