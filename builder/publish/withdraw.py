"""Withdraw: items become tombstones with a reason; a purge removes their metadata.

A tombstone keeps its identifier, sets and reason. It stays even if its archive is ingested again.
`reinstate` reverses a withdrawal.

The metadata is removed from the current data files. Only files with a version of such an item are
rewritten, without that version. The details of faults of its records are removed as well, because
they may quote the records. Dumps are rewritten.
"""

from dataclasses import dataclass, field

from builder.kinds import KINDS
from builder.kinds.kind import KindChange, KindCounts
from builder.outputs.follow import change_store
from builder.publish import provenance
from builder.publish.purge import announce_purge, complete_purges, find_all_versions
from builder.publish.selection import Preview, Selection, choose, names_of, preview
from builder.runtime import Runtime
from builder.snapshot import lookup, scratch_tables, words
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import find_files, rows_of
from builder.snapshot.tables import SnapshotTables
from builder.snapshot.transaction import Change, ChangeResult, Transaction
from functions.config.configuration import Configuration
from functions.snapshot import layout, schema
from functions.snapshot.store import Writer
from functions.store import engine

_FILES = engine.table("$files")
_POSITIONS = "SELECT position FROM item_versions"
# The copied set may be a parent of a set of the item.
_LISTINGS = (
    "SELECT array_to_string(parts[:unnest(range(1, len(parts) + 1))], ':'), position FROM ("
    "SELECT position, string_split(unnest(sets), ':') AS parts FROM item_versions)"
)
_WITHDRAWN_PLACES = (
    "CREATE OR REPLACE TABLE withdrawn_places AS SELECT DISTINCT source, place FROM item_versions "
    "WHERE source IS NOT NULL"
)
_KEPT = f"SELECT * FROM {_FILES} WHERE position NOT IN ({_POSITIONS}) ORDER BY "
_FAULTS = (
    f"SELECT * REPLACE ({provenance.FAULT_DETAIL} AS detail) FROM {_FILES} f "
    f"ORDER BY {provenance.provenance_order('faults')}"
)
EMPTY = ", ".join(f"NULL::{column.type} AS {column.name}" for column in schema.CONTENT)
CREATE_SUPERSEDED = f"CREATE TABLE superseded_versions AS SELECT {schema.SUPERSEDED} FROM "


def remove_versions(connection: engine.Connection, draft: Draft) -> None:
    """Rewrite the draft's files that hold rows in `item_versions`."""
    with engine.reading("the last snapshot"):
        connection.execute(_WITHDRAWN_PLACES)
    lookup.scrub_urls(connection, draft)
    words.scrub(connection, draft)
    _rewrite(connection, draft, "records", _POSITIONS, f"{_KEPT} position")
    _rewrite(connection, draft, layout.SINGLES, _POSITIONS, f"{_KEPT} position")
    _rewrite(connection, draft, "copies", _LISTINGS, f"{_KEPT} listing, position")
    _rewrite(connection, draft, "faults", "SELECT DISTINCT source FROM withdrawn_places", _FAULTS)


def _rewrite(connection: engine.Connection, draft: Draft, table: str, keys: str, sql: str) -> None:
    """Rewrite the files of a table that can hold the keys, except new files without such rows."""
    with engine.reading("the last snapshot"):
        files = find_files(connection, draft, table, (keys, {}))
    # Without an earlier table, this draft wrote single versions of all records.
    new = set() if table == layout.SINGLES else set(draft.written)
    rewritten = {}
    for file in files:
        if file.key not in new:
            query: Query = (sql, {"files": draft.paths([file])})
            rewritten[file.key] = draft.write(table, [query])
    if rewritten:
        draft.substitute(table, rewritten)


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The result of a withdrawal: the change, the identifiers of its items, and retired snapshots.

    If there was nothing to do, `reason` is the common reason of all these items, or None if they
    differ.
    """

    built: ChangeResult
    identifiers: tuple[str, ...]
    retired: tuple[int, ...] = ()
    reason: str | None = None


def withdraw(
    store: Writer,
    configuration: Configuration,
    runtime: Runtime,
    selection: Selection,
    reason: str,
    *,
    purge: bool = False,
) -> Withdrawn:
    """Withdraw the selected items, and return when that is in effect.

    `purge` also removes their metadata (builder.publish.purge). Items that are already withdrawn
    do not change. Raises NothingSelectedError, OutputError and the errors of transaction.revise
    and expiry.retire.
    """
    change = Withdrawal(selection, reason, purge)
    built = change_store(store, configuration, runtime, change)
    retired = complete_purges(store, configuration, runtime)
    return Withdrawn(built, change.identifiers, retired, change.standing)


def preview_selection(
    store: Writer,
    configuration: Configuration,
    runtime: Runtime,
    selection: Selection,
    most: int | None,
) -> Preview:
    """Return a preview of the items to be withdrawn, at most `most` of them; change nothing.

    Raises NothingSelectedError, NothingPublished and StoreError.
    """
    base = Transaction.of(store, configuration, runtime)
    with base.draft() as (connection, draft):
        choose(connection, draft, selection)
        with engine.reading("the last snapshot"):
            connection.execute("DELETE FROM selected_items WHERE reason IS NOT NULL")
        return preview(connection, "selected_items", most)


@dataclass
class Withdrawal(Change):
    """The change that withdraws items."""

    selection: Selection
    reason: str
    purge: bool = False
    identifiers: tuple[str, ...] = field(default=(), init=False)
    standing: str | None = field(default=None, init=False)

    def build(self, base: Transaction) -> ChangeResult:
        """Make tombstones, and rewrite the files with the versions that they replace."""
        with base.draft() as (connection, draft):
            choose(connection, draft, self.selection)
            with engine.reading("the last snapshot"):
                # A tombstone without a reason waits for its archive, so it can be withdrawn again.
                connection.execute(
                    "CREATE TABLE withdrawn_items AS SELECT * FROM selected_items "
                    "WHERE reason IS NULL"
                )
                count = rows_of(connection, "withdrawn_items")
                connection.execute(
                    "CREATE TABLE prepared_versions AS SELECT identifier, kind, true AS deleted, "
                    f"$reason::VARCHAR AS reason, sets, left_sets, {EMPTY} FROM withdrawn_items",
                    {"reason": self.reason},
                )
                connection.execute(scratch_tables.NO_INTAKE_VERSIONS)
                connection.execute(scratch_tables.NEW_VERSIONS)
                connection.execute(f"{CREATE_SUPERSEDED} withdrawn_items")
                self.identifiers = names_of(connection, "selected_items")
            records = sum(base.before.kinds().values())
            if self.purge:
                announce_purge(base.store, self.identifiers)
            if not count:
                with engine.reading("the last snapshot"):
                    reasons = connection.execute(
                        "SELECT DISTINCT reason FROM selected_items LIMIT 2"
                    ).fetchall()
                self.standing = str(reasons[0][0]) if len(reasons) == 1 else None
                return ChangeResult(None, records)
            change = KindChange(base, connection, draft)
            counts = sum((kind.settle(change) for kind in KINDS), KindCounts())
            find_all_versions(connection, draft, "withdrawn_items")
            for kind in KINDS:
                kind.inherit(change)
            after = SnapshotTables(connection, draft, base.before).items(base.runtime.progress)
            remove_versions(connection, draft)
            for kind in KINDS:
                kind.scrub(change)
            return ChangeResult(
                base.manifest(after, draft),
                records,
                withdrawn=count,
                moved=counts.moved,
                keys=tuple(draft.written),
            )
