"""Plain Parquet files are read as those are that pyarrow writes."""

import functools
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.intake import intake
from builder.parquet.plain import PlainWriter
from builder.parquet.writer import RowWriter
from functions.database import engine
from functions.snapshot.item_tables import Column

TYPES = ("VARCHAR", "VARCHAR[]", "BIGINT", "INTEGER", "BOOLEAN", "TIMESTAMP")
COLUMNS = tuple(Column(f"c{n}", type_, "", "") for n, type_ in enumerate(TYPES))

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
whole = {n: st.integers(-(1 << n - 1), (1 << n - 1) - 1) for n in (32, 64)}
zones = st.sampled_from([None, UTC, timezone(timedelta(hours=-9, minutes=-30))])
times = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=zones)
rows = st.tuples(
    *(
        st.none() | values
        for values in (
            texts,
            st.lists(st.none() | texts, max_size=5),
            whole[64],
            whole[32],
            st.booleans(),
            times,
        )
    )
)


def written(
    writer: type[PlainWriter] | type[RowWriter],
    path: Path,
    columns: Sequence[Column],
    some: Sequence[tuple[Any, ...]],
    batch: int,
) -> None:
    made = writer(path, columns, batch)
    for row in some:
        made.append(row)
    made.close()


def read(path: Path) -> list[tuple[Any, ...]]:
    sql = "SELECT * FROM read_parquet($file, file_row_number = true, hive_partitioning = false)"
    return connected().execute(sql, {"file": str(path)}).fetchall()


@functools.cache
def connected() -> engine.Connection:
    return engine.connect()


@settings(deadline=None)
@given(st.lists(rows, max_size=40), st.integers(1, 50))
def test_the_rows_are_those_that_pyarrow_writes(some: list[tuple[Any, ...]], batch: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plain, arrow = Path(folder, "plain.parquet"), Path(folder, "arrow.parquet")
        written(PlainWriter, plain, COLUMNS, some, batch)
        written(RowWriter, arrow, COLUMNS, some, batch)
        assert read(plain) == read(arrow)
        assert pq.read_table(plain).equals(pq.read_table(arrow))


@pytest.mark.parametrize("table", ["filesets", "sources"])
def test_the_columns_are_those_that_pyarrow_writes(table: str, tmp_path: Path) -> None:
    columns = intake.TABLES[table]
    written(PlainWriter, tmp_path / "plain", columns, [], 1)
    written(RowWriter, tmp_path / "arrow", columns, [], 1)
    assert pq.read_schema(tmp_path / "plain").equals(pq.read_schema(tmp_path / "arrow"))
    assert read(tmp_path / "plain") == []
    described = [
        connected()
        .execute(f"DESCRIBE FROM {engine.table('$file')}", {"file": str(tmp_path / name)})
        .fetchall()
        for name in ("plain", "arrow")
    ]
    assert described[0] == described[1]


def test_much_of_a_kind_takes_little(tmp_path: Path) -> None:
    column = COLUMNS[:1]
    written(PlainWriter, tmp_path / "a", column, [("a bee " * 100_000,)] * 20, 16)
    assert (tmp_path / "a").stat().st_size < 100_000
    assert [text for text, _ in read(tmp_path / "a")] == ["a bee " * 100_000] * 20


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    for name in "ab":
        written(PlainWriter, tmp_path / name, COLUMNS, [("a", ["b"], 1, 2, True, None)], 1)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        written(PlainWriter, tmp_path / "a", COLUMNS[:1], [("\ud800",)], 1)
