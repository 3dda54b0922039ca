"""References of revisits that declare no date of their original (ISO 28500:2017, 6.7).

Such a revisit names the id of a record, or nothing but that its URL did not change. Ids are in the
intake alone, since they would make a store a tenth larger: an original is found by its id if it is
published together with its revisit. Else, without a digest, the last capture of the URL before the
revisit is taken, in the intake or published. Its URL and date become those that are referred to.
"""

from collections.abc import Mapping

from builder.kinds.captures.revisit_search import delete_superseded
from builder.snapshot import lookup, match_keys
from builder.snapshot.draft import Draft
from builder.snapshot.sql import Statements
from functions.store import engine

_SQL = Statements(__file__)
_INTAKE, _FILES = engine.table("getvariable('intake')"), engine.table("$files")
_EARLIER = _SQL.get("earlier_captures", urls=_FILES)
_PUBLISHED = _SQL.get("published_originals", records=_FILES, original=match_keys.ORIGINAL)
_SURTS = "SELECT DISTINCT surt FROM undated_revisits WHERE unchanged IS NOT NULL"


def find_originals(
    connection: engine.Connection, draft: Draft, namespace: str, captures: str
) -> Mapping[str, str]:
    """Make `declared_originals`, the URLs and dates that the intake's undated revisits refer to.

    Return `captures` with those URLs and dates, as SQL: a table, a `url` and a `date`.
    """
    connection.execute(_SQL.get("undated_revisits", intake=_INTAKE, surt=lookup.URL_SURT))
    if not lookup.rows_of(connection, "undated_revisits"):
        return {"captures": f"({captures}) c", "url": "NULL", "date": "NULL"}
    connection.execute(_SQL.get("dated_originals", intake=_INTAKE))
    if files := lookup.fetch_groups(connection, draft, "urls", (_SURTS, {})):
        connection.execute(_EARLIER, {"files": files})
        delete_superseded(connection, draft, "earlier_captures")
        places = "FROM earlier_captures"
        if files := lookup.fetch_groups(connection, draft, "records", (places, {})):
            connection.execute(_PUBLISHED, {"files": files})
    connection.execute(_SQL.get("declared_originals"), {"namespace": namespace})
    joined = f"({captures}) c LEFT JOIN declared_originals d USING (identifier)"
    return {"captures": joined, "url": "d.url", "date": "d.date"}
