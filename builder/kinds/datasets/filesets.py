"""Filesets as items: results of requests change the items of datasets and their tables.

Of several results for one version, the newest counts, whatever URL was requested (see
builder.kinds.datasets.dataset_versions). A result that lists nothing leaves the item unchanged. For
a withdrawn item, the tables record only that the dataset was requested.
"""

from builder.intake.intake import FILESETS
from builder.intake.lines import line_table
from builder.kinds.datasets import dataset_versions
from builder.kinds.datasets.dataset_versions import DATASET
from builder.kinds.kind import KindChange, KindCounts
from builder.kinds.versions import add_versions
from builder.snapshot.draft import Draft
from builder.snapshot.lookup import fetch_groups, find, put, rows_of
from builder.snapshot.sql import Statements
from builder.sources.datasets.entry import DELETE, LIST
from functions.kinds import WITH_FILES
from functions.snapshot import item_tables
from functions.store import engine

_SQL = Statements(__file__)

RESULTS, FILES = "ingest_fileset_platform", "files"
"""The tables that hold only filesets."""

_KINDS = engine.texts(WITH_FILES)
_RESULT = ", ".join(c.name for c in item_tables.RESULT if c.name != "identifier")
_DESCRIBING = frozenset(
    {"total_size", "file_count", "manifest", "detail", "until", "archiveorg_item_name"}
    | {"archiveorg_item_bundle_path", "web_bundle_url", "web_bundle_dt"}
)
"""Columns of a result that describe the dataset."""
_EARLIER = engine.table("$earlier")
_NO_EARLIER = (
    "(SELECT "
    + ", ".join(f"NULL::{c.type} AS {c.name}" for c in item_tables.RESULT)
    + " WHERE false)"
)
_EARLIER_RESULTS = (
    "CREATE TABLE earlier_results AS SELECT * FROM {} WHERE base_url IN (FROM requested_urls)"
)
_UNCHANGED = (
    "(SELECT identifier FROM decided_versions WHERE NOT deleted "
    "AND identifier NOT IN (SELECT identifier FROM revised_filesets))"
)
_KNOWN = "SELECT identifier FROM listed_versions WHERE reason IS NOT NULL"
# Results from before the dataset was listed have no identifier, but still belong to it.
_NAMES = ", ".join(
    f"url_decode(string_split(string_split(identifier, ':')[3], ',')[{n}])" for n in (2, 3, 4)
)
_IS_OF = (
    "(identifier IN ({withdrawn}) OR identifier IS NULL AND "
    "(platform_name, platform_domain, platform_id) IN "
    f"(SELECT ({_NAMES}) FROM ({{withdrawn}})))"
)
_FILE = ", ".join(c.name for c in item_tables.FILE if c.name != "identifier")
_FORM = ", ".join(f'"{c.name}": "{c.type}"' for c in item_tables.FILE if c.name != "identifier")
_FILES_OF_DATASETS = (
    f"SELECT identifier, {_FILE} FROM (SELECT identifier, unnest(from_json(document -> '$.files', "
    f"'[{{{_FORM}}}]'), recursive := true) FROM prepared_versions WHERE kind IN {_KINDS} "
    "AND NOT deleted)"
)


def revise(change: KindChange) -> KindCounts:
    """Add the changes of datasets in the intake.

    They go to `prepared_versions` and `superseded_versions`. Also writes the tables of filesets.
    With `fileset.follow_removals`, items whose platform removed them are deleted. Datasets whose
    files have other digests than those that were published stay as they were published.
    """
    files = change.files("filesets")
    if not files:
        return KindCounts()
    change.has_rows = True
    base, connection, draft = change.base, change.connection, change.draft
    before = base.before
    with engine.reading("the intake"):
        connection.execute(
            _SQL.get("intake_results", rows=line_table(files, FILESETS)),
            {"files": list(files), "namespace": before.namespace},
        )
        connection.execute(
            "CREATE TABLE requested_urls AS SELECT DISTINCT base_url FROM intake_results"
        )
    with engine.reading("the last snapshot"):
        earlier = fetch_groups(connection, draft, RESULTS, ("FROM requested_urls", {}))
        values = {"earlier": earlier} if earlier else {}
        connection.execute(_EARLIER_RESULTS.format(_EARLIER if earlier else _NO_EARLIER), values)
        connection.execute(_SQL.get("stale_results"))
        connection.execute(_SQL.get("result_datasets", dataset=DATASET))
        find(connection, draft, "result_datasets")
        count = rows_of(connection, "result_datasets")
        connection.execute(_SQL.get("sibling_versions"))
        if rows_of(connection, "result_datasets") > count:
            find(connection, draft, "result_datasets")
        connection.execute(_SQL.get("identified_results", delete=DELETE, list=LIST))
        dataset_versions.decide(connection, base.configuration["fileset.follow_removals"])
        altered = dataset_versions.refuse_altered(connection)
        # The whole table of results is read for this, unless all changes are later.
        if dataset_versions.count_late(connection, before.effective) and (
            published := draft.paths(draft.files(draft.tables.get(RESULTS, ())))
        ):
            values = {"results": published, "telling": list(dataset_versions.TELLING)}
            connection.execute(dataset_versions.OUTDATED_VERSIONS, values)
        dataset_versions.relate(connection)
        counts = add_versions(connection, "revised_filesets")
        connection.execute(_SQL.get("newest_results", result=_RESULT))
        put(
            connection,
            draft,
            RESULTS,
            "base_url",
            "requested_urls",
            _without_withdrawn("newest_results", _KNOWN),
        )
        rewrite_files(change)
        unchanged = rows_of(connection, _UNCHANGED)
    for key in altered:
        base.runtime.say(
            f"{key} was altered together with its record since it was published: its dataset stays "
            "as published; restore both from a copy (`sheaf verify`)"
        )
    return KindCounts(*counts, unchanged)


def rewrite_files(change: KindChange) -> None:
    """Rewrite the table of files for the datasets in `prepared_versions`."""
    connection, draft = change.connection, change.draft
    with engine.reading("the last snapshot"):
        connection.execute(
            "CREATE TABLE prepared_datasets AS SELECT identifier FROM prepared_versions "
            f"WHERE kind IN {_KINDS}"
        )
        if rows_of(connection, "prepared_datasets"):
            put(connection, draft, FILES, "identifier", "prepared_datasets", _FILES_OF_DATASETS)


def clear_withdrawn_results(change: KindChange) -> None:
    """Rewrite the tables without the descriptions of the datasets that are withdrawn."""
    rewrite_files(change)
    connection, draft = change.connection, change.draft
    files = draft.paths(draft.files(draft.tables.get(RESULTS, ())))
    if not files:
        return
    withdrawn = (
        f"SELECT identifier FROM prepared_versions WHERE reason IS NOT NULL AND kind IN {_KINDS}"
    )
    with engine.reading("the last snapshot"):
        connection.execute(
            "CREATE TABLE withdrawn_urls AS SELECT DISTINCT base_url "
            f"FROM {engine.table('$files')} "
            f"WHERE {_IS_OF.format(withdrawn=withdrawn)}",
            {"files": files},
        )
        if not rows_of(connection, "withdrawn_urls"):
            return
        connection.execute(
            f"CREATE TABLE withdrawn_results AS SELECT * FROM {engine.table('$files')} "
            "WHERE base_url IN (FROM withdrawn_urls)",
            {"files": files},
        )
        put(
            connection,
            draft,
            RESULTS,
            "base_url",
            "withdrawn_urls",
            _without_withdrawn("withdrawn_results", withdrawn),
        )


def shows(connection: engine.Connection, draft: Draft, wanted: str) -> bool:
    """Return whether the table of results describes a dataset that `wanted` identifies."""
    datasets = f"SELECT identifier FROM {wanted} WHERE identifier LIKE 'oai:%:dataset,%'"
    with engine.reading("an older snapshot"):
        if not rows_of(connection, f"({datasets})"):
            return False
        files = draft.paths(draft.files(draft.tables.get(RESULTS, ())))
        described = " OR ".join(f"{name} IS NOT NULL" for name in sorted(_DESCRIBING))
        sql = (
            f"SELECT count(*) FROM {engine.table('$files')} "
            f"WHERE {_IS_OF.format(withdrawn=datasets)} AND ({described})"
        )
        return bool(files) and bool(connection.execute(sql, {"files": files}).fetchall()[0][0])


def _without_withdrawn(table: str, withdrawn: str) -> str:
    """Return a query of results with the descriptions of withdrawn datasets set to NULL."""
    which = _IS_OF.format(withdrawn=withdrawn)
    columns = ", ".join(
        f"if({which}, NULL, {c.name}) AS {c.name}" if c.name in _DESCRIBING else c.name
        for c in item_tables.RESULT
    )
    return f"SELECT {columns} FROM {table}"
