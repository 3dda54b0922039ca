"""Small tables as JSON lines: DuckDB reads the rows that were written."""

import errno
import functools
import gzip
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.intake import intake
from builder.intake.lines import LineWriter, line_table
from builder.store.folder import FolderStore
from functions.snapshot.errors import DamagedStore, OlderSchemaError
from functions.snapshot.item_tables import Column
from functions.store import engine

TYPES = ("VARCHAR", "VARCHAR[]", "BIGINT", "INTEGER", "BOOLEAN", "TIMESTAMP")
COLUMNS = tuple(Column(f"c{n}", type_, "", "") for n, type_ in enumerate(TYPES))

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
whole = {n: st.integers(-(1 << n - 1), (1 << n - 1) - 1) for n in (32, 64)}
zones = st.sampled_from([None, UTC, timezone(timedelta(hours=-9, minutes=-30))])
times = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=zones)
kinds = (texts, st.lists(st.none() | texts, max_size=5), whole[64], whole[32], st.booleans(), times)
rows = st.tuples(*(st.none() | values for values in kinds))


def write(path: Path, columns: Sequence[Column], some: Sequence[tuple[Any, ...]]) -> None:
    writer = LineWriter(path, columns)
    for row in some:
        writer.append(row)
    writer.close()


def read(*paths: Path, columns: Sequence[Column] = COLUMNS) -> list[tuple[Any, ...]]:
    files = [str(path) for path in paths]
    sql = f"SELECT * EXCLUDE (part) FROM {line_table(files, columns)} ORDER BY part, line"
    return connected().execute(sql, {"files": files}).fetchall()


@functools.cache
def connected() -> engine.Connection:
    return engine.connect()


def naive(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


@settings(deadline=None)
@given(st.lists(rows, max_size=40))
def test_the_rows_are_read_as_they_were_written(some: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows")
        write(path, COLUMNS, some)
        assert read(path) == [(*map(naive, row), at) for at, row in enumerate(some)]


@pytest.mark.parametrize("table", ["filesets", "sources"])
def test_the_columns_have_the_declared_types(table: str, tmp_path: Path) -> None:
    columns, path = intake.TABLES[table], tmp_path / "rows"
    write(path, columns, [])
    described = connected().execute(
        f"DESCRIBE SELECT * EXCLUDE (part, line) FROM {line_table([str(path)], columns)}",
        {"files": [str(path)]},
    )
    assert [(row[0], row[1]) for row in described.fetchall()] == [
        (column.name, column.type) for column in columns
    ]
    assert read(path, columns=columns) == []


def test_a_long_line_is_read(tmp_path: Path) -> None:
    column = Column("text", "VARCHAR", "", "")
    write(tmp_path / "a", [column], [("x" * (40 << 20),), ("y",)])
    write(tmp_path / "b", [column], [("z",)])
    found = read(tmp_path / "a", tmp_path / "b", columns=[column])
    assert [(len(text), line) for text, line in found] == [(40 << 20, 0), (1, 1), (1, 0)]


def test_a_full_disk_loses_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, column = tmp_path / "rows", Column("text", "VARCHAR", "", "")
    writer = LineWriter(path, [column])
    real = writer._file

    class Full:
        def write(self, data: bytes) -> int:
            if real.tell():
                raise OSError(errno.ENOSPC, "No space left on device")
            return real.write(data[:7])

    monkeypatch.setattr(writer, "_file", Full())
    writer.append(("first",))
    with pytest.raises(OSError, match="No space"):
        writer.close()
    monkeypatch.setattr(writer, "_file", real)
    writer.close()
    assert read(path, columns=[column]) == [("first", 0)]


def test_lone_surrogates_are_refused(tmp_path: Path) -> None:
    writer = LineWriter(tmp_path / "rows", [Column("text", "VARCHAR", "", "")])
    with pytest.raises(UnicodeEncodeError):
        writer.append(("\ud800",))


@pytest.mark.parametrize("data", [b"{", gzip.compress(b"{}" * 500)[:-9]], ids=["plain", "gzip"])
def test_a_damaged_file_is_named(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(data)
    with pytest.raises(DamagedStore, match=r"the intake is damaged: .*/rows: "):
        line_table([str(path)], COLUMNS)


def test_a_run_of_an_earlier_version_is_named(tmp_path: Path) -> None:
    store, run = FolderStore(tmp_path), intake.IntakeRun("20261122T100000Z-0a", ())
    store.create(f"intake/{run.name}/filesets-0.parquet", b"PAR1")
    with pytest.raises(OlderSchemaError, match=r"a Sheaf before 0\.2\.0 wrote this run: remove it"):
        intake.files(store, [run], intake.keys_of(store, [run]), "filesets")
