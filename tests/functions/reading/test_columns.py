"""Columns as texts, pages of them, and what is kept of them."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from functions.reading import record_rows as page
from functions.reading.record_rows import Page
from functions.reading.repository import PublishedRecord
from functions.snapshot import schema
from functions.store import columns, engine
from functions.store.catalog import Cache

NAMES = ("position", "url", "sets", "title", "fetch_time", "url_bytes", "fetch_status", "deleted")
ROWS: list[tuple[Any, ...]] = [
    (1, "http://a.cz/", ["a:b", "c"], None, datetime(2007, 11, 5, 12), b"\xff\x00", 200, False),
    (2, "", [], "", None, None, None, True),
    (2**62, "http://ž.cz/ \n", None, "ž", datetime(1, 1, 1, 0, 0, 0, 5), b"", -1, False),
]
STAMP = datetime(2026, 3, 1, tzinfo=UTC)


def table(rows: list[tuple[Any, ...]]) -> tuple[engine.Connection, str]:
    """Return a connection, and what to read from in it."""
    types = {column.name: column.type for column in schema.TABLES["records"]}
    connection = engine.connect()
    connection.execute(f"CREATE TABLE t ({', '.join(f'{n} {types[n]}' for n in NAMES)})")
    for row in rows:
        connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(NAMES))})", list(row))
    return connection, "t"


def texts(connection: engine.Connection, source: str) -> list[str | None]:
    (row,) = connection.execute(f"SELECT {columns.join_columns(NAMES)} FROM {source}").fetchall()
    return list(row)


@pytest.mark.parametrize("count", range(4))
def test_columns_are_what_duckdb_gives_one_by_one(count: int) -> None:
    connection, source = table(ROWS[:count])
    found = columns.split_columns(NAMES, texts(connection, source))
    assert found is not None
    rows = connection.execute(f"SELECT * FROM {source}").fetchall()
    assert found[0] == {name: [row[i] for row in rows] for i, name in enumerate(NAMES)}
    connection.close()


@pytest.mark.parametrize("title", ["a\x1fb", "\x1f"])
def test_a_value_with_what_ends_values_is_noticed(title: str) -> None:
    connection, source = table([(*ROWS[0][:3], title, *ROWS[0][4:]), *ROWS[1:]])
    assert columns.split_columns(NAMES, texts(connection, source)) is None
    (row,) = connection.execute(f"SELECT {columns.plain(NAMES)} FROM {source}").fetchall()
    assert row[NAMES.index("title")] == [title, "", "ž"]
    connection.close()


def test_what_is_kept_stays_within_its_limit() -> None:
    kept: Cache[str] = Cache(100)
    for number in range(10):
        kept.add(number, str(number), 30)
    assert [kept.find(number) for number in range(10)] == [None] * 7 + ["7", "8", "9"]
    kept.find(7)
    kept.add(10, "10", 30)
    assert kept.find(8) is None
    assert kept.find(7) == "7"
    kept.add(7, "seven", 90)
    assert (kept.find(7), kept.find(9), kept.find(10)) == ("seven", None, None)
    kept.add(11, "too large", 101)
    assert kept.find(11) is None


def made(kinds: str) -> tuple[Page, tuple[PublishedRecord, ...]]:
    """Return records of kinds, each a letter (a capital: deleted), by columns and one by one."""
    records = tuple(
        PublishedRecord(
            n, f"oai:a:{n}", k.lower(), STAMP, k.isupper(), ("a:b",), {"url": f"http://{n}/"}
        )
        for n, k in enumerate(kinds, 1)
    )
    header = {name: [getattr(record, name) for record in records] for name in page.HEADER}
    one = Page({**header, "url": [record.fields["url"] for record in records]})
    return one, tuple(replace(r, fields={}) if r.deleted else r for r in records)


def test_a_page_is_a_sequence_of_records() -> None:
    found, records = made("aAbba")
    assert tuple(found) == records
    assert (len(found), found[0], found[-1]) == (5, records[0], records[-1])
    assert tuple(found[1:4]) == records[1:4]
    assert tuple(Page.join([found[:2], found[2:]])) == records
    with pytest.raises(IndexError):
        found[5]
    with pytest.raises(KeyError):
        found.column("title")


def test_runs_are_of_one_kind_each() -> None:
    found, records = made("aAbba")
    expected = [("a", records[:2]), ("b", records[2:4]), ("a", records[4:])]
    for some in (found, records):
        assert [(kind, tuple(run)) for kind, run in page.runs(some)] == expected
