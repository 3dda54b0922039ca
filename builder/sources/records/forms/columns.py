"""Columns of CSV, JSON, Parquet and SQL: the texts of a row by name.

CSV is read by the standard library, not by DuckDB, which refuses encodings such as windows-1250,
guesses types ("007" becomes 7), and does not tell where a bad row stands.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time
from itertools import count
from pathlib import Path

from builder.sources.records.forms import form
from builder.sources.records.forms.form import ByteSource, Piece
from builder.sources.records.forms.marcxml import UNFIT
from builder.sources.records.record import (
    ReadOptions,
    RecordFault,
    RecordItem,
    RecordsError,
    SourceRecord,
)
from functions.store import engine

_SAMPLE = 50  # rows
_NAME = re.compile(r"(?!\w+://)[^\W\d][^\n\r\0]{0,79}")
_BINARY = re.compile("[\0-\x08]")
_QUOTED = re.compile(r'"[^"]*"')
_MEMORY = 512  # megabytes
_WRONG = re.compile("(Parser|Binder|Catalog|Syntax) Error")
"""How DuckDB's messages begin if no other files would help."""
_DEFAULTS = ReadOptions()


def flatten(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in a value of JSON or SQL with the names of their columns, dotted if nested.

    What is missing or empty has no text. Members of a list are of the same column.
    """
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from flatten(member, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for member in value:
            yield from flatten(member, name)
    elif isinstance(value, bool):
        yield name, str(value).lower()
    elif value is not None and value != "":
        text = value.isoformat() if isinstance(value, date | time) else value
        yield name, text.decode(errors="replace") if isinstance(text, bytes) else str(text)


def make_columns(
    place: str, texts: Iterable[tuple[str, str]], digest: bytes
) -> Iterator[RecordItem]:
    """Yield the record of these names and texts, and a fault if XML cannot have all characters."""
    columns: dict[str, tuple[str, ...]] = {}
    for name, text in texts:
        fit = UNFIT.sub("", text)
        if fit != text:
            detail = "characters that XML cannot have are left out"
            yield RecordFault(place, "repaired-record", name, detail)
        name = UNFIT.sub("", name)
        columns[name] = (*columns.get(name, ()), fit)
    if not columns:
        raise ValueError("it has no texts")
    yield SourceRecord(place, "columns", columns, "", digest=digest)


def recognise_csv(head: bytes, is_declared: bool = False) -> bool:
    """Return whether a file begins as CSV: a header of names, and rows of as many cells.

    One column, as a list of URLs has, counts only if it is declared.
    """
    text = head.decode(form.find_encoding(head), "replace")
    header, *rows = _parse_sample(text, _find_separator(text)) or ([],)
    names = _list_names(header)
    if not names or not all(map(_NAME.fullmatch, names)) or _BINARY.search("".join(header)):
        return False
    equal = sum(len(row) == len(header) for row in rows)
    return is_declared or (len(header) > 1 and bool(rows) and 3 * equal >= 2 * len(rows))


def _list_names(header: list[str]) -> list[str]:
    """Return the names of columns; empty ones at the end are none."""
    names = [UNFIT.sub("", name).strip() for name in header]
    while names and not names[-1]:
        names.pop()
    return names


def _parse_sample(text: str, separator: str) -> list[list[str]]:
    """Return the first whole rows of a text."""
    lines = text[: text.rfind("\n") + 1 or None].splitlines(keepends=True)[:_SAMPLE]
    return [row for row in csv.reader(lines, delimiter=separator) if row]


def _find_separator(text: str) -> str:
    """Return the separator by which most rows have as many cells, and many, as the header."""

    def count_cells(separator: str) -> tuple[int, int]:
        header, *rows = _parse_sample(text, separator) or ([],)
        equal = sum(len(row) == len(header) for row in rows)
        return equal * (len(header) - 1), len(header)

    return max(",;\t|", key=count_cells)


def read_csv(source: ByteSource, options: ReadOptions) -> Iterator[RecordItem]:
    """Yield the rows of a CSV file, the header being row 1. Raises RecordsError.

    An empty row is none. A row of more or fewer cells than the header is a fault. Columns of the
    same name are one; what stands below no name at the end is left out.
    """
    csv.field_size_limit(form.LONGEST)
    with form.open_source(source) as stream:
        head = stream.read(form.HEAD)
        encoding = form.find_encoding(head, options.encoding)
        text = head.decode(encoding, "replace")
        separator = options.separator or _find_separator(text)
        bare = _QUOTED.sub("", text)
        feed = "\r" if "\r" in bare and "\n" not in bare else "\n"
        lines = map(_check_line, form.read_lines(form.read_text(head, stream, encoding), feed))
        rows = csv.reader(lines, delimiter=separator, strict=True)
        try:
            header = next(rows, [])
        except csv.Error as error:
            raise RecordsError(f"its header is no row of CSV: {error}") from error
        names = _list_names(header)

        def parse(piece: Piece, digest: bytes) -> Iterator[RecordItem]:
            row = piece.content
            if not len(names) <= len(row) <= len(header):
                raise ValueError(f"it has {len(row)} cells, the header {len(header)}")
            piece.data.decode()  # what was not in the encoding is not UTF-8 now
            texts = [(name, text) for name, text in zip(names, row, strict=False) if text]
            return make_columns(piece.place, texts, digest)

        yield from form.read_pieces(_number(rows), "\x1f".join(names), options, parse)


def _check_line(line: str) -> str:
    """Return a line. Raises csv.Error if it is too long; `map` goes on behind it."""
    if len(line) > form.LONGEST:
        raise csv.Error(form.TOO_LONG)
    return line


def _number(rows: Iterator[list[str]]) -> Iterator[Piece | RecordFault]:
    """Yield the rows that are not empty, from the second of the file on. Raises RecordsError."""
    for number in count(2):
        try:
            row = next(rows, None)
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise RecordsError(f"it is cut off in row {number}, or a quote is open") from error
            yield RecordFault(f"row {number}", "bad-record", None, str(error))
            continue
        if row is None:
            return
        if any(row):
            data = "\x1f".join(row).encode("utf-8", "surrogateescape")
            yield Piece(f"row {number}", data, row)


def recognise_parquet(head: bytes, is_declared: bool = False) -> bool:
    """Return whether a file begins as Parquet."""
    return head.startswith(b"PAR1")


def read_parquet(source: ByteSource, options: ReadOptions) -> Iterator[RecordItem]:
    """Yield the rows of a Parquet file, which is no stream. Raises RecordsError."""
    if not isinstance(source, Path):
        raise RecordsError("it is Parquet, which can be read from a file alone")
    file = engine.quote(str(source.absolute()))
    return read_query(f"SELECT * FROM read_parquet({file})", source.parent, options)


def read_query(sql: str, home: Path, options: ReadOptions = _DEFAULTS) -> Iterator[RecordItem]:
    """Yield the rows of a user's SELECT; files that it names are sought in `home`.

    Raises RecordsError.
    """
    if not engine.is_select(sql):
        raise RecordsError("its query is not one SELECT")
    try:
        with engine.connect(memory_megabytes=_MEMORY) as connection:
            connection.execute(f"SET file_search_path = {engine.quote(str(home))}")
            names, rows = engine.query(connection, sql)
            pieces = (
                Piece(f"row {number}", repr(row).encode("utf-8", "replace"), row)
                for number, row in enumerate(rows, 1)
            )

            def parse(piece: Piece, digest: bytes) -> Iterator[RecordItem]:
                texts = flatten(dict(zip(names, piece.content, strict=True)))
                return make_columns(piece.place, texts, digest)

            yield from form.read_pieces(pieces, "\x1f".join(names), options, parse)
    except engine.QueryError as error:
        raise RecordsError(_explain(error)) from error


def check_query(sql: str, home: Path) -> str:
    """Return what is wrong with a user's SELECT, whatever its files have; "" if nothing is."""
    if not engine.is_select(sql):
        return "its query is not one SELECT"
    try:
        with engine.connect(memory_megabytes=_MEMORY) as connection:
            connection.execute(f"SET file_search_path = {engine.quote(str(home))}")
            engine.query(connection, f"EXPLAIN {sql}")
    except engine.QueryError as error:
        return _explain(error) if _WRONG.match(str(error)) else ""
    return ""


def _explain(error: engine.QueryError) -> str:
    reason = str(error).splitlines()[0]
    is_text = "utf-8" in str(error).lower() or "unicode" in str(error).lower()
    more = "; name the file in `files`, with its `encoding`, instead" if is_text else ""
    return f"its query fails: {reason}{more}"
