"""Templates as items, and the tables of the obi store, from the store's new runs.

A publish adds versions of the templates that new runs changed. A template also changes when a file
that it names is stored for the first time, or under another id, because formats link to it. Other
bytes behind a URL do not change it. A lost template becomes a tombstone and keeps its sets. A
template that is back makes its item live again, unless the item was withdrawn.

The tables are the result of the replay, in full and in one order. The same runs give the same
files. So a publish shares unchanged files, and anyone can rebuild them from the store.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.obi import log_table, replay
from builder.obi.content import FILE, SOURCE, TEMPLATE
from builder.obi.history import Committed, history
from builder.publish.precedence import LEFT
from builder.snapshot import scratch_tables
from builder.snapshot.draft import Draft
from builder.snapshot.lookup import find
from builder.snapshot.sql import Statements
from builder.snapshot.transaction import Transaction
from functions.config.configuration import Configuration
from functions.database import engine
from functions.snapshot import oai_name, obi, schema
from functions.snapshot.errors import ConfigurationError, DamagedStore
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Reader

_SQL = Statements(__file__)

KIND = "template"
FAULTS = "SELECT * FROM fault WHERE tist > {run}"
"""The query of the faults of runs after `run`."""
SOURCES = (
    "SELECT replace(v.id, 'RePEc-file:', '') AS source, v.sha256 AS digest, "
    "replace(v.id, 'RePEc-file:', '') AS path, 'redif' AS format, v.bytes, 0::BIGINT AS captures, "
    "0::BIGINT AS skipped, coalesce(f.faults, 0) AS faults, []::VARCHAR[] AS collections, "
    "NULL::VARCHAR AS software, NULL::VARCHAR AS operator, NULL::VARCHAR AS part_of, "
    "NULL::VARCHAR AS description, NULL::VARCHAR AS reading FROM version v "
    "LEFT JOIN (SELECT tist, source, count(*) AS faults FROM fault GROUP BY ALL) f "
    "ON f.tist = v.tist AND f.source = replace(v.id, 'RePEc-file:', '') "
    f"WHERE v.kind = '{SOURCE}' AND v.tist > {{run}}"
)
"""The query of the ReDIF files that runs after `run` found new or changed."""

_WANTED_TEMPLATES = f"""
CREATE TABLE wanted_templates AS
SELECT {{identifier}} AS identifier, o.id AS handle, o.noted, o.lost IS NOT NULL AS lost,
    {{fresh}} AS fresh
FROM obi o WHERE o.kind = '{TEMPLATE}' AND ({{fresh}} OR {{touched}})
"""
_TOUCHED = f"""
o.id IN (SELECT handle FROM refipo WHERE id IN (
    SELECT id FROM version WHERE kind = '{FILE}' AND tist > {{since}}
    UNION ALL SELECT origin FROM redirect WHERE tist > {{since}}))
"""
_PUBLISHED = _SQL.get("published_documents")
_LINKED = _SQL.get("linked_documents", kind=FILE, member=obi.GATHERED)
_LEFT = LEFT.format(earlier="list_concat(o.sets, o.left_sets)", now="t.sets")
_REVISED_TEMPLATES = _SQL.get("revised_templates", left=_LEFT)
_ADDED = _SQL.get("prepared_versions", kind=KIND)
_REPLACED = _SQL.get("superseded_versions", superseded=schema.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class RevisedTemplates:
    """Numbers of templates: new items, changed items, and deleted ones among these."""

    new: int = 0
    changed: int = 0
    deleted: int = 0


def prefix(configuration: Configuration, before: Manifest) -> str:
    """Return the text before handles in identifiers.

    Raises ConfigurationError if templates were published with another one.
    """
    found = str(configuration["redif.identifier_prefix"]) or oai_name.to_oai(before.namespace, "")
    if before.prefix not in ("", found):
        raise ConfigurationError(
            f"redif.identifier_prefix is {found}, but templates were published with "
            f"{before.prefix}: identifiers must not change, so restore that value or use another "
            "store"
        )
    return found


def revise(
    connection: engine.Connection,
    draft: Draft,
    store: Reader,
    runs: Sequence[Committed],
    begin: str,
    since: int,
) -> RevisedTemplates:
    """Add the templates that runs after `since` changed, or whose files they stored.

    They go to `prepared_versions` and `superseded_versions`. The replay of all `runs` is in the
    database; `begin` is the text before handles. Raises DamagedStore if a run lacks the document of
    a template.
    """
    fresh = f"o.id IN (SELECT id FROM incidence WHERE kind = '{TEMPLATE}' AND tist > {int(since)})"
    touched = _TOUCHED.format(since=int(since))
    meet(connection, store, runs, begin, fresh, draft.folder, touched)
    with engine.reading("the last snapshot"):
        find(connection, draft, "wanted_templates")
        connection.execute(_PUBLISHED)
        connection.execute(_LINKED)
        connection.execute(_REVISED_TEMPLATES)
        connection.execute(_ADDED)
        connection.execute(_REPLACED)
        ((new, changed, deleted),) = connection.execute(
            "SELECT count(*) FILTER (WHERE old_position IS NULL), count(old_position), "
            "count(*) FILTER (WHERE deleted) FROM revised_templates"
        ).fetchall()
    return RevisedTemplates(int(new), int(changed), int(deleted))


def recover(connection: engine.Connection, draft: Draft, base: Transaction) -> None:
    """Add to `recovered_versions` the templates of `withdrawn_items` as the obi store has them now.

    The state is that after the last published run. Lost templates are not added.
    """
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
    meet(connection, base.store, runs, begin, f"{name} IN ({wanted})", draft.folder)
    with engine.reading("the last snapshot"):
        connection.execute(_LINKED)
        connection.execute(
            "INSERT INTO recovered_versions SELECT w.* REPLACE (false AS deleted, NULL AS reason, "
            "t.sets AS sets, t.document AS document) FROM withdrawn_items w "
            "JOIN wanted_templates USING (identifier) JOIN template_documents t USING (handle)"
        )


def meet(
    connection: engine.Connection,
    store: Reader,
    runs: Sequence[Committed],
    begin: str,
    fresh: str,
    folder: Path,
    touched: str = "false",
) -> None:
    """Make `wanted_templates` and, from the runs, `template_documents` of the fresh ones.

    `fresh` and `touched` are conditions on `obi o`; templates for which one holds are wanted.
    Raises DamagedStore.
    """
    with engine.reading("the logs of the runs"):
        name = oai_name.template_identifier_sql(engine.quote(begin), "o.id")
        connection.execute(_WANTED_TEMPLATES.format(identifier=name, fresh=fresh, touched=touched))
        connection.execute(scratch_tables.create("template_documents"))
        noted = connection.execute(
            "SELECT DISTINCT noted FROM wanted_templates WHERE fresh AND NOT lost ORDER BY noted"
        ).fetchall()
    by_tist = {run.tist: run for run in runs}
    for (tist,) in noted:
        run, copy = by_tist[tist], folder / "documents"
        path = log_table.local_file(store, run.documents_key, run.documents, copy)
        try:
            with engine.reading(f"the documents of the run {tist}"):
                documents = log_table.documents_sql(run.format, str(path))
                sql = _SQL.get("template_documents", documents=documents)
                connection.execute(sql, {"tist": tist})
        finally:
            copy.unlink(missing_ok=True)
    with engine.reading("the logs of the runs"):
        lacking = connection.execute(
            "SELECT handle, noted FROM wanted_templates ANTI JOIN template_documents "
            "USING (handle) WHERE fresh AND NOT lost ORDER BY ALL LIMIT 1"
        ).fetchall()
    for handle, tist in lacking:
        raise DamagedStore(
            f"{by_tist[tist].documents_key} is damaged: it lacks the document of {handle}"
        )


def write_obi_tables(draft: Draft) -> None:
    """Replace the draft's obi tables by those that the replay made in the database."""
    for table in obi.TABLES:
        leaves = draft.leaves(draft.write(table, [(replay.query(table), {})]))
        draft.tables.pop(table, None)
        if leaves:
            draft.tables[table] = leaves
