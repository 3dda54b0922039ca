"""`sheaf query`."""

import argparse
import base64
import csv
import json
import math
import sys
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any

from builder.snapshot import query, views
from builder.store.context import Context
from builder.text import tally
from functions.store import engine

_WIDE = 60  # characters of a cell on a terminal
_SHOWN = 1000  # rows of a table on a terminal


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("sql", metavar="SQL", help="an SQL statement; - reads it from stdin")
    parser.epilog = (
        f'Views: {", ".join(views.NAMES)}. `sheaf query "DESCRIBE captures"` shows the columns of '
        "one; docs/reference/store.md describes each."
    )


def run(context: Context) -> int:
    """Query the newest snapshot with DuckDB's SQL.

    On a terminal the result is a table, elsewhere CSV; with --json one JSON document a row.
    Repeated column names are numbered: url, url_1.
    """
    sql = sys.stdin.read() if context.arguments.sql == "-" else context.arguments.sql
    connection = engine.connect(threads=2, memory_megabytes=4096)
    try:
        query.prepare(connection, context.store, sql)
        columns, rows = engine.query(connection, sql)
        names = _distinct(columns)
        if context.arguments.json:
            for row in rows:
                print(
                    json.dumps(dict(zip(names, map(_plain, row), strict=True)), ensure_ascii=False)
                )
        elif sys.stdout.isatty():
            _table(names, rows)
        elif names:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(names)
            writer.writerows([_cell(value) for value in row] for row in rows)
    finally:
        connection.close()
    return 0


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names with a number after each repeated one, as DuckDB does."""
    numbered: dict[str, None] = {}
    for name in names:
        new, number = name, 0
        while new in numbered:
            number += 1
            new = f"{name}_{number}"
        numbered[new] = None
    return list(numbered)


def _plain(value: Any) -> Any:
    """Return the value for JSON: bytes as base64, null for numbers that JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    return value if isinstance(value, int | str | bool | None) else str(value)


def _cell(value: Any) -> Any:
    """Return the value for a CSV cell: lists and structures as JSON."""
    if isinstance(value, float):
        return value
    plain = _plain(value)
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, list | dict) else plain


def _table(names: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
    cells = [list(names)]
    more = 0
    for row in rows:
        if len(cells) <= _SHOWN:
            cells.append(["" if value is None else str(_cell(value)) for value in row])
        else:
            more += 1
    cells = [[c if len(c) <= _WIDE else c[: _WIDE - 1] + "…" for c in row] for row in cells]
    widths = [max(len(row[n]) for row in cells) for n in range(len(names))]
    for number, row in enumerate(cells):
        print("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("─" * width for width in widths))
    if more:
        print(f"… and {tally(more, 'row')} more; redirect the output to get all rows as CSV")
