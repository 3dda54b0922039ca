"""Purges: remove the metadata of withdrawn items from all that the store keeps.

Each older snapshot that holds their metadata is retired, once no reader can be using it. An object
below `purges/` names the items before their withdrawal takes effect, and goes when all is done. So
a purge that was interrupted is completed by the next command that changes the store.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import closing, suppress

from builder.kinds import KINDS
from builder.outputs.follow import retire_outputs
from builder.runtime import Runtime
from builder.snapshot import lookup, scratch_tables
from builder.snapshot.draft import Draft
from builder.snapshot.expiry import retire, snapshots
from builder.snapshot.lookup import LOCATED, locate, rows_of
from builder.snapshot.transaction import Transaction
from functions.config.configuration import Configuration
from functions.snapshot import layout, schema, surt
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.snapshot.pointer import REMEMBERED
from functions.snapshot.seal import build, refuse_damage
from functions.snapshot.store import Writer
from functions.store import engine

_WITHDRAWN = """
DELETE FROM wanted_items WHERE identifier NOT IN (
    SELECT identifier FROM listed_versions WHERE deleted AND reason IS NOT NULL)
"""
_ASKED = (
    f"SELECT r.position, coalesce(url_bytes, encode(url)), {lookup.URL_STAMP} FROM {LOCATED} "
    "WHERE NOT deleted AND fetch_method IS NOT NULL"
)


def announce_purge(store: Writer, identifiers: Sequence[str]) -> None:
    """Store the names of items to be purged, before they are withdrawn."""
    data = json.dumps({"identifiers": list(identifiers)}, indent=1).encode() + b"\n"
    with suppress(Conflict):  # its name says that it has the same bytes
        store.create(f"{layout.PURGES}{hashlib.sha256(data).hexdigest()[:32]}.json", data)


def complete_purges(
    store: Writer, configuration: Configuration, runtime: Runtime
) -> tuple[int, ...]:
    """Carry out all purges that are not finished, and return the snapshots that were retired.

    Items that are not withdrawn are left as they are: their withdrawal did not take effect. Raises
    StoreError if a snapshot could not be retired, DamagedStore for a damaged object.
    """
    keys = list(store.keys(layout.PURGES))
    if not keys:
        return ()
    items: set[str] = set()
    for key in keys:
        with suppress(MissingObject):  # another process has finished it
            data = store.read(key)
            with refuse_damage(key, "remove it, and purge its items again"):
                items |= build(set[str], json.loads(data)["identifiers"])
    runtime.say(f"purging {len(items):,} items; if interrupted, the next command completes this")
    retired = _purge(store, configuration, runtime, sorted(items))
    retire_outputs(store, runtime, anew=True)
    store.remove(*keys)
    return retired


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
        count = rows_of(connection, "item_versions")
        _add_former_keys(connection, records)
    return count


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
            lookup.find(connection, draft, "wanted_items", newest=True)
            connection.execute(_WITHDRAWN)
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
        return versions > 0 or any(kind.shows(connection, older, "wanted_items") for kind in KINDS)
    except StoreError:
        if base.catalogue.pointer().is_retired(number):
            return False  # retired meanwhile
        raise
