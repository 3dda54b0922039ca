"""Table of URLs: finds captures by URL among the listed items.

A capture has one row for each of its published versions, with the beginning of its SURT and its
date (schema.URLS). Rows of superseded versions stay until more than half of the table is stale, as
in the look-up. Rows of withdrawn items are removed at once.
"""

from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import find_files
from functions.database import engine
from functions.snapshot import schema

TABLE = "urls"
CAPTURE = "kind = 'capture' AND NOT deleted"
"""Items that have rows here."""
SURT = f"left(url_surtkey, {schema.SURT_LONGEST})"
_DIGITS = "translate(left(fetch_date, 19), '-T:Z', '')"
STAMP = (
    f"CASE WHEN length({_DIGITS}) >= 4 "
    f"THEN ({_DIGITS} || substr('00000101000000', length({_DIGITS}) + 1))::BIGINT ELSE 0 END"
)
"""The date of a capture as Capture.stamp gives it, as a number; 0 without a date."""

_RECORDS, _FILES = engine.table("$records"), engine.table("$files")
# All versions of an item have the same URL and date, which are part of its identity. So their rows
# are found even if no file of records has the version any more.
_SHOWN = "SELECT DISTINCT surt, stamp FROM versions WHERE surt IS NOT NULL"
_LEFT = (
    "CREATE OR REPLACE TEMP TABLE leftover AS "
    f"SELECT position FROM {_FILES} SEMI JOIN ({_SHOWN}) USING (surt, stamp)"
)
_STAYING = (
    f"DELETE FROM leftover WHERE position IN (SELECT position FROM {_RECORDS}) "
    "AND position NOT IN (SELECT position FROM versions)"
)
_KEPT = (
    f"SELECT * FROM {_FILES} WHERE position NOT IN (SELECT position FROM leftover) "
    f"ORDER BY {', '.join(schema.ORDER[TABLE])}"
)


def rows(records: str) -> str:
    """Return the query of the rows of the captures in `records`."""
    return f"SELECT {SURT} AS surt, {STAMP} AS stamp, position FROM {records}"


def scrub(connection: engine.Connection, draft: Draft) -> None:
    """Rewrite the draft's files that hold rows of the items in `versions`.

    `versions` is made by purge.versions.
    """
    with engine.reading("the last snapshot"):
        files = find_files(connection, draft, TABLE, (_SHOWN, {}))
        if not files:
            return
        connection.execute(_LEFT, {"files": draft.paths(files)})
        places: Query = ("SELECT position FROM leftover", {})
        if homes := find_files(connection, draft, "records", places):
            connection.execute(_STAYING, {"records": draft.paths(homes)})
    draft.substitute(
        TABLE, {f.key: draft.write(TABLE, [(_KEPT, {"files": draft.paths([f])})]) for f in files}
    )
