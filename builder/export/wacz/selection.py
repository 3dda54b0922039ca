"""Selection of captures from the newest snapshot, with the originals of revisits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from builder.errors import UsageError
from builder.snapshot import query
from builder.store.folder import FolderStore
from builder.store.s3 import S3Store
from builder.withdraw.selection import Selection
from functions.content.capture import FIELDS, CaptureRow
from functions.database import engine

_NAMES = ("identifier", "position", "sets", *FIELDS, "url_bytes", "title")
_COLUMNS = ", ".join(_NAMES)
_LIVE = "kind = 'capture' AND NOT deleted"
_TOLD = f"SELECT {_COLUMNS} FROM records"  # lets question.prepare find the columns that are read
_LATEST = (
    "QUALIFY row_number() OVER (PARTITION BY url, fetch_method, fetch_body "
    "ORDER BY rtrim(fetch_date, 'Z') DESC NULLS LAST, position DESC) = 1"
)
_ORIGINALS = (
    f"INSERT INTO chosen SELECT {_COLUMNS}, true FROM records WHERE {_LIVE} "
    "AND identifier IN (SELECT refers_to FROM chosen WHERE warc_record_type = 'revisit') "
    "AND identifier NOT IN (SELECT identifier FROM chosen)"
)
_IN_FILES = "warc_filename, warc_record_offset, position"


@dataclass(frozen=True, slots=True)
class CaptureChoice:
    """Criteria of captures: a selection, and a condition in SQL.

    `where` refers to columns of the view `captures`. With `latest`, only the last selected capture
    of each URL is taken.
    """

    selection: Selection = field(default_factory=Selection)
    where: str | None = None
    latest: bool = False


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
    store: FolderStore | S3Store,
    choice: CaptureChoice,
    *,
    originals: bool,
) -> int:
    """Create the table `chosen` of the selected captures that are listed; return their number.

    With `originals`, the listed originals of revisits are added unless they are chosen already.
    Raises NothingPublished, UsageError for a condition that DuckDB rejects, and StoreError.
    """
    where = "true" if choice.where is None else choice.where
    sql = f"SELECT position FROM records WHERE {_LIVE} AND (\n{where}\n)"
    query.prepare(connection, store, f"{_TOLD} WHERE position IN ({sql})")
    asked = ""
    if choice.where is not None:
        _ask(connection, sql, where)
        asked = " AND position IN (SELECT position FROM asked)"
    condition, values = choice.selection.condition()
    latest = _LATEST if choice.latest else ""
    with engine.reading("the newest snapshot"):
        connection.execute(
            f"CREATE TABLE chosen AS SELECT {_COLUMNS}, false AS besides FROM records "
            f"WHERE {_LIVE} AND {condition}{asked} {latest}",
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
    sql = f"SELECT {', '.join(names)} FROM chosen ORDER BY {_IN_FILES}"
    with engine.reading("the selected captures"):
        for rows in engine.batches(connection, sql):
            for row in rows:
                yield _parse_row(dict(zip(names, row, strict=True)))


def _parse_row(row: dict[str, Any]) -> Chosen:
    capture = CaptureRow.of(row["identifier"], row["position"], tuple(row["sets"] or ()), row)
    return Chosen(capture, row["url_bytes"], row["title"], row["besides"])
