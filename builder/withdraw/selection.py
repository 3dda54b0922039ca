"""Selection of items by an operator, and the versions that match it."""

from dataclasses import dataclass
from typing import Any

from builder.snapshot.draft import Draft
from builder.snapshot.lookup import find, rows_of
from builder.snapshot.transaction import NothingSelectedError
from builder.withdraw import criteria
from functions.database import engine
from functions.snapshot.errors import NothingPublished

_FILES = engine.table("$files")
_HOST = f"regexp_extract(url, '{criteria.HOST}')"
_URL = f"lower({_HOST}) || substr(url, length({_HOST}) + 1)"
"""The archived URL with scheme and host in lower case, which are not case-sensitive."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions on an item; at least one of the first four is given.

    `set` is a setSpec and includes all sets below it. `url_prefix`, `digest` and the dates are in
    the form that builder.withdraw.criteria returns. `start` and `end` are capture dates as in
    `fetch_date`, both inclusive and of any precision: the end 2007-11 is the end of November. A
    capture of which only the year is known matches if its date may lie between them.
    """

    identifiers: tuple[str, ...] = ()
    set: str | None = None
    url_prefix: str | None = None
    digest: str | None = None
    start: str | None = None
    end: str | None = None

    def lasting(self) -> tuple[str, dict[str, Any]]:
        """Return the SQL condition on data that a tombstone keeps, and its values."""
        terms: list[str] = []
        values: dict[str, Any] = {}
        if self.identifiers:
            terms.append("list_contains($identifiers, identifier)")
            values["identifiers"] = list(self.identifiers)
        if self.set is not None:
            terms.append(
                "len(list_filter(sets, lambda s: s = $set OR starts_with(s, $set || ':'))) > 0"
            )
            values["set"] = self.set
        return " AND ".join(terms) or "true", values

    def tombstone_condition(self) -> tuple[str, dict[str, Any]]:
        """Return the SQL condition on data that a tombstone no longer has, and its values."""
        found = {
            f"starts_with({_URL}, $url_prefix)": ("url_prefix", self.url_prefix),
            "content_digest = $digest": ("digest", self.digest),
            _compare_date("start", ">="): ("start", self.start and self.start.rstrip("Z")),
            _compare_date("end", "<="): ("end", self.end and self.end.rstrip("Z")),
        }
        given = {term: pair for term, pair in found.items() if pair[1] is not None}
        return " AND ".join(given) or "true", dict(given.values())

    def condition(self) -> tuple[str, dict[str, Any]]:
        """Return the whole SQL condition, and its values."""
        (lasting, some), (described, more) = self.lasting(), self.tombstone_condition()
        return f"({lasting}) AND ({described})", {**some, **more}


def _compare_date(name: str, how: str) -> str:
    """Return SQL that compares a capture's date with a value, at the lower precision of both."""
    date = "rtrim(fetch_date, 'Z')"  # Z would sort after the rest of a more precise date
    return f"left({date}, length(${name})) {how} left(${name}, length({date}))"


def choose(connection: engine.Connection, draft: Draft, selection: Selection) -> None:
    """Make `chosen`: the listed versions that match the selection, tombstones included.

    Raises NothingSelectedError if there are none, or if an identifier is unknown.
    """
    gather(connection, draft, selection, "chosen")
    if not rows_of(connection, "chosen"):
        with engine.reading("the last snapshot"):
            reason = _lacking(connection, draft, selection)
        raise NothingSelectedError(reason)


def gather(
    connection: engine.Connection,
    draft: Draft,
    selection: Selection,
    table: str,
    besides: str = "true",
) -> None:
    """Make a table of the listed versions that match the selection and the condition `besides`.

    Raises NothingSelectedError if an identifier is unknown.
    """
    condition, values = selection.condition()
    with engine.reading("the last snapshot"):
        if selection.identifiers:
            connection.execute(
                "CREATE TABLE wanted AS SELECT unnest($identifiers) AS identifier",
                {"identifiers": list(dict.fromkeys(selection.identifiers))},
            )
            find(connection, draft, "wanted")
            unknown = connection.execute(
                "SELECT identifier FROM wanted ANTI JOIN old USING (identifier) ORDER BY 1 LIMIT 1"
            ).fetchall()
            if unknown:
                raise NothingSelectedError(f"there is no item {unknown[0][0]}")
            source = "old"
        else:
            source = _live(draft, values)
        sql = (
            f"CREATE TABLE {table} AS SELECT * FROM {source} "
            f"WHERE ({condition}) AND {besides} AND kind != 'collection'"
        )
        connection.execute(sql, values)


def _lacking(connection: engine.Connection, draft: Draft, selection: Selection) -> str:
    """Return the reason why nothing matches the selection."""
    files = draft.paths(draft.files(draft.tables.get("sets", ())))
    if selection.set is not None and files:
        sql = f"SELECT 1 FROM {engine.table('$sets')} WHERE set_spec = $set"
        values = {"sets": files, "set": selection.set}
        if not connection.execute(sql, values).fetchall():
            return (
                f"there is no set {selection.set}: "
                '`sheaf query "SELECT set_spec FROM sets"` lists all that there are'
            )
    if selection.identifiers:
        made = "SELECT identifier FROM old WHERE kind = 'collection' ORDER BY 1 LIMIT 1"
        for (name,) in connection.execute(made).fetchall():
            return f"{name} is derived from the captures of its set: withdraw them with --set"
    return "no item matches; select an already withdrawn item by identifier or set only"


def _live(draft: Draft, values: dict[str, object]) -> str:
    """Return a table expression of all listed versions; adds its files to `values`."""
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


def names_of(connection: engine.Connection, table: str) -> tuple[str, ...]:
    """Return the identifiers in a table, sorted."""
    rows = connection.execute(f"SELECT identifier FROM {table} ORDER BY identifier").fetchall()
    return tuple(name for (name,) in rows)
