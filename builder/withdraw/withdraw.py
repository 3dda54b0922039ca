"""Withdraw: items become tombstones with a reason; a purge removes their metadata.

A tombstone keeps its identifier, sets and reason. It stays even if its archive is ingested again.
`reinstate` reverses a withdrawal.

A purge removes the metadata from the current data files and retires the older snapshots that hold
it. Only files with a version of such an item are rewritten, without that version. The details of
faults of its records are removed as well, because they may quote the records. Dumps are rewritten.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta

from builder.dump.clean import remove_strays
from builder.dump.derived import check_derived, update_derived
from builder.iceberg.clean import expire_tables
from builder.obi.publishes import WITHDRAW, record_items
from builder.proofs.clean import remove_retired
from builder.publish import captures, collections, filesets, revisits
from builder.publish.captures import NEW_VERSIONS, NO_INTAKE_VERSIONS
from builder.runtime import Runtime
from builder.snapshot import lookup, scratch_tables, words
from builder.snapshot.draft import Draft, Query
from builder.snapshot.expiry import retire, snapshots
from builder.snapshot.lookup import LOCATED, find_files, locate, rows_of
from builder.snapshot.tables import SnapshotTables
from builder.snapshot.transaction import ChangeResult, Transaction, revise
from builder.withdraw.selection import Preview, Selection, choose, names_of, preview
from functions.config.configuration import Configuration
from functions.database import engine
from functions.snapshot import schema
from functions.snapshot.errors import StoreError
from functions.snapshot.pointer import REMEMBERED
from functions.snapshot.store import Writer
from functions.url import surt

_FILES = engine.table("$files")
_ASKED = (
    f"SELECT r.position, coalesce(url_bytes, encode(url)), {lookup.URL_STAMP} FROM {LOCATED} "
    "WHERE NOT deleted AND fetch_method IS NOT NULL"
)
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
    f"SELECT * REPLACE ({captures.FAULT_DETAIL} AS detail) FROM {_FILES} f "
    f"ORDER BY {captures.provenance_order('faults')}"
)
EMPTY = ", ".join(f"NULL::{column.type} AS {column.name}" for column in schema.CONTENT)
CREATE_SUPERSEDED = f"CREATE TABLE superseded_versions AS SELECT {schema.SUPERSEDED} FROM "


def find_all_versions(connection: engine.Connection, draft: Draft, wanted: str) -> int:
    """Make `item_versions`: all rows with metadata of the items in the table `wanted`.

    Its columns are position, sets (including those left), source, place, and the key of the table
    of URLs (surt and stamp). Returns the number of rows.
    """
    with engine.reading("the last snapshot"):
        connection.execute(scratch_tables.create("item_versions"))
        records = locate(connection, draft, wanted)
        if not records:
            return 0
        connection.execute(
            "INSERT INTO item_versions SELECT r.position, list_concat(sets, left_sets), "
            f"warc_filename, warc_record_offset, {lookup.URL_SURT}, {lookup.URL_STAMP} "
            f"FROM {LOCATED} WHERE NOT deleted",
            {"records": records},
        )
        ((count,),) = connection.execute("SELECT count(*) FROM item_versions").fetchall()
        _add_former_keys(connection, records)
    return int(count)


def _add_former_keys(connection: engine.Connection, records: list[str]) -> None:
    """Add to `item_versions` the former keys of captures with other methods than GET.

    Before their method was known, their key was that of their URL alone.
    """
    with closing(connection.cursor()) as cursor:
        for batch in engine.batches(cursor, _ASKED, {"records": records}):
            rows = [(place, surt.of(raw)[: schema.SURT_LONGEST], at) for place, raw, at in batch]
            connection.executemany(
                "INSERT INTO item_versions (position, surt, stamp) VALUES ($1, $2, $3)", rows
            )


def remove_versions(connection: engine.Connection, draft: Draft) -> None:
    """Rewrite the draft's files that hold rows in `item_versions`."""
    with engine.reading("the last snapshot"):
        connection.execute(_WITHDRAWN_PLACES)
    lookup.scrub_urls(connection, draft)
    words.scrub(connection, draft)
    _rewrite(connection, draft, "records", _POSITIONS, f"{_KEPT} position")
    _rewrite(connection, draft, "copies", _LISTINGS, f"{_KEPT} listing, position")
    _rewrite(connection, draft, "faults", "SELECT DISTINCT source FROM withdrawn_places", _FAULTS)


def _rewrite(connection: engine.Connection, draft: Draft, table: str, keys: str, sql: str) -> None:
    """Rewrite the files of a table that can hold the keys, except files written by this draft."""
    with engine.reading("the last snapshot"):
        files = find_files(connection, draft, table, (keys, {}))
    new = set(draft.written)
    found = {}
    for file in files:
        if file.key not in new:
            query: Query = (sql, {"files": draft.paths([file])})
            found[file.key] = draft.write(table, [query])
    if found:
        draft.substitute(table, found)


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

    `purge` also retires each older snapshot that holds their metadata. It waits until no reader can
    be using an older snapshot. Items that are already withdrawn do not change. Raises
    NothingSelectedError, DerivedError and the errors of transaction.revise and expiry.retire.
    """
    signer = check_derived(configuration)
    change = Withdrawal(selection, reason)
    built = revise(store, configuration, runtime, change)
    if purge:
        runtime.say(
            f"purging {len(change.identifiers):,} items; should this be interrupted, purge them by "
            'identifier or set: `sheaf query "SELECT identifier, reason FROM records WHERE '
            'deleted"` lists them'
        )
    record_items(store, WITHDRAW, built.manifest, change.identifiers, reason)
    update_derived(store, configuration, runtime, signer)
    retired: tuple[int, ...] = ()
    if purge:
        retired = _purge(store, configuration, runtime, change.identifiers)
        remove_strays(store)
        remove_retired(store, runtime.clock(), timedelta(0))
        expire_tables(store, runtime, anew=True)
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
class Withdrawal:
    """The change that withdraws items. Implements transaction.Change."""

    selection: Selection
    reason: str
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
                connection.execute(NO_INTAKE_VERSIONS)
                connection.execute(NEW_VERSIONS)
                connection.execute(f"{CREATE_SUPERSEDED} withdrawn_items")
                self.identifiers = names_of(connection, "selected_items")
            records = sum(base.before.kinds().values())
            if not count:
                self.standing = _reason(connection)
                return ChangeResult(None, records)
            moved = revisits.resolve(connection, draft)
            collections.restate(connection, draft, base)
            find_all_versions(connection, draft, "withdrawn_items")
            revisits.add_inheriting(connection, draft)
            after = SnapshotTables(connection, draft, base.before).items(base.runtime.progress)
            remove_versions(connection, draft)
            filesets.clear_withdrawn_results(connection, draft)
            return ChangeResult(
                base.manifest(after, draft),
                records,
                withdrawn=count,
                moved=moved,
                keys=tuple(draft.written),
            )

    def clean_up(self) -> None:
        """Do nothing: there is nothing to remove."""


def _reason(connection: engine.Connection) -> str | None:
    """Return the reason of the chosen items, or None if they have several."""
    with engine.reading("the last snapshot"):
        reasons = connection.execute(
            "SELECT DISTINCT reason FROM selected_items LIMIT 2"
        ).fetchall()
    return str(reasons[0][0]) if len(reasons) == 1 else None


def _purge(
    store: Writer, configuration: Configuration, runtime: Runtime, items: Sequence[str]
) -> tuple[int, ...]:
    """Retire every snapshot whose files hold metadata of the items; return their numbers.

    Also removes the objects that no snapshot names. Raises StoreError if a snapshot could not be
    retired.
    """
    base = Transaction.of(store, configuration, runtime)
    while (wait := (base.before.effective + REMEMBERED - runtime.clock()).total_seconds()) > 0:
        runtime.say(f"waiting {wait:.0f} seconds until no reader uses an older snapshot")
        runtime.sleep(wait)
    showing = set()
    with base.draft() as (connection, draft):
        with engine.reading("the items"):
            connection.execute(
                "CREATE TABLE wanted_items AS SELECT unnest($items) AS identifier",
                {"items": list(items)},
            )
        for number in snapshots(store):
            if number < base.before.snapshot and _shows(base, connection, draft, number):
                showing.add(number)
    retired = retire(store, runtime, showing).retired
    pointer = base.catalogue.pointer()
    left = [number for number in sorted(showing) if not pointer.is_retired(number)]
    if left:
        raise StoreError(
            f"withdrawn, but snapshot {left[0]} could not be retired and still shows the items: "
            "run the command again by identifier or set"
        )
    return retired


def _shows(base: Transaction, connection: engine.Connection, draft: Draft, number: int) -> bool:
    """Return whether a snapshot's files hold metadata of the items in `wanted_items`."""
    if number in base.before.skipped or base.pointer.is_retired(number):
        return False
    try:
        older = draft.over(base.catalogue.manifest(number).tables)
        versions = find_all_versions(connection, older, "wanted_items")
        return versions > 0 or filesets.shows(connection, older, "wanted_items")
    except StoreError:
        if base.catalogue.pointer().is_retired(number):
            return False  # retired meanwhile
        raise
