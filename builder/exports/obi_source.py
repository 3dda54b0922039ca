"""Source of an export: the obi store with its runs, and its objects with their versions.

All are read from the replayed logs of the runs.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from builder.errors import UsageError
from builder.obi.content import FILE, ExchangeRow, Redirect, Version
from builder.obi.history import IMPORT
from builder.obi.log import read_rows
from builder.obi.replay import fold
from builder.obi.run import Committed, history
from builder.store.context import Context
from functions.snapshot import instant
from functions.snapshot.errors import NothingPublished
from functions.snapshot.store import Reader, Writer
from functions.store import engine

_MEMBERS = [field.name for field in fields(Version)]
_COLUMNS = ", ".join(f"v.{name}" for name in _MEMBERS)
"""The columns of a version `v`, in the order of `_parse_logged`."""
_VERSIONS = (
    "SELECT v.tist, CASE WHEN what IS NULL THEN 'noted' WHEN again THEN what || ' again' "
    f"ELSE what END, {_COLUMNS} "
    "FROM version v LEFT JOIN incidence USING (tist, id, kind) "
    "ORDER BY v.id, kind, tist"
)
_CAPTURES = (
    '(SELECT tist, id, "at" AS second FROM logged JOIN run USING (tist) '
    f"WHERE row = 'exchange' AND run.kind = '{IMPORT}')"
)
_NO_CAPTURES = "(SELECT NULL::BIGINT AS second) c ON false"
RUNS = {"--run TIST... as runs": "only this run; may be repeated"}
"""The option that selects runs, for builder.arguments.declare."""
_ROWS = 1024  # fetched at a time
Opened = tuple[Sequence[Committed], engine.Connection]


@dataclass(frozen=True, slots=True)
class LoggedObject:
    """A version with the run that logged it, and a short description of the event.

    `captured` is the time of the capture, if an import logged it.
    """

    tist: int
    what: str
    version: Version
    captured: int | None = None

    @property
    def when(self) -> str:
        """The run's time."""
        return to_date(self.tist)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object with all its versions, the oldest first."""

    id: str
    kind: str
    versions: tuple[LoggedObject, ...]


def to_date(tist: int) -> str:
    """Return a time in seconds since 1970 as a date (W3CDTF, UTC)."""
    return instant.to_text(datetime.fromtimestamp(tist, UTC))


def count_objects(connection: engine.Connection) -> int:
    """Return the number of objects in the replay tables."""
    ((count,),) = _fetch_rows(connection, "SELECT count(DISTINCT (id, kind)) FROM version")
    return int(count)


def list_objects(connection: engine.Connection) -> Iterator[StoredObject]:
    """Yield the objects in the replay tables, by id and class."""
    noted = map(_parse_logged, _fetch_rows(connection, _VERSIONS))
    for (identifier, kind), versions in groupby(noted, lambda n: (n.version.id, n.version.kind)):
        yield StoredObject(identifier, kind, tuple(versions))


def stored_keys(connection: engine.Connection, run: int) -> Iterator[tuple[str, Version | None]]:
    """Yield the keys that a run stored, each with its version (None for a redirect)."""
    redirects = "SELECT key FROM redirect WHERE tist = $run AND key IS NOT NULL ORDER BY key"
    versions = (
        f"SELECT v.tist, '', {_COLUMNS} FROM version v SEMI JOIN (FROM logged WHERE run = $run "
        "AND row = 'version') l USING (tist, id, kind) ORDER BY v.key"
    )
    for (where,) in _fetch_rows(connection, redirects, {"run": run}):
        yield where, None
    for noted in map(_parse_logged, _fetch_rows(connection, versions, {"run": run})):
        yield noted.version.key, noted.version


def gather_runs(connection: engine.Connection) -> set[int]:
    """Return the runs that found a file at a URL."""
    statement = " UNION ".join(
        f"SELECT tist FROM {table} WHERE kind = $kind" for table in ("version", "seen")
    )
    return {run for (run,) in _fetch_rows(connection, statement, {"kind": FILE})}


def sightings(connection: engine.Connection, run: int) -> Iterator[LoggedObject]:
    """Yield the file that a run found at each URL, by URL, as logged last up to then.

    Its `tist` is that of the run or, for an unchanged file, that of an earlier run.
    """
    values = {"kind": FILE, "run": run}
    ((imports,),) = _fetch_rows(connection, f"SELECT EXISTS (FROM run WHERE kind = '{IMPORT}')")
    captured = f"{_CAPTURES} c ON c.tist = v.tist AND c.id = v.id" if imports else _NO_CAPTURES
    statement = (
        f"SELECT v.tist, '', {_COLUMNS}, c.second FROM version v JOIN ("
        "SELECT id FROM version WHERE kind = $kind AND tist = $run "
        "UNION SELECT id FROM seen WHERE kind = $kind AND tist = $run) s ON s.id = v.id "
        f"LEFT JOIN {captured} WHERE v.kind = $kind AND v.tist <= $run "
        "QUALIFY row_number() OVER (PARTITION BY v.id ORDER BY v.tist DESC) = 1 ORDER BY v.id"
    )
    for *row, second in _fetch_rows(connection, statement, values):
        yield replace(_parse_logged(tuple(row)), captured=second)


def list_exchanges(store: Reader, run: Committed) -> Iterator[ExchangeRow]:
    """Yield the exchanges whose headers a run kept, by URL, then those of its other redirects.

    Of an unchanged redirect, and of one that only adds a slash, nothing but status and target is
    kept.
    """
    origins: set[str] = set()
    redirects: list[Redirect] = []
    for row in read_rows(store, run):
        if isinstance(row, ExchangeRow):
            origins.add(row.id)
            yield row
        elif isinstance(row, Redirect):
            redirects.append(row)
    for redirect in redirects:
        if redirect.origin not in origins:
            headers = (f"Location: {redirect.target}",)
            yield ExchangeRow(
                id=redirect.origin, at=run.tist, status=redirect.status, headers=headers
            )


def _fetch_rows(
    connection: engine.Connection, statement: str, values: dict[str, Any] | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query on the replay tables, some at a time."""
    with engine.reading("what the logs of the runs come to"):
        cursor = connection.cursor().execute(statement, values or {})
        while rows := cursor.fetchmany(_ROWS):
            yield from rows


def _parse_logged(row: tuple[Any, ...]) -> LoggedObject:
    """Return the object of a row: its run, what happened, and the columns of its version."""
    members = dict(zip(_MEMBERS, row[2:], strict=True))
    return LoggedObject(
        row[0], row[1], Version(**members | {"flags": tuple(members["flags"] or ())})
    )


@contextmanager
def open_obi(store: Writer, memory_megabytes: int, threads: int) -> Iterator[Opened]:
    """Open the committed runs, ascending, and a connection with the replay tables.

    Data beyond the memory limit is in a temporary folder, removed with the context. Raises
    NothingPublished if there is no run, DamagedStore and StoreError.
    """
    runs = history(store)
    if not runs:
        raise NothingPublished(
            f"{store.address}: this store has no templates or files yet: run `sheaf ingest`"
        )
    with (
        tempfile.TemporaryDirectory(prefix="sheaf-export-") as name,
        engine.connect(
            threads=threads, memory_megabytes=memory_megabytes, scratch=Path(name)
        ) as connection,
    ):
        fold(connection, store, runs, Path(name))
        yield runs, connection


def open_runs(context: Context) -> AbstractContextManager[Opened]:
    """Open the runs of a command's store, as `open_obi` does."""
    memory = context.configuration["publish.memory"]
    return open_obi(context.published_store(), memory, os.cpu_count() or 1)


def choose_runs(runs: Sequence[Committed], wanted: Sequence[int] | None) -> Sequence[Committed]:
    """Return the runs that `--run` names, or all without it. Raises UsageError for others."""
    if unknown := set(wanted or ()) - {run.tist for run in runs}:
        raise UsageError(f"--run {min(unknown)}: the store has no such committed run")
    return [run for run in runs if not wanted or run.tist in wanted]
