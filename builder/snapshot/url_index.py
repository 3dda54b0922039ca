"""URLs: the table by which captures are found, of what a publish lists.

A capture has one row for each of its published versions, with the beginning of its SURT and its
date (schema.URLS). Versions that were superseded stay until more than half of the table is stale,
as in the look-up; what is withdrawn goes at once.
"""

from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import find_files
from functions.database import engine
from functions.snapshot import schema

TABLE = "urls"
CAPTURE = "kind = 'capture' AND NOT deleted"
"""What has rows here."""
SURT = f"left(url_surtkey, {schema.SURT_LONGEST})"
_DIGITS = "translate(left(fetch_date, 19), '-T:Z', '')"
STAMP = (
    f"CASE WHEN length({_DIGITS}) >= 4 "
    f"THEN ({_DIGITS} || substr('00000101000000', length({_DIGITS}) + 1))::BIGINT ELSE 0 END"
)
"""The date of a capture as Capture.stamp has it, as a number; 0 where it has none."""

_RECORDS, _FILES = engine.table("$records"), engine.table("$files")
# Versions of an item are of one URL and date, for these are part of its identity: so rows of them
# are known also where no file of records has the version any more.
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
    """Return the query of the rows of captures that are there among `records`."""
    return f"SELECT {SURT} AS surt, {STAMP} AS stamp, position FROM {records}"


def scrub(connection: engine.Connection, draft: Draft) -> None:
    """Write those files of the draft anew that hold rows of the items in `versions`.

    `versions` is as takedown.versions made it.
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
