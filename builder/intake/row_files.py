"""Files of rows: joins the many parts of a run into a few large files."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.intake.intake import TABLES, part_path
from builder.store.durable import writing
from builder.store.parquet.writer import write_rows
from functions.store import engine

FILE_ROWS, GROUP_ROWS = 1 << 19, 1 << 16
"""Rows of a file and of its row groups: a file of captures has about 25 MB."""

_CHANGED = ("identity", "fetch_method", "fetch_body", "url_surtkey", "warc_request_offset")
_CHANGES = (
    f"SELECT file, row, {', '.join(f'any_value({name}) AS {name}' for name in _CHANGED)} "
    "FROM changed GROUP BY ALL"
)


@dataclass(frozen=True, slots=True)
class RowSpan:
    """Consecutive rows of a Parquet file: `count` rows from row number `at`."""

    path: Path
    at: int
    count: int


def gather_rows(
    connection: engine.Connection,
    spans: Iterable[RowSpan],
    table: str,
    folder: Path,
    changed: Collection[Path] = (),
) -> Iterator[Path]:
    """Write the rows, in order, as files of FILE_ROWS rows, each when it is requested.

    Rows of the files `changed` may get other values, from the connection's table `changed`: columns
    of _CHANGED, NULL for a value that stays. Raises StoreError.
    """
    for number, rows in enumerate(_group(_join_neighbours(spans))):
        target = part_path(folder, table, f"{number:06}")
        with writing(folder), engine.reading("the intake"):
            sql = _select(rows, table, changed=any(span.path in changed for span in rows))
            write_rows([engine.stream(connection, sql)], TABLES[table], target, GROUP_ROWS)
        yield target


def _join_neighbours(spans: Iterable[RowSpan]) -> Iterator[RowSpan]:
    """Yield the spans, with adjacent spans of a file joined."""
    last: RowSpan | None = None
    for rows in spans:
        if last and (last.path, last.at + last.count) == (rows.path, rows.at):
            last = RowSpan(last.path, last.at, last.count + rows.count)
            continue
        if last:
            yield last
        last = rows if rows.count else None
    if last:
        yield last


def _group(spans: Iterable[RowSpan]) -> Iterator[list[RowSpan]]:
    """Yield the spans of each file to write."""
    file_spans: list[RowSpan] = []
    room = FILE_ROWS
    for rows in spans:
        at, left = rows.at, rows.count
        while left:
            count = min(left, room)
            file_spans.append(RowSpan(rows.path, at, count))
            at, left, room = at + count, left - count, room - count
            if not room:
                yield file_spans
                file_spans, room = [], FILE_ROWS
    if file_spans:
        yield file_spans


def _select(rows: Sequence[RowSpan], table: str, *, changed: bool) -> str:
    """Return the statement for the rows; UNION ALL and WHERE keep their order."""
    names = ", ".join(column.name for column in TABLES[table])
    if changed:
        names = f"{names}, file_row_number"
    arms = " UNION ALL ".join(
        f"SELECT {f'{arm} AS arm, {path} AS file, ' if changed else ''}{names} "
        f"FROM read_parquet({path}, file_row_number = true, "
        f"hive_partitioning = false) "
        f"WHERE file_row_number >= {span.at} AND file_row_number < {span.at + span.count}"
        for arm, (span, path) in enumerate((span, engine.quote(str(span.path))) for span in rows)
    )
    if not changed:
        return arms
    return (
        "SELECT g.* EXCLUDE (arm, file, file_row_number) "
        f"REPLACE ({', '.join(f'coalesce(n.{name}, g.{name}) AS {name}' for name in _CHANGED)}) "
        f"FROM ({arms}) g LEFT JOIN ({_CHANGES}) n "
        "ON n.file = g.file AND n.row = g.file_row_number ORDER BY arm, file_row_number"
    )
