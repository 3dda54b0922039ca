"""Withdraw: items become tombstones with a reason; restore takes that back; purge forgets them.

A tombstone keeps identifier, sets and reason, and stays whatever is ingested again. What restore
brings back comes out of an older snapshot that is still kept; what none has any more comes back
with the next ingest of its archive.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from builder import takedown
from builder.build import Build
from builder.expire import retire, snapshots
from builder.merge import find
from builder.revision import Base, Built, revise
from builder.selection import NothingSelected, Selection
from builder.snapshot import Draft
from builder.surroundings import Surroundings
from functions.oai import engine
from functions.snapshot import schema
from functions.snapshot.configuration import Configuration
from functions.snapshot.errors import MissingObject, NothingPublished
from functions.snapshot.pointer import REMEMBERED
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_FILES = engine.table("$files")
_FIELDS = tuple(column.name for column in schema.CAPTURE)
_EMPTY = ", ".join(f"NULL::{column.type} AS {column.name}" for column in schema.CAPTURE)
_SUPERSEDED = "CREATE TABLE superseded AS SELECT position, sequence, kind, sets FROM "


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What a withdrawal did: what was built, the items it is about, and snapshots retired."""

    built: Built
    identifiers: tuple[str, ...]
    retired: tuple[int, ...] = ()


def withdraw(
    store: Writer,
    configuration: Configuration,
    outside: Surroundings,
    selection: Selection,
    reason: str,
    *,
    purge: bool = False,
) -> Withdrawn:
    """Withdraw the selected items, and return when that is in effect.

    With `purge` every older snapshot that holds their metadata is retired as well, which can be
    done when no reader may be using it any more. Items that are withdrawn already stay as they are.
    Raises NothingSelected, and what revision.revise and expire.retire raise.
    """
    change = _Withdrawal(selection, reason)
    built = revise(store, configuration, outside, change)
    retired: tuple[int, ...] = ()
    if purge:
        retired = _purge(store, configuration, outside, change.identifiers)
    return Withdrawn(built, change.identifiers, retired)


def restore(
    store: Writer, configuration: Configuration, outside: Surroundings, selection: Selection
) -> Withdrawn:
    """Take the withdrawal of the selected items back, and return when that is in effect.

    Raises NothingSelected, and what revision.revise raises.
    """
    change = _Restoration(selection)
    built = revise(store, configuration, outside, change)
    return Withdrawn(built, change.identifiers)


@dataclass
class _Withdrawal:
    """Implements revision.Change."""

    selection: Selection
    reason: str
    identifiers: tuple[str, ...] = field(default=(), init=False)

    def build(self, base: Base) -> Built:
        """Make `fresh` of tombstones, and scrub the files that hold what they replace."""
        with base.draft() as (connection, draft):
            listed(connection, draft, self.selection)
            with engine.reading("the last snapshot"):
                connection.execute(
                    "CREATE TABLE withdrawn AS SELECT * FROM chosen WHERE NOT deleted"
                )
                count = _count(connection, "withdrawn")
                connection.execute(
                    "CREATE TABLE fresh AS SELECT identifier, kind, true AS deleted, "
                    f"$reason::VARCHAR AS reason, sets, {_EMPTY} FROM withdrawn",
                    {"reason": self.reason},
                )
                connection.execute(f"{_SUPERSEDED} withdrawn")
                self.identifiers = _identifiers(connection, "chosen")
            records = sum(base.before.kinds().values())
            if not count:
                return Built(None, records)
            takedown.versions(connection, draft, "withdrawn")
            after = Build(connection, draft, base.before).items(base.outside.progress)
            takedown.scrub(connection, draft)
            return Built(
                base.manifest(after, draft), records, withdrawn=count, keys=tuple(draft.written)
            )

    def done(self) -> None:
        """There is nothing to clear away."""


@dataclass
class _Restoration:
    """Implements revision.Change."""

    selection: Selection
    identifiers: tuple[str, ...] = field(default=(), init=False)

    def build(self, base: Base) -> Built:
        """Make `fresh` of what older snapshots hold, and of tombstones without a reason."""
        lasting = replace(self.selection, url_prefix=None, digest=None, start=None, end=None)
        condition, values = self.selection.described()
        with base.draft() as (connection, draft):
            listed(connection, draft, lasting)
            with engine.reading("the last snapshot"):
                connection.execute(
                    "CREATE TABLE withdrawn AS SELECT * FROM chosen WHERE reason IS NOT NULL"
                )
            _recover(base, connection, draft)
            with engine.reading("the last snapshot"):
                connection.execute(f"DELETE FROM recovered WHERE NOT ({condition})", values)
                others = "false" if values else "true"
                connection.execute(
                    "CREATE TABLE fresh AS SELECT identifier, kind, false AS deleted, "
                    f"NULL::VARCHAR AS reason, sets, {', '.join(_FIELDS)} FROM recovered UNION ALL "
                    f"SELECT identifier, kind, true, NULL, sets, {_EMPTY} FROM withdrawn WHERE "
                    f"{others} AND identifier NOT IN (SELECT identifier FROM recovered)"
                )
                connection.execute(
                    f"{_SUPERSEDED} withdrawn WHERE identifier IN (SELECT identifier FROM fresh)"
                )
                self.identifiers = _identifiers(connection, "fresh")
                count, back = _count(connection, "fresh"), _count(connection, "recovered")
            records = sum(base.before.kinds().values())
            if not count:
                raise NothingSelected(
                    "no withdrawn item is like that, or no kept snapshot has its metadata any "
                    "more: name it by identifier or set"
                )
            after = Build(connection, draft, base.before).items(base.outside.progress)
            return Built(
                base.manifest(after, draft),
                records,
                restored=back,
                unchanged=count - back,
                keys=tuple(draft.written),
            )

    def done(self) -> None:
        """There is nothing to clear away."""


def listed(connection: engine.Connection, draft: Draft, selection: Selection) -> None:
    """Make `chosen`: the listed versions, tombstones included, that meet the selection.

    Raises NothingSelected where there are none, or an identifier is unknown.
    """
    condition, values = selection.condition()
    with engine.reading("the last snapshot"):
        if selection.identifiers:
            connection.execute(
                "CREATE TABLE wanted AS SELECT unnest($identifiers) AS identifier",
                {"identifiers": list(dict.fromkeys(selection.identifiers))},
            )
            find(connection, draft, "wanted", len(selection.identifiers))
            unknown = connection.execute(
                "SELECT identifier FROM wanted ANTI JOIN old USING (identifier) ORDER BY 1 LIMIT 1"
            ).fetchall()
            if unknown:
                raise NothingSelected(f"there is no item {unknown[0][0]}")
            source = "old"
        else:
            source = _live(draft, values)
        sql = f"CREATE TABLE chosen AS SELECT * FROM {source} WHERE {condition}"
        connection.execute(sql, values)
        if not _count(connection, "chosen"):
            raise NothingSelected("no item is like that")


def _live(draft: Draft, values: dict[str, object]) -> str:
    """Return a table expression of all listed versions; `values` get its files."""
    records, dead = (
        draft.paths(draft.files(draft.tables.get(table, ()))) for table in ("records", "dead")
    )
    if not records:
        raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")
    values["files"] = records
    if not dead:
        return _FILES
    values["dead"] = dead
    position = f"SELECT position FROM {engine.table('$dead')}"
    return f"(SELECT * FROM {_FILES} WHERE position NOT IN ({position}))"


def _recover(base: Base, connection: engine.Connection, draft: Draft) -> None:
    """Make `recovered`: the metadata of `withdrawn` out of the newest snapshots that have it."""
    with engine.reading("an older snapshot"):
        connection.execute("CREATE TABLE recovered AS SELECT * FROM withdrawn WHERE false")
        connection.execute("CREATE TABLE lacking AS SELECT identifier FROM withdrawn")
    older = [n for n in snapshots(base.store) if n < base.before.snapshot]
    for number in reversed(older):
        count = _count(connection, "lacking")
        if not count or base.pointer.is_retired(number) or number in base.before.skipped:
            continue
        try:
            manifest = base.catalogue.manifest(number)
        except MissingObject:
            continue  # retired meanwhile
        with engine.reading("an older snapshot"):
            connection.execute("DROP TABLE IF EXISTS old; DROP TABLE IF EXISTS places;")
            find(connection, draft.over(manifest.tables), "lacking", count)
            connection.execute("INSERT INTO recovered SELECT * FROM old WHERE NOT deleted")
            connection.execute(
                "DELETE FROM lacking WHERE identifier IN (SELECT identifier FROM recovered)"
            )


def _purge(
    store: Writer, configuration: Configuration, outside: Surroundings, items: Sequence[str]
) -> tuple[int, ...]:
    """Retire every snapshot whose files hold metadata of the items; return their numbers."""
    catalogue = Catalogue(store)
    newest = catalogue.pointer().newest()
    assert newest is not None
    wait = (newest.effective + REMEMBERED - outside.clock()).total_seconds()
    if wait > 0:
        outside.say(f"waiting {wait:.0f} seconds, until no reader uses an older snapshot")
        outside.sleep(wait)
    pointer = catalogue.pointer()
    before = catalogue.manifest(newest.snapshot)
    base = Base(store, catalogue, configuration, outside, pointer, None, before)
    showing = set()
    with base.draft() as (connection, draft):
        with engine.reading("the items"):
            connection.execute(
                "CREATE TABLE wanted AS SELECT unnest($items) AS identifier", {"items": list(items)}
            )
        for number in snapshots(store):
            if number < newest.snapshot and number not in before.skipped:
                older = draft.over(catalogue.manifest(number).tables)
                if takedown.versions(connection, older, "wanted"):
                    showing.add(number)
    return retire(store, outside, showing).snapshots


def _identifiers(connection: engine.Connection, table: str) -> tuple[str, ...]:
    rows = connection.execute(f"SELECT identifier FROM {table} ORDER BY identifier").fetchall()
    return tuple(name for (name,) in rows)


def _count(connection: engine.Connection, table: str) -> int:
    ((count,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(count)
