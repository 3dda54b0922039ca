"""Own records: what a publish makes of the rows of the source `records`.

Of an item, the row of the newest run counts, and of a run the last one. A row equal to the listed
version, by its digest, changes nothing. A format that an item had and no longer has is deleted in
it (OAI-PMH 2.0, section 2.5.1): the document keeps its prefix in `ended`.

New versions come in the order of the intake: to sort their documents would take most of a publish.
"""

from collections.abc import Sequence

from builder.kinds.kind import KindChange, KindCounts
from builder.kinds.sets import LEFT
from builder.kinds.versions import add_versions
from builder.snapshot import scratch_tables
from builder.snapshot.lookup import find, rows_of
from builder.snapshot.sql import Statements
from functions.kinds.records import RECORD
from functions.snapshot.manifest import Offer
from functions.store import engine

_SQL = Statements(__file__)
KIND = RECORD.name
_SHORT = (
    'to_json(from_json(document, \'{"digest": "VARCHAR", "ended": ["VARCHAR"], '
    '"records": [{"prefix": "VARCHAR"}]}\'))'
)
"""The document of a listed item, without what takes its room."""
_LEFT = LEFT.format(earlier="list_concat(o.sets, o.left_sets)", now="r.sets")
_SET_NAMES = (
    "INSERT INTO repository_set_names SELECT set_spec, max(name) "
    f"FROM {engine.table('$files')} GROUP BY set_spec"
)


def revise(change: KindChange) -> KindCounts:
    """Add the changes of own records in the intake.

    They go to `prepared_versions`, without their content, and `superseded_versions`.
    """
    _note_tables(change, change.files("own_tables"))
    files, names = change.files("own_records"), change.files("set_names")
    if not files:
        return KindCounts()
    connection, draft = change.connection, change.draft
    with engine.reading("the intake"):
        connection.execute(_SQL.get("received_records"), {"files": files})
        connection.execute(scratch_tables.ensure("repository_set_names"))
        if names:
            connection.execute(_SET_NAMES, {"files": names})
    with engine.reading("the last snapshot"):
        find(connection, draft, "received_records", instead={"document": _SHORT})
        connection.execute(_SQL.get("revised_records", left=_LEFT, kind=KIND))
        new, changed, deleted = add_versions(connection, "revised_records", KIND)
        received = rows_of(connection, "(FROM received_records WHERE NOT deleted)")
        rows = draft.add_documents((_SQL.get("record_rows", kind=KIND), {}), files)
        change.rows[KIND] = iter([rows])
    return KindCounts(new, changed, deleted, received - (new + changed - deleted))


def _note_tables(change: KindChange, files: Sequence[str]) -> None:
    """Add the formats and the recipes of the tables in the intake to the next manifest."""
    if not files:
        return
    before = change.base.before
    offers, recipes = dict(before.offers), dict(before.recipes)
    with engine.reading("the intake"):
        rows = change.connection.execute(_SQL.get("table_formats"), {"files": files}).fetchall()
    for name, recipe, formats in rows:
        recipes[name] = recipe
        for prefix, schema_url, namespace in formats or ():
            kinds = offers[prefix].kinds if prefix in offers else ()
            offers[prefix] = Offer(schema_url, namespace, tuple(sorted({*kinds, KIND})))
    change.has_rows |= (offers, recipes) != (before.offers, before.recipes)
    change.fields |= {"offers": offers, "recipes": recipes}
