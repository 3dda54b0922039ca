"""Selection of items by an operator: criteria, matching versions, and a preview.

Criteria are an operator's input in the form of the columns. Their functions raise ValueError if
no column can have the value; the error says what is wrong or what was expected.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from builder.errors import UsageError
from builder.kinds import KINDS
from builder.snapshot.draft import Draft
from builder.snapshot.lookup import NATURAL_ORDER, find, rows_of
from builder.snapshot.match_keys import CAPTURE
from builder.snapshot.transaction import NothingSelectedError
from functions.archive import declared_digest as digests
from functions.snapshot import authority
from functions.snapshot.errors import NothingPublished
from functions.store import engine

HOST_PATTERN = "^[A-Za-z][A-Za-z0-9+-]*://[^/?#]*"
"""A URL up to the end of its host, as a regular expression for Python and DuckDB."""

_HOST = re.compile(HOST_PATTERN)
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+-]*:")
_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,9})?)?(Z?))?)?)?"
)
_FILES = engine.table("$files")
_HOST_OF_URL = f"regexp_extract(url, '{HOST_PATTERN}')"
_URL = f"lower({_HOST_OF_URL}) || substr(url, length({_HOST_OF_URL}) + 1)"
"""The archived URL with scheme and host in lower case, which are not case-sensitive."""
_HOSTS = 10
_FOLLOWING = {name: kind.follow for kind in KINDS if kind.follow for name in kind.names}
"""Why items of some kinds cannot be selected."""
_FOLLOWS = f"kind IN {engine.texts(_FOLLOWING)}"
_TITLE = (
    "coalesce(title, document ->> '$.fields.title[0]', document ->> '$.fields.name[0]', "
    "document ->> '$.title') AS title"
)


def parse_date(text: str) -> str:
    """Return a valid calendar date or time, W3CDTF in UTC, of any precision."""
    match = _DATE.fullmatch(text)
    if not match:
        raise ValueError("expected a date such as 2007, 2007-11 or 2007-11-05T12:00:00Z")
    *fields, zone = match.groups()
    if zone == "":
        raise ValueError(f"a time is in UTC and ends with Z: expected {text}Z")
    numbers = [int(field) for field in fields if field]
    try:
        datetime(*(numbers + [1, 1][len(numbers) - 1 :]))  # type: ignore[arg-type]
    except ValueError:
        raise ValueError("this date or time does not exist") from None
    return text


def parse_option(option: str, value: str | None, parse: Callable[[str], str]) -> str | None:
    """Return the parsed value of an option, None without one. Raises UsageError."""
    try:
        return None if value is None else parse(value)
    except ValueError as error:
        raise UsageError(f"{option} {value}: {error}") from None


def is_reversed(start: str, end: str) -> bool:
    """Return whether a range ends before it begins, compared at the lower of the two precisions."""
    first, last = start.rstrip("Z"), end.rstrip("Z")
    return first[: len(last)] > last[: len(first)]


def parse_digest(text: str) -> str:
    """Return a payload's digest in the form of `content_digest`: base32 without label for a SHA-1.

    A SHA-1 may be hexadecimal and may have a label; a digest of another algorithm needs a label.
    """
    digest = digests.parse_digest((text if ":" in text else f"sha1:{text}").encode())
    if digest is None:
        raise ValueError(
            "expected a SHA-1 of 32 characters in base32 or 40 hexadecimal digits, "
            "or a label such as sha256: and its digest"
        )
    return digest.text()


def parse_url_prefix(text: str) -> str:
    """Return the beginning of a URL in the form of `url`, with scheme and host in lower case."""
    prefix = authority.text(text.encode("utf-8", "surrogateescape"))
    if not _SCHEME.match(prefix):
        raise ValueError(f"expected a URL with its scheme, such as http://{text.lstrip('/')}")
    start = _HOST.match(prefix)
    end = start.end() if start else 0
    return prefix[:end].lower() + prefix[end:]


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions on an item; at least one of the first four is given.

    `set` is a setSpec and includes all sets below it. `url_prefix`, `digest` and the dates are in
    the form that builder.publish.selection returns. `start` and `end` are capture dates as in
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
        terms = {
            f"starts_with({_URL}, $url_prefix)": ("url_prefix", self.url_prefix),
            "content_digest = $digest": ("digest", self.digest),
            _compare_date("start", ">="): ("start", self.start and self.start.rstrip("Z")),
            _compare_date("end", "<="): ("end", self.end and self.end.rstrip("Z")),
        }
        wanted = {term: pair for term, pair in terms.items() if pair[1] is not None}
        return " AND ".join(wanted) or "true", dict(wanted.values())

    def condition(self) -> tuple[str, dict[str, Any]]:
        """Return the whole SQL condition, and its values."""
        (lasting, values), (described, more) = self.lasting(), self.tombstone_condition()
        return f"({lasting}) AND ({described})", {**values, **more}


def _compare_date(name: str, how: str) -> str:
    """Return SQL that compares a capture's date with a value, at the lower precision of both."""
    date = "rtrim(fetch_date, 'Z')"  # Z would sort after the rest of a more precise date
    return f"left({date}, length(${name})) {how} left(${name}, length({date}))"


def choose(connection: engine.Connection, draft: Draft, selection: Selection) -> None:
    """Make `selected_items`: the listed versions that match the selection, tombstones included.

    Raises NothingSelectedError if there are none, or if an identifier is unknown.
    """
    gather(connection, draft, selection, "selected_items")
    if not rows_of(connection, "selected_items"):
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
                "CREATE TABLE wanted_items AS SELECT unnest($identifiers) AS identifier",
                {"identifiers": list(dict.fromkeys(selection.identifiers))},
            )
            find(connection, draft, "wanted_items")
            unknown = connection.execute(
                "SELECT identifier FROM wanted_items ANTI JOIN listed_versions "
                "USING (identifier) ORDER BY 1 LIMIT 1"
            ).fetchall()
            if unknown:
                raise NothingSelectedError(f"there is no item {unknown[0][0]}")
            source = "listed_versions"
        else:
            source = _live(draft, values)
        sql = (
            f"CREATE TABLE {table} AS SELECT * FROM {source} "
            f"WHERE ({condition}) AND {besides} AND NOT {_FOLLOWS}"
        )
        connection.execute(sql, values)


def explain_set(connection: engine.Connection, table: str, values: dict[str, Any]) -> str | None:
    """Return the reason why the set in `values` is unknown, with the nearest name, or else None."""
    nearest = connection.execute(
        f"SELECT set_spec FROM {table} ORDER BY set_spec != $set, "
        "NOT ends_with(set_spec, ':' || $set), levenshtein(set_spec, $set), set_spec LIMIT 1",
        values,
    ).fetchall()
    if nearest and nearest[0][0] == values["set"]:
        return None
    near = f"; the nearest name is {nearest[0][0]}" if nearest else ""
    listed = '`sheaf query "SELECT set_spec FROM sets"` lists all that there are'
    return f"there is no set {values['set']}{near}: {listed}"


def _lacking(connection: engine.Connection, draft: Draft, selection: Selection) -> str:
    """Return the reason why nothing matches the selection."""
    files = draft.paths(draft.files(draft.tables.get("sets", ())))
    values: dict[str, Any]
    if selection.set is not None and files:
        values = {"sets": files, "set": selection.set}
        if reason := explain_set(connection, engine.table("$sets"), values):
            return reason
    if selection.identifiers:
        sql = f"SELECT identifier, kind FROM listed_versions WHERE {_FOLLOWS} ORDER BY 1 LIMIT 1"
        for name, kind in connection.execute(sql).fetchall():
            return f"{name} {_FOLLOWING[kind]}"
    reason = "no item matches"
    if selection.url_prefix is not None:
        values = {"prefix": selection.url_prefix}
        nearest = connection.execute(
            f"SELECT {_URL} AS place FROM {_live(draft, values)} WHERE url IS NOT NULL "
            "ORDER BY levenshtein(left(place, length($prefix)), $prefix), place LIMIT 1",
            values,
        ).fetchall()
        if nearest and not nearest[0][0].startswith(selection.url_prefix):
            reason += f": no URL begins with {selection.url_prefix}; the nearest is {nearest[0][0]}"
    return f"{reason}; an item that is withdrawn already is selected by identifier or set only"


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


@dataclass(frozen=True, slots=True)
class Item:
    """An item; for a tombstone, only the identifier is known."""

    identifier: str
    url: str | None
    date: str | None
    host: str | None
    kind: str
    title: str | None = None
    """The name, if the item is an archive or series of RePEc."""


@dataclass(frozen=True, slots=True)
class Preview:
    """Number of items, the first items by kind, SURT and date, and the hosts with the most items.

    Each host comes with its number of items; an unknown host is None. Items of `kinds`, by their
    keys (Kind.counted), are not counted by host.
    """

    count: int
    items: tuple[Item, ...]
    hosts: tuple[tuple[str | None, int], ...]
    kinds: Mapping[str, int] = field(default_factory=dict)


def preview(connection: engine.Connection, table: str, most: int | None) -> Preview:
    """Return a preview of a table with the columns of `records`, with at most `most` items."""
    with engine.reading("the items"):
        count = rows_of(connection, table)
        sql = f"SELECT kind, count(*) FROM {table} GROUP BY kind"
        counts = dict(connection.execute(sql).fetchall())
        rows = connection.execute(
            f"SELECT identifier, url, fetch_date, url_host_name, kind, {_TITLE} "
            f"FROM {table} ORDER BY {NATURAL_ORDER} LIMIT $most",
            {"most": count if most is None else most},
        ).fetchall()
        hosts = connection.execute(
            f"SELECT url_host_name, count(*) AS items FROM {table} WHERE {CAPTURE} "
            f"GROUP BY ALL ORDER BY items DESC, url_host_name LIMIT {_HOSTS}"
        ).fetchall()
    kinds = {
        kind.counted[0]: sum(counts.get(name, 0) for name in kind.names)
        for kind in KINDS
        if kind.counted
    }
    return Preview(count, tuple(Item(*row) for row in rows), tuple(hosts), kinds)
