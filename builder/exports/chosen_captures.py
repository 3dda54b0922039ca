"""Selection of captures from the newest snapshot, with their lines in an index.

The originals of revisits are selected too. An index is CDXJ: sort key, date in 14 digits, and a
JSON object in ASCII. The fields and their spelling are those of cdxj-indexer and pywb, whose
values are strings. Unknown fields are omitted.

The page list (pages/pages.jsonl) has the captures of HTML with a title. Its pages are in the
order of the index, so that the captures of a page are consecutive.

Any number of lines are sorted by their bytes (`LC_ALL=C sort`). DuckDB keeps those beyond its
memory limit on disk.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

from builder.errors import UsageError
from builder.publish.selection import Selection
from builder.snapshot import query
from builder.snapshot.match_keys import LISTED_CAPTURE
from builder.store.s3 import Store
from functions.content.capture_row import FIELDS, CaptureRow
from functions.snapshot import surt
from functions.store import engine

_NAMES = ("identifier", "position", "sets", *FIELDS, "url_bytes", "title")
_COLUMNS = ", ".join(_NAMES)
_TOLD = f"SELECT {_COLUMNS} FROM records"  # lets question.prepare find the columns that are read
_LATEST = (
    "QUALIFY row_number() OVER (PARTITION BY url, fetch_method, fetch_body "
    "ORDER BY rtrim(fetch_date, 'Z') DESC NULLS LAST, position DESC) = 1"
)
_ORIGINALS = (
    f"INSERT INTO chosen SELECT {_COLUMNS}, true FROM records WHERE {LISTED_CAPTURE} "
    "AND identifier IN (SELECT refers_to FROM chosen WHERE warc_record_type = 'revisit') "
    "AND identifier NOT IN (SELECT identifier FROM chosen)"
)
PAGES_HEADING = b'{"format": "json-pages-1.0", "id": "pages", "title": "Pages"}\n'
_HTML = frozenset({"text/html", "application/xhtml+xml"})
BATCH = 10_000
"""Lines that are added to the table of a sort at once."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A chosen capture, or with `besides` the original of a chosen revisit.

    `raw` are the bytes of its URL as archived, if `url` had to differ.
    """

    capture: CaptureRow
    raw: bytes | None
    title: str | None
    besides: bool


def choose(
    connection: engine.Connection,
    store: Store,
    selection: Selection,
    condition: str | None,
    *,
    originals: bool,
) -> int:
    """Create the table `chosen` of the selected captures that are listed; return their number.

    `condition` is SQL over the view `captures`. If the selection ends at a date, only the last
    capture of each URL is taken. With `originals`, the listed originals of revisits are added
    unless they are chosen already.
    Raises NothingPublished, UsageError for a condition that DuckDB rejects, and StoreError.
    """
    where = "true" if condition is None else condition
    sql = f"SELECT position FROM records WHERE {LISTED_CAPTURE} AND (\n{where}\n)"
    query.prepare(connection, store, f"{_TOLD} WHERE position IN ({sql})")
    condition_met = ""
    if condition is not None:
        _ask(connection, sql, where)
        condition_met = " AND position IN (SELECT position FROM asked)"
    selected, values = selection.condition()
    latest = _LATEST if selection.end is not None else ""
    with engine.reading("the newest snapshot"):
        connection.execute(
            f"CREATE TABLE chosen AS SELECT {_COLUMNS}, false AS besides FROM records "
            f"WHERE {LISTED_CAPTURE} AND {selected}{condition_met} {latest}",
            values,
        )
        if originals:
            connection.execute(_ORIGINALS)
        ((count,),) = connection.execute("SELECT count(*) FROM chosen").fetchall()
    return int(count)


def _ask(connection: engine.Connection, sql: str, where: str) -> None:
    """Create the table `asked` with the positions that meet the user's condition."""
    # A condition with unbalanced brackets fails in one of the two forms.
    if not (where.strip() and engine.is_select(sql) and engine.is_select(f"SELECT [\n{where}\n]")):
        raise UsageError(f"--where {where}: expected one condition in DuckDB's SQL")
    try:
        engine.query(connection, f"CREATE TABLE asked AS {sql}")
    except engine.QueryError as error:
        line = str(error).partition("\n")[0]
        raise UsageError(f"--where {where}: {line}") from error


def read_chosen(connection: engine.Connection) -> Iterator[Chosen]:
    """Yield the captures in `chosen`, by file and offset.

    The connection must not be used meanwhile. Raises StoreError.
    """
    names = (*_NAMES, "besides")
    order = "warc_filename, warc_record_offset, position"
    sql = f"SELECT {', '.join(names)} FROM chosen ORDER BY {order}"
    with engine.reading("the selected captures"):
        for rows in engine.batches(connection, sql):
            for row in rows:
                fields = dict(zip(names, row, strict=True))
                sets = tuple(fields["sets"] or ())
                capture = CaptureRow.of(fields["identifier"], fields["position"], sets, fields)
                yield Chosen(capture, fields["url_bytes"], fields["title"], fields["besides"])


def index_line(
    chosen: Chosen,
    filename: str | None,
    offset: int | None,
    length: int | None,
    digest: str | None = None,
) -> bytes:
    """Return the line, with its newline, of a capture that has a date (Capture.stamp).

    Its record is in a file at an offset; `digest` is that of its `length` bytes there.
    """
    capture = chosen.capture
    url = capture.url
    with suppress(UnicodeDecodeError):  # as archived if it is text: an ingest finds the same item
        url = chosen.raw.decode() if chosen.raw else url
    fields = {
        "url": url,
        "mime": "warc/revisit" if capture.is_revisit else capture.mime or capture.detected,
        "status": capture.status,
        "digest": capture.digest and ("" if ":" in capture.digest else "sha1:") + capture.digest,
        "redirect": capture.redirect,
        "length": length,
        "offset": offset,
        "filename": filename,
        "method": capture.method,
        "requestBody": capture.body,
        "recordDigest": digest,
    }
    texts = {name: str(value) for name, value in fields.items() if value is not None}
    key = capture.surt if capture.method else surt.pywb_key(chosen.raw or capture.url.encode())
    return f"{key} {capture.stamp} {json.dumps(texts)}\n".encode("ascii")


def in_order(chosen: Chosen, record: BinaryIO, request: BinaryIO | None) -> tuple[BinaryIO, ...]:
    """Return the record of a capture and its request in the order of their file."""
    if request is None:
        return (record,)
    precedes = (chosen.capture.request or 0) < (chosen.capture.offset or 0)
    return (request, record) if precedes else (record, request)


def is_page(chosen: Chosen) -> bool:
    """Return whether a capture is a page: chosen itself, successful (2xx), and with a title.

    The response to any method except GET is not a page.
    """
    capture = chosen.capture
    there = capture.status is not None and 200 <= capture.status < 300
    kinds = {capture.detected, capture.mime}
    return bool(
        there and capture.method is None and chosen.title and not chosen.besides and kinds & _HTML
    )


def page_line(chosen: Chosen) -> bytes:
    """Return the line of a page: its URL, date (RFC 3339), title, and the item's identifier."""
    capture = chosen.capture
    fields = {
        "id": capture.identifier,
        "url": capture.url,
        "ts": page_date(capture),
        "title": chosen.title,
    }
    return json.dumps(fields).encode("ascii") + b"\n"


def page_date(capture: CaptureRow) -> str:
    """Return a capture's date to the second; unknown parts have the lowest value."""
    day, time = capture.stamp[:8], capture.stamp[8:]
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}Z"


class SortedLines:
    """External sort of lines, in a table of DuckDB."""

    def __init__(self, connection: engine.Connection, table: str) -> None:
        """Create the table in the database of a connection, which may be in use."""
        self._connection = connection.cursor()
        self._table = table
        self._lines: list[bytes] = []
        self._connection.execute(f"CREATE TABLE {table} (line BLOB)")

    def add(self, line: bytes) -> None:
        """Add a line. Raises StoreError."""
        self._lines.append(line)
        if len(self._lines) == BATCH:
            self._flush()

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines. Raises StoreError."""
        self._flush()
        sql = f"SELECT line FROM {self._table} ORDER BY line"
        with engine.reading("the lines of an index"):
            yield from chain.from_iterable(engine.batches(self._connection, sql))

    def _flush(self) -> None:
        with engine.reading("the lines of an index"):
            sql = f"INSERT INTO {self._table} SELECT unnest($lines::BLOB[])"
            self._connection.execute(sql, {"lines": self._lines})
        self._lines = []
