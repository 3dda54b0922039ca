"""Templates as items, and the tables of the obi store, from the store's new runs.

A publish adds versions of the templates that new runs changed. A template also changes when a file
that it names is stored for the first time, or under another id, because formats link to it. Other
bytes behind a URL do not change it. A lost template becomes a tombstone and keeps its sets. A
template that is back makes its item live again, unless the item was withdrawn.

The tables are the result of the replay, in full and in one order. The same runs give the same
files. So a publish shares unchanged files, and anyone can rebuild them from the store.
"""

from collections.abc import Iterator

from builder.kinds.kind import KindChange, KindCounts
from builder.kinds.sets import LEFT
from builder.kinds.templates.template_documents import LINKED, find_documents
from builder.kinds.versions import add_versions
from builder.obi import replay
from builder.obi.content import FILE, SOURCE, TEMPLATE
from builder.obi.history import history
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import fetch_groups, find
from builder.snapshot.sql import Statements
from builder.snapshot.transaction import Transaction
from builder.text import tally
from functions.snapshot import oai_name, obi, schema
from functions.snapshot.errors import ConfigurationError
from functions.store import engine

_SQL = Statements(__file__)

KIND = "template"
_FAULTS = "SELECT * FROM fault WHERE tist IN (SELECT unnest({times}::BIGINT[]))"
"""The query of the faults in states that were read at these times."""
_SOURCES = (
    "SELECT replace(v.id, 'RePEc-file:', '') AS source, v.sha256 AS digest, "
    "replace(v.id, 'RePEc-file:', '') AS path, 'redif' AS format, v.bytes, 0::BIGINT AS captures, "
    "0::BIGINT AS skipped, coalesce(f.faults, 0) AS faults, []::VARCHAR[] AS collections, "
    "NULL::VARCHAR AS software, NULL::VARCHAR AS operator, NULL::VARCHAR AS part_of, "
    "NULL::VARCHAR AS description, NULL::VARCHAR AS reading FROM version v "
    "LEFT JOIN (SELECT tist, source, count(*) AS faults FROM fault GROUP BY ALL) f "
    "ON f.tist = v.tist AND f.source = replace(v.id, 'RePEc-file:', '') "
    f"WHERE v.kind = '{SOURCE}' AND v.tist IN (SELECT unnest({{times}}::BIGINT[]))"
)
"""The query of the ReDIF files that were new or changed in states that were read at these times."""
_PROVENANCE = {"faults": _FAULTS, "sources": _SOURCES}

_WANTED_TEMPLATES = f"""
CREATE TABLE wanted_templates AS
SELECT {{identifier}} AS identifier, o.id AS handle, o.noted, coalesce(r.run, o.noted) AS run,
    o.lost IS NOT NULL AS lost, {{fresh}} AS fresh
FROM obi o LEFT JOIN (
    SELECT id, tist, run FROM logged WHERE row = 'version' AND kind = '{TEMPLATE}' AND run != tist
) r ON r.id = o.id AND r.tist = o.noted
WHERE o.kind = '{TEMPLATE}' AND ({{fresh}} OR {{touched}})
"""
# Of a run that read an older state, rows have times before its own; others count no more.
_FRESH = f"""
o.id IN (SELECT id FROM logged WHERE row = 'incidence' AND kind = '{TEMPLATE}' AND run > {{since}}
    UNION ALL
    SELECT subject FROM undone WHERE part IN ('incidence', 'version') AND undoer > {{since}})
"""
_TOUCHED = f"""
o.id IN (SELECT handle FROM refipo WHERE id IN (
    SELECT id FROM version WHERE kind = '{FILE}' AND tist > {{since}}
    UNION ALL SELECT origin FROM redirect WHERE tist > {{since}}))
"""
_PUBLISHED = """
SELECT position FROM listed_versions o JOIN wanted_templates m USING (identifier)
WHERE NOT m.lost AND NOT o.deleted AND (NOT m.fresh OR m.run <= $since)
"""
_RECORDS = engine.table("$records")
_COMPARED = _SQL.get("compared_templates", linked=LINKED)
_RANGES = _SQL.get("template_ranges")
_NOTHING = "SELECT ''::VARCHAR AS id, 0::BIGINT AS tist, []::VARCHAR[] AS sets, '' AS document"
_LEFT = LEFT.format(earlier="list_concat(k.old_sets, k.old_left_sets)", now="d.sets")
_OTHERS = ", ".join(f"NULL::{column.type} AS {column.name}" for column in schema.CAPTURE)
_RANGE_BYTES = 4096
"""Bytes that a template of a range takes, about."""
_RANGE_SHARE = 8
"""One range takes this part of the memory."""
_RANGE_MOST = 32_768  # templates


def prefix(base: Transaction) -> str:
    """Return the text before handles in identifiers.

    Raises ConfigurationError if templates were published with another one.
    """
    before = base.before
    own = str(base.configuration["redif.identifier_prefix"])
    text = own or oai_name.to_oai(before.namespace, "")
    if before.prefix not in ("", text):
        raise ConfigurationError(
            f"redif.identifier_prefix is {text}, but templates were published with "
            f"{before.prefix}: identifiers must not change, so restore that value or use another "
            "store"
        )
    return text


def check(change: KindChange) -> None:
    """Raise ConfigurationError if identifiers of templates would change."""
    if change.runs:
        prefix(change.base)


def gather(change: KindChange) -> KindCounts:
    """Replay the runs of the obi store if some are new, and write its tables.

    Adds the faults and sources of the new runs.
    """
    if not change.runs:
        return KindCounts()
    change.has_rows = True
    since = change.base.before.run
    change.base.runtime.say(f"replaying {tally(len(change.runs), 'run')} of the obi store")
    replay.fold(change.connection, change.base.store, change.runs, change.draft.folder)
    for table in obi.TABLES:
        leaves = change.draft.leaves(change.draft.write(table, [(replay.query(table), {})]))
        change.draft.tables.pop(table, None)
        if leaves:
            change.draft.tables[table] = leaves
    times = [run.time for run in change.runs if run.tist > since]
    change.provenance |= {name: sql.format(times=times) for name, sql in _PROVENANCE.items()}
    change.fields["run"] = change.runs[-1].tist
    return KindCounts()


def revise(change: KindChange) -> KindCounts:
    """Add the templates that new runs changed, or whose files they stored.

    They go to `prepared_versions`, without their content, and `superseded_versions`. The replay of
    all runs is in the database. Raises DamagedStore if a run lacks the document of a template.
    """
    if not change.runs:
        return KindCounts()
    base, connection, draft = change.base, change.connection, change.draft
    begin, since = prefix(base), base.before.run
    fresh, touched = (sql.format(since=int(since)) for sql in (_FRESH, _TOUCHED))
    _want(connection, begin, fresh, touched)
    find_documents(connection, base.store, change.runs, draft.folder)
    with engine.reading("the last snapshot"):
        find(connection, draft, "wanted_templates", instead={"document": "NULL"})
        touched = _compare(connection, draft, since)
        connection.execute(_SQL.get("revised_templates"), {"since": since})
        new, changed, deleted = add_versions(connection, "revised_templates", KIND)
    change.rows[KIND] = _rows(connection, touched)
    if new:
        change.fields["prefix"] = begin
    return KindCounts(new, changed, deleted)


def _compare(connection: engine.Connection, draft: Draft, since: int) -> str:
    """Make `differing_templates`: published ones whose content must be compared and differs.

    A version that is newer than the last snapshot differs in any case. Returns the table expression
    of the new documents of those to which other files are linked.
    """
    connection.execute(
        "CREATE TABLE compared_templates (handle VARCHAR, sets VARCHAR[], digest VARCHAR)"
    )
    connection.execute("CREATE TABLE differing_templates (handle VARCHAR)")
    published: Query = (_PUBLISHED.replace("$since", str(int(since))), {})
    records = fetch_groups(connection, draft, "records", published)
    if not records:
        return f"({_NOTHING} WHERE false)"
    target = engine.quote(str(draft.folder / "touched.parquet"))
    sql = _SQL.get("touched_templates", records=_RECORDS, linked=LINKED, target=target)
    connection.execute(sql, {"records": records})
    touched = engine.table(f"[{target}]")
    connection.execute(f"INSERT INTO differing_templates SELECT id FROM {touched}")
    connection.execute(_COMPARED, {"since": since})
    connection.execute(_SQL.get("differing_templates", records=_RECORDS), {"records": records})
    return touched


def _rows(connection: engine.Connection, touched: str) -> Iterator[Query]:
    """Yield queries that give the new versions with their content, by identifier.

    Each query takes a part of the memory. `touched` is what `_compare` returned.
    """
    size = engine.find_memory(connection) // (_RANGE_SHARE * _RANGE_BYTES)
    ranges = connection.execute(_RANGES, {"rows": min(size, _RANGE_MOST)}).fetchall()
    sql = _SQL.get(
        "template_rows",
        kind=KIND,
        left=_LEFT,
        linked=LINKED,
        others=_OTHERS,
        touched=touched,
    )
    for start, end, first, last in ranges:
        yield sql, {"start": start, "end": end, "first": first, "last": last}


def recover(change: KindChange) -> None:
    """Add to `recovered_versions` the templates of `withdrawn_items` as the obi store has them now.

    The state is that after the last published run. Lost templates are not added.
    """
    base, connection, draft = change.base, change.connection, change.draft
    with engine.reading("the last snapshot"):
        wanted = f"SELECT identifier FROM withdrawn_items WHERE kind = '{KIND}'"
        ((count,),) = connection.execute(f"SELECT count(*) FROM ({wanted})").fetchall()
        connection.execute(f"DELETE FROM recovered_versions WHERE kind = '{KIND}'")
    if not count:
        return
    begin = base.before.prefix
    runs = [run for run in history(base.store) if run.tist <= base.before.run]
    replay.fold(connection, base.store, runs, draft.folder)
    name = oai_name.template_identifier_sql(engine.quote(begin), "o.id")
    _want(connection, begin, f"{name} IN ({wanted})")
    find_documents(connection, base.store, runs, draft.folder)
    with engine.reading("the last snapshot"):
        connection.execute(_SQL.get("recovered_versions", linked=LINKED))


def _want(connection: engine.Connection, begin: str, fresh: str, touched: str = "false") -> None:
    """Make `wanted_templates`: those for which one of these conditions on `obi o` holds."""
    with engine.reading("the logs of the runs"):
        name = oai_name.template_identifier_sql(engine.quote(begin), "o.id")
        connection.execute(_WANTED_TEMPLATES.format(identifier=name, fresh=fresh, touched=touched))
