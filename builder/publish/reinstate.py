"""Reinstate: reverses the withdrawal of items.

Their metadata is taken from the newest older snapshot that has it. Templates are read again from
the obi store. An item without kept metadata stays a tombstone, without a reason, and returns with
the next ingest of its archive.
"""

from dataclasses import dataclass, field, replace

from builder.kinds import KINDS
from builder.kinds.kind import KindChange, KindCounts
from builder.kinds.sets import LEFT
from builder.outputs.follow import change_store
from builder.publish.purge import complete_purges
from builder.publish.selection import Preview, Selection, gather, names_of, preview
from builder.publish.withdraw import CREATE_SUPERSEDED, EMPTY, Withdrawn
from builder.runtime import Runtime
from builder.snapshot import scratch_tables
from builder.snapshot.draft import Draft
from builder.snapshot.expiry import snapshots
from builder.snapshot.lookup import find, rows_of
from builder.snapshot.tables import SnapshotTables
from builder.snapshot.transaction import Change, ChangeResult, NothingSelectedError, Transaction
from functions.config.configuration import Configuration
from functions.snapshot import schema
from functions.snapshot.errors import MissingObject
from functions.snapshot.store import Writer
from functions.store import engine

_FIELDS = ", ".join(f"r.{column.name}" for column in schema.CONTENT)


def reinstate(
    store: Writer, configuration: Configuration, runtime: Runtime, selection: Selection
) -> Withdrawn:
    """Reverse the withdrawal of the selected items, and return when that is in effect.

    Raises NothingSelectedError, OutputError and the errors of transaction.revise.
    """
    complete_purges(store, configuration, runtime)
    change = Reinstatement(selection)
    built = change_store(store, configuration, runtime, change)
    return Withdrawn(built, change.identifiers)


def preview_selection(
    store: Writer,
    configuration: Configuration,
    runtime: Runtime,
    selection: Selection,
    most: int | None,
) -> Preview:
    """Return a preview of the items to be reinstated, at most `most` of them; change nothing.

    Raises NothingSelectedError, NothingPublished and StoreError.
    """
    base = Transaction.of(store, configuration, runtime)
    with base.draft() as (connection, draft):
        tombstones(base, connection, draft, selection)
        if rows_of(connection, "new_versions"):
            return preview(connection, "new_versions", most)
        raise NothingSelectedError(_lacking(connection))


@dataclass
class Reinstatement(Change):
    """The change that reinstates items."""

    selection: Selection
    identifiers: tuple[str, ...] = field(default=(), init=False)

    def build(self, base: Transaction) -> ChangeResult:
        """Make new versions from metadata in older snapshots and tombstones without a reason."""
        with base.draft() as (connection, draft):
            tombstones(base, connection, draft, self.selection)
            with engine.reading("the last snapshot"):
                self.identifiers = names_of(connection, "new_versions")
                count, back = (
                    rows_of(connection, table) for table in ("new_versions", "recovered_versions")
                )
            records = sum(base.before.kinds().values())
            if not count:
                raise NothingSelectedError(_lacking(connection))
            change = KindChange(base, connection, draft)
            counts = sum((kind.settle(change) for kind in KINDS), KindCounts())
            for kind in KINDS:
                kind.reinstate(change)
            after = SnapshotTables(connection, draft, base.before).items(base.runtime.progress)
            return ChangeResult(
                base.manifest(after, draft),
                records,
                reinstated=back,
                unchanged=count - back,
                moved=counts.moved,
                keys=tuple(draft.written),
            )


def _lacking(connection: engine.Connection) -> str:
    """Return the reason why no selected item is reinstated."""
    if rows_of(connection, "withdrawn_items"):
        return (
            "no withdrawn item matches, or no kept snapshot has its metadata: select it by "
            "identifier or set"
        )
    waiting = "SELECT 1 FROM selected_items WHERE reason IS NULL LIMIT 1"
    if connection.execute(waiting).fetchall():
        return (
            "none of these items is still withdrawn: items without metadata return with the next "
            "`sheaf ingest --again` of their archive"
        )
    return "none of these items is withdrawn"


def tombstones(
    base: Transaction, connection: engine.Connection, draft: Draft, selection: Selection
) -> None:
    """Make the tables of the tombstones to be reinstated: new, superseded, recovered versions.

    Conditions on data that a tombstone lacks are checked against the recovered metadata.
    """
    lasting = replace(selection, url_prefix=None, digest=None, start=None, end=None)
    condition, values = selection.tombstone_condition()
    gather(connection, draft, lasting, "selected_items", "deleted")
    with engine.reading("the last snapshot"):
        connection.execute(
            "CREATE TABLE withdrawn_items AS SELECT * FROM selected_items WHERE reason IS NOT NULL"
        )
    _recover(base, connection, draft)
    change = KindChange(base, connection, draft)
    for kind in KINDS:
        kind.recover(change)
    with engine.reading("the last snapshot"):
        connection.execute(
            f"DELETE FROM recovered_versions WHERE ({condition}) IS NOT TRUE", values
        )
        others = "false" if values else "true"
        # The recovered version may be older than the tombstone's last version, and may have other
        # sets.
        left = LEFT.format(earlier="list_concat(w.sets, w.left_sets)", now="r.sets")
        connection.execute(
            "CREATE TABLE prepared_versions AS SELECT r.identifier, r.kind, false AS deleted, "
            f"NULL::VARCHAR AS reason, r.sets, {left} AS left_sets, {_FIELDS} "
            "FROM recovered_versions r JOIN withdrawn_items w USING (identifier) UNION ALL "
            f"SELECT identifier, kind, true, NULL, sets, left_sets, {EMPTY} "
            f"FROM withdrawn_items WHERE {others} "
            "AND identifier NOT IN (SELECT identifier FROM recovered_versions)"
        )
        connection.execute(scratch_tables.NO_INTAKE_VERSIONS)
        connection.execute(scratch_tables.NEW_VERSIONS)
        connection.execute(
            f"{CREATE_SUPERSEDED} withdrawn_items "
            "WHERE identifier IN (SELECT identifier FROM new_versions)"
        )


def _recover(base: Transaction, connection: engine.Connection, draft: Draft) -> None:
    """Make `recovered_versions` of `withdrawn_items`, from the newest snapshots that have them."""
    with engine.reading("an older snapshot"):
        connection.execute(
            "CREATE TABLE recovered_versions AS SELECT * FROM withdrawn_items WHERE false"
        )
        connection.execute(
            "CREATE TABLE unrecovered_items AS SELECT identifier FROM withdrawn_items"
        )
    older = [n for n in snapshots(base.store) if n < base.before.snapshot]
    for number in reversed(older):
        if (
            not rows_of(connection, "unrecovered_items")
            or base.pointer.is_retired(number)
            or number in base.before.skipped
        ):
            continue
        try:
            manifest = base.catalogue.manifest(number)
        except MissingObject:
            continue  # retired meanwhile
        with engine.reading("an older snapshot"):
            find(connection, draft.over(manifest.tables), "unrecovered_items")
            connection.execute(
                "INSERT INTO recovered_versions SELECT * FROM listed_versions WHERE NOT deleted"
            )
            connection.execute(
                "DELETE FROM unrecovered_items "
                "WHERE identifier IN (SELECT identifier FROM recovered_versions)"
            )
