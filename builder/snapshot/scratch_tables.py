"""Scratch tables of a publish, a withdrawal and a reinstatement, with writers and readers.

They exist in the DuckDB database of one change and are gone with it. Modules create and read them
by name, so this list is their contract: it names each module that writes or reads a table.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from functions.snapshot import item_tables, obi, schema


@dataclass(frozen=True, slots=True)
class ScratchTable:
    """A table or view: its columns as in CREATE TABLE, what it holds, and its modules.

    `writers` create, fill or change it. `readers` only read it. Both are below `builder`.
    """

    name: str
    columns: str
    holds: str
    writers: tuple[str, ...]
    readers: tuple[str, ...] = ()


def create(name: str) -> str:
    """Return the statement that makes the table anew, without rows."""
    return f"CREATE OR REPLACE TABLE {name} ({TABLES[name].columns})"


def ensure(name: str) -> str:
    """Return the statement that makes the table, without rows, if it does not exist."""
    return f"CREATE TABLE IF NOT EXISTS {name} ({TABLES[name].columns})"


def _columns(columns: Iterable[schema.Column]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns)


def _table(name: str, columns: str, holds: str, writers: str, readers: str = "") -> ScratchTable:
    return ScratchTable(name, columns, holds, tuple(writers.split()), tuple(readers.split()))


_TYPES = {column.name: column.type for column in schema.TABLES["records"]}
_RECORD = _columns(schema.TABLES["records"])
_VERSION = _columns(c for c in schema.TABLES["records"] if c.name not in ("position", "sequence"))
_CAPTURE = _columns(schema.CAPTURE)
_SUPERSEDED = ", ".join(f"{name} {_TYPES[name]}" for name in schema.SUPERSEDED.split(", "))
_COPY = (
    "identifier VARCHAR, rank BIGINT, lists VARCHAR[][], "
    f"{_columns(c for c in schema.CAPTURE if c.name not in schema.LOCATION)}, "
    f"{', '.join(f'{name} {_TYPES[name]}' for name in sorted(schema.LOCATION))}"
)
_FAULT, _SOURCE = _columns(schema.TABLES["faults"]), _columns(schema.TABLES["sources"])
_RESULT = _columns(item_tables.RESULT)
_TOLD = "kind VARCHAR, sets VARCHAR[], document VARCHAR"
_GIVEN_RESULT = f"deed VARCHAR, {_TOLD}, {_RESULT}, dataset VARCHAR, version VARCHAR, turn BIGINT"
_STEP = f"identifier VARCHAR, {_TOLD}, updated TIMESTAMP"
_REVISED = (
    "deleted BOOLEAN, reason VARCHAR, sets VARCHAR[], left_sets VARCHAR[], document VARCHAR, "
    "old_position BIGINT"
)
_COLLECTION = "identifier VARCHAR, set_spec VARCHAR, deleted BOOLEAN, document VARCHAR"
_SOUGHT = "key BIGINT, url INTEGER, moment BIGINT, address VARCHAR, second BIGINT, digest VARCHAR"
_KEY = "key BIGINT, url INTEGER, moment BIGINT"
_ORIGINAL = (
    "position BIGINT, identifier VARCHAR, address VARCHAR, second BIGINT, digests VARCHAR[], "
    "damaged BOOLEAN, content_charset VARCHAR, content_charset_source VARCHAR, "
    "content_languages VARCHAR, content_mime_detected VARCHAR, content_mime_type VARCHAR, "
    "title VARCHAR, sets VARCHAR[]"
)
_COUNT = "value VARCHAR, status SMALLINT, captures BIGINT, bytes BIGINT"
_POSITION, _IDENTIFIER = "position BIGINT", "identifier VARCHAR"
_REVISERS = (
    "publish.collections publish.filesets publish.harvested publish.revisits publish.templates"
)

_CHANGES = "publish.publish withdraw.reinstate withdraw.withdraw"


_DECLARED = (
    # What every change has.
    _table(
        "listed_versions",
        _RECORD,
        "The listed versions of the items that were looked up last.",
        "snapshot.lookup publish.publish",
        "publish.captures publish.collections publish.filesets publish.harvested "
        "publish.dataset_versions publish.templates withdraw.purge withdraw.reinstate "
        "withdraw.selection",
    ),
    _table(
        "prepared_versions",
        _VERSION,
        "Versions to publish, except captures as the intake has them; templates without content.",
        f"publish.captures {_REVISERS} {_CHANGES}",
        "snapshot.tables",
    ),
    _table(
        "intake_versions",
        _VERSION,
        "View of new captures that are published as they are in the intake; often empty.",
        f"publish.captures {_CHANGES}",
        "publish.revisits",
    ),
    _table(
        "new_versions",
        _VERSION,
        "View of all versions to publish: `prepared_versions` and `intake_versions`.",
        f"publish.captures publish.revisits {_CHANGES}",
        "publish.collections publish.revisit_search snapshot.figures snapshot.tables",
    ),
    _table(
        "superseded_versions",
        _SUPERSEDED,
        "The listed versions that `new_versions` replace.",
        f"publish.captures {_REVISERS} {_CHANGES}",
        "publish.revisit_search snapshot.figures snapshot.set_listings snapshot.tables",
    ),
    # Look-ups.
    _table(
        "version_positions",
        "identifier VARCHAR, position BIGINT",
        "The possible positions of the versions of the items that were looked up last.",
        "snapshot.lookup",
        "withdraw.purge",
    ),
    _table(
        "leftover_urls",
        _POSITION,
        "Positions whose rows leave the table of URLs (temporary table).",
        "snapshot.lookup",
    ),
    # Captures, faults and sources of the intake.
    _table("repeated_captures", _IDENTIFIER, "Captures the intake repeats.", "publish.captures"),
    _table(
        "intake_files",
        "part VARCHAR, number BIGINT",
        "The intake's files of captures and their order.",
        "publish.captures",
    ),
    _table(
        "capture_copies",
        _COPY,
        "Copies of the repeated captures, the leading one first.",
        "publish.captures",
    ),
    _table(
        "united_captures",
        f"identifier VARCHAR, sets VARCHAR[], {_CAPTURE}",
        "One row for each repeated capture, united from its copies.",
        "publish.captures",
    ),
    _table(
        "intake_captures",
        f"identifier VARCHAR, sets VARCHAR[], {_CAPTURE}",
        "View of the intake's captures, one row for each.",
        "publish.captures",
        "publish.precedence",
    ),
    _table(
        "undated_revisits",
        "identity VARCHAR, url VARCHAR, id VARCHAR, date VARCHAR, surt VARCHAR, unchanged VARCHAR",
        "Revisits of the intake that declare no date of their original.",
        "publish.references",
    ),
    _table(
        "dated_originals",
        "url VARCHAR, date VARCHAR, id VARCHAR",
        "The captures that they may refer to.",
        "publish.references",
    ),
    _table(
        "earlier_captures",
        _POSITION,
        "Positions of published captures that they may refer to.",
        "publish.references",
    ),
    _table(
        "declared_originals",
        "identifier VARCHAR, url VARCHAR, date VARCHAR",
        "URL and date of the original of each of these revisits, as far as found.",
        "publish.references",
        "publish.captures",
    ),
    _table(
        "own_versions",
        f"{_RECORD}, published VARCHAR[]",
        "View of `listed_versions` without inherited values; `published` are all their sets.",
        "publish.captures",
        "publish.precedence",
    ),
    _table(
        "compared_captures",
        "old_position BIGINT, identifier VARCHAR, sets VARCHAR[], "
        f"{_CAPTURE}, left_sets VARCHAR[], changed BOOLEAN",
        "Captures that are in the intake and published: united, and whether that is a change.",
        "publish.precedence publish.captures",
    ),
    _table(
        "withdrawn_places",
        "source VARCHAR, place BIGINT",
        "File and offset of records of withdrawn items: details of their faults are not published.",
        "publish.captures withdraw.withdraw",
    ),
    _table("intake_faults", _FAULT, "Faults of the intake and new obi runs.", "publish.captures"),
    _table("added_faults", _FAULT, "Those that the last snapshot lacks.", "publish.captures"),
    _table(
        "intake_sources",
        _SOURCE,
        "Files that were read, of the intake and of new runs.",
        "publish.captures",
    ),
    _table(
        "added_sources",
        _SOURCE,
        "Those that the last snapshot lacks.",
        "publish.captures",
        "publish.publish",
    ),
    # Revisits.
    _table(
        "changed_originals",
        _KEY,
        "Keys of originals that are added, changed or deleted.",
        "publish.revisits",
    ),
    _table(
        "affected_positions",
        _POSITION,
        "Positions of published revisits whose original may differ now.",
        "publish.revisits",
    ),
    _table("affected_revisits", _RECORD, "The published revisits there.", "publish.revisits"),
    _table(
        "pending_revisits",
        f"{_VERSION}, earlier VARCHAR[], old_position BIGINT",
        "New and affected revisits without inherited values.",
        "publish.revisits",
        "publish.revisit_search",
    ),
    _table(
        "revisit_matches",
        "identifier VARCHAR, rule INTEGER, goal BIGINT, original BIGINT",
        "Original of each revisit, the rule that found it, and the original's date as `goal`.",
        "publish.revisits publish.revisit_search",
        "snapshot.tables",
    ),
    _table(
        "matched_originals",
        _ORIGINAL,
        "The originals that were found, and their values.",
        "publish.revisit_search",
        "publish.revisits",
    ),
    _table(
        "resolved_revisits",
        "identifier VARCHAR, kind VARCHAR, deleted BOOLEAN, "
        f"reason VARCHAR, sets VARCHAR[], {_CAPTURE}, document VARCHAR, old_position BIGINT, "
        "left_sets VARCHAR[]",
        "The pending revisits with the values of their originals.",
        "publish.revisits",
    ),
    _table("changed_revisits", _POSITION, "Positions of those that changed.", "publish.revisits"),
    _table(
        "former_originals",
        f"{_KEY}, position BIGINT",
        "Keys of all versions of originals that are withdrawn.",
        "publish.revisits",
    ),
    _table(
        "inheriting_revisits",
        _POSITION,
        "Positions of revisits that may have values of these originals.",
        "publish.revisits",
    ),
    # Search for originals.
    _table(
        "revisit_searches",
        "identifier VARCHAR, address VARCHAR, digest VARCHAR, "
        "referred VARCHAR, second BIGINT, moment BIGINT, url_hash INTEGER, digest_key BIGINT, "
        "date_key BIGINT, upto BIGINT, since BIGINT",
        "Keys that each revisit searches for, and the seconds from which it searches on.",
        "publish.revisit_search",
    ),
    _table(
        "new_originals",
        f"position BIGINT, {_VERSION}",
        "New originals with a sought key, at negative positions.",
        "publish.revisit_search",
    ),
    _table(
        "candidate_originals",
        f"{_KEY}, position BIGINT",
        "Keys of live originals that have a sought key.",
        "publish.revisit_search",
    ),
    _table(
        "best_candidates",
        f"identifier VARCHAR, {_SOUGHT}, target BIGINT",
        "The best key of each revisit without an original; `target` numbers equal searches.",
        "publish.revisit_search",
    ),
    _table(
        "candidate_positions",
        f"target BIGINT, {_SOUGHT}, position BIGINT",
        "Positions of the originals with these keys.",
        "publish.revisit_search",
    ),
    _table("candidate_records", _ORIGINAL, "The originals there.", "publish.revisit_search"),
    _table(
        "best_originals",
        "target BIGINT, position BIGINT",
        "The original of each search that has one.",
        "publish.revisit_search",
    ),
    _table(
        "failed_candidates",
        f"identifier VARCHAR, {_SOUGHT}, target BIGINT",
        "Best candidates that turned out to be no original.",
        "publish.revisit_search",
    ),
    _table(
        "near_candidates",
        _POSITION,
        "Positions near in time to them, which may be gone as well.",
        "publish.revisit_search",
    ),
    # Collections.
    _table(
        "collection_changes",
        "collection VARCHAR, sign INTEGER, bytes BIGINT, host VARCHAR, "
        "media_type VARCHAR, status VARCHAR, day VARCHAR",
        "Captures that each collection gains (1) and loses (-1).",
        "publish.collections",
    ),
    _table("touched_collections", "collection VARCHAR", "Those affected.", "publish.collections"),
    _table(
        "collection_tallies",
        "collection VARCHAR, facet VARCHAR, value VARCHAR, captures BIGINT, bytes BIGINT",
        "New tallies of the touched collections.",
        "publish.collections",
    ),
    _table(
        "collection_documents",
        _COLLECTION,
        "New documents of the touched collections.",
        "publish.collections",
    ),
    _table(
        "revised_collections",
        _COLLECTION,
        "Those that differ from the published ones.",
        "publish.collections",
    ),
    # Templates.
    _table(
        "wanted_templates",
        "identifier VARCHAR, handle VARCHAR, noted BIGINT, run BIGINT, lost BOOLEAN, fresh BOOLEAN",
        "Templates that may change: changed ones, others.",
        "publish.templates",
        "publish.template_documents",
    ),
    _table(
        "run_documents",
        "id VARCHAR, tist BIGINT, run BIGINT, sets VARCHAR[], document VARCHAR",
        "Runs' documents.",
        "publish.template_documents",
        "publish.templates",
    ),
    _table(
        "gathered_files",
        "handle VARCHAR, files VARCHAR",
        "Files of templates, as JSON.",
        "publish.template_documents",
        "publish.templates",
    ),
    _table(
        "compared_templates",
        "handle VARCHAR, sets VARCHAR[], digest VARCHAR",
        "Changed templates that may be as they are published.",
        "publish.templates",
    ),
    _table("differing_templates", "handle VARCHAR", "Those that are not.", "publish.templates"),
    _table(
        "revised_templates",
        "number BIGINT, identifier VARCHAR, handle VARCHAR, noted BIGINT, "
        "fresh BOOLEAN, deleted BOOLEAN, old_sets VARCHAR[], old_left_sets VARCHAR[], "
        "old_position BIGINT",
        "New versions, without content.",
        "publish.templates",
    ),
    # Filesets.
    _table("intake_results", _GIVEN_RESULT, "The intake's results, by `turn`.", "publish.filesets"),
    _table("requested_urls", "base_url VARCHAR", "URLs of these requests.", "publish.filesets"),
    _table("earlier_results", _RESULT, "Published results for these URLs.", "publish.filesets"),
    _table(
        "identified_results",
        f"{_GIVEN_RESULT}, known_version VARCHAR",
        "The same, each with its item.",
        "publish.filesets",
        "publish.dataset_versions",
    ),
    _table("result_datasets", _IDENTIFIER, "Items and versions of these.", "publish.filesets"),
    _table(
        "version_results",
        f"{_STEP}, turn BIGINT, stored BOOLEAN, gone BOOLEAN, closing BOOLEAN"
        ", status VARCHAR, detail VARCHAR",
        "Those of versions.",
        "publish.dataset_versions",
    ),
    _table(
        "decided_versions",
        f"{_STEP}, deleted BOOLEAN, old_document VARCHAR, old_kind VARCHAR, "
        "old_sets VARCHAR[], old_left_sets VARCHAR[], old_deleted BOOLEAN, old_reason VARCHAR, "
        "old_position BIGINT",
        "Versions as the results make them, and as they are listed.",
        "publish.dataset_versions",
        "publish.filesets",
    ),
    _table(
        "altered_versions",
        "identifier VARCHAR, path VARCHAR, key VARCHAR",
        "Files whose digests are not those that were published.",
        "publish.dataset_versions",
    ),
    _table(
        "related_versions",
        "identifier VARCHAR, versions JSON",
        "Neighbours of versions.",
        "publish.dataset_versions",
    ),
    _table(
        "revised_filesets",
        f"identifier VARCHAR, kind VARCHAR, {_REVISED}",
        "New versions of datasets.",
        "publish.dataset_versions",
        "publish.filesets",
    ),
    _table("newest_results", _RESULT, "The newest result for each URL.", "publish.filesets"),
    _table("prepared_datasets", _IDENTIFIER, "Those in `prepared_versions`.", "publish.filesets"),
    _table("withdrawn_urls", "base_url VARCHAR", "URLs of withdrawn datasets.", "publish.filesets"),
    _table("withdrawn_results", _RESULT, "Published results for these URLs.", "publish.filesets"),
    # Harvested items.
    _table(
        "harvested_records",
        "identifier VARCHAR, other VARCHAR, base_url VARCHAR, repository VARCHAR, id VARCHAR, "
        "prefix VARCHAR, deleted BOOLEAN, datestamp VARCHAR, harvested VARCHAR, specs VARCHAR[], "
        "sets VARCHAR[], digest VARCHAR, list_set VARCHAR, number BIGINT, place VARCHAR, "
        "places VARCHAR[], list VARCHAR, run VARCHAR, row BIGINT",
        "The last record of each item in each format and list, with its row in the intake.",
        "publish.sightings",
        "publish.harvested",
    ),
    _table(
        "earlier_sightings",
        _columns(item_tables.SIGHTINGS),
        "Published sightings of these items.",
        "publish.sightings",
    ),
    _table(
        "latest_sightings",
        f"{_columns(item_tables.SIGHTINGS)}, fresh BOOLEAN",
        "The last sighting in each list; `fresh` ones are of the intake.",
        "publish.sightings",
    ),
    _table(
        "decided_formats",
        "place VARCHAR, id VARCHAR, prefix VARCHAR, ended BOOLEAN, list VARCHAR, fresh BOOLEAN",
        "Whether each record is ended, and the list whose sighting gives its content.",
        "publish.sightings",
        "publish.harvested",
    ),
    _table("harvested_identifiers", _IDENTIFIER, "Identifiers they may get.", "publish.harvested"),
    _table(
        "assigned_identifiers",
        "place VARCHAR, id VARCHAR, identifier VARCHAR",
        "The identifier that each item gets.",
        "publish.harvested",
    ),
    _table(
        "listed_formats",
        "identifier VARCHAR, prefix VARCHAR, ended BOOLEAN, entry VARCHAR",
        "The published formats of these items.",
        "publish.harvested",
    ),
    _table(
        "item_formats",
        "identifier VARCHAR, prefix VARCHAR, ended BOOLEAN, was_ended BOOLEAN, number BIGINT, "
        "row BIGINT, digest VARCHAR, listed VARCHAR, listed_digest VARCHAR, entry VARCHAR",
        "Each format of each item: its listed entry, and the new one if that differs.",
        "publish.harvested",
    ),
    _table(
        "item_headers",
        "identifier VARCHAR, base_url VARCHAR, repository VARCHAR, "
        "id VARCHAR, specs VARCHAR[], sets VARCHAR[]",
        "The header that counts of each item.",
        "publish.harvested",
    ),
    _table(
        "harvested_items",
        "identifier VARCHAR, base_url VARCHAR, repository VARCHAR, "
        "id VARCHAR, specs VARCHAR[], sets VARCHAR[], gone BOOLEAN, differs BOOLEAN, "
        "empty BOOLEAN, document VARCHAR",
        "The items of these records.",
        "publish.harvested",
    ),
    _table(
        "revised_harvests",
        f"identifier VARCHAR, {_REVISED}",
        "New versions of harvested items.",
        "publish.harvested",
    ),
    _table(
        "forgotten_parts",
        _SOURCE,
        "Parts of harvests that are to be read again.",
        "publish.harvested",
    ),
    _table(
        "repository_set_names",
        "listing VARCHAR, name VARCHAR",
        "Names that repositories give to their sets.",
        "publish.harvested snapshot.set_listings",
    ),
    # Tables and sets of the next snapshot.
    _table(
        "superseded_positions",
        _POSITION,
        "Superseded positions of the runs that are rewritten.",
        "snapshot.tables",
    ),
    _table(
        "rewritten_spans",
        "first BIGINT, last BIGINT",
        "Spans that are rewritten.",
        "snapshot.tables",
        "snapshot.set_listings",
    ),
    _table(
        "item_groups",
        "number BIGINT, file_index UBIGINT, part BIGINT, sequence INTEGER, "
        "kind VARCHAR, deleted BOOLEAN, sets VARCHAR[], left_sets VARCHAR[], size BIGINT, "
        "first BIGINT, last BIGINT, several BOOLEAN",
        "Items of a row group with the same sets; `several` if a set may count them twice.",
        "snapshot.set_listings",
    ),
    _table(
        "parent_sets",
        "spec VARCHAR, listing VARCHAR",
        "Each set with itself and its parents.",
        "snapshot.set_listings",
    ),
    _table(
        "set_cells",
        "listing VARCHAR, run BIGINT, cell BIGINT, sequence INTEGER, "
        "kind VARCHAR, records BIGINT, live BIGINT, first BIGINT, last BIGINT",
        "Records of each set in each row group (`cell`).",
        "snapshot.set_listings",
    ),
    _table(
        "set_spread",
        "listing VARCHAR, run BIGINT, copied BOOLEAN",
        "Sets that are so scattered over a run that they are copied.",
        "snapshot.set_listings",
    ),
    _table(
        "set_ranges",
        "listing VARCHAR, first BIGINT, last BIGINT, copied BOOLEAN",
        "Ranges of positions of sets.",
        "snapshot.set_listings",
    ),
    _table(
        "set_counts",
        "listing VARCHAR, sequence INTEGER, kind VARCHAR, records BIGINT, live BIGINT",
        "Records of each set by sequence and kind; superseded ones are subtracted.",
        "snapshot.set_listings",
    ),
    _table("set_files", "home INTEGER, first VARCHAR", "Files of sets.", "snapshot.set_listings"),
    _table(
        "earlier_sets",
        "listing VARCHAR, turns INTEGER[], name VARCHAR",
        "Sets of the files that change.",
        "snapshot.set_listings",
    ),
    _table(
        "known_set_names",
        "listing VARCHAR, name VARCHAR",
        "Names that sets have.",
        "snapshot.set_listings",
    ),
    _table(
        "set_totals",
        "listing VARCHAR, live BIGINT, name VARCHAR, turns INTEGER[]",
        "Live records of each set, its name and the publishes that emptied or filled it.",
        "snapshot.set_listings",
    ),
    # Figures.
    _table("capture_changes", f"facet VARCHAR, {_COUNT}", "Gains and losses.", "snapshot.figures"),
    _table(
        "count_files",
        "home INTEGER, first VARCHAR, last VARCHAR",
        "Files of a table.",
        "snapshot.figures",
    ),
    _table("changed_counts", f"home INTEGER, {_COUNT}", "New rows.", "snapshot.figures"),
    # Withdrawals and reinstatements.
    _table(
        "wanted_items",
        _IDENTIFIER,
        "Items that were named by identifier.",
        "withdraw.selection withdraw.purge",
    ),
    _table(
        "selected_items",
        _RECORD,
        "Listed versions that match the operator's selection.",
        "withdraw.selection withdraw.withdraw",
        "withdraw.reinstate",
    ),
    _table(
        "withdrawn_items",
        _RECORD,
        "Those to withdraw; in a reinstatement, those that are withdrawn.",
        "withdraw.withdraw withdraw.reinstate",
        "publish.templates",
    ),
    _table(
        "item_versions",
        "position BIGINT, sets VARCHAR[], source VARCHAR, place BIGINT, surt VARCHAR, stamp BIGINT",
        "All versions whose metadata is removed, with their places and keys of URLs.",
        "withdraw.purge withdraw.withdraw publish.revisits",
        "snapshot.lookup snapshot.words",
    ),
    _table("unrecovered_items", _IDENTIFIER, "Those without metadata.", "withdraw.reinstate"),
    _table(
        "recovered_versions",
        _RECORD,
        "Last versions with metadata in older snapshots.",
        "withdraw.reinstate publish.templates",
    ),
)

TABLES = {table.name: table for table in _DECLARED}
"""By name. Names here have two words, so that they are found by their text."""

REPLAYED = (*obi.TABLES, "archive", "seen", "fault", "logged", "undone")
"""Made of the obi store's logs by builder.obi.replay (columns there), for publish.templates."""
