"""What the store has of the own records of a table: in the newest snapshot, and in the intake."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from builder.intake import intake
from builder.snapshot import query
from builder.sources.records.known import hash_identifier
from functions.snapshot.errors import NothingPublished
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue

# Most identifiers show their table; those that a file gave do not, and few documents are read.
_TABLE = "if(deleted, NULL, document ->> '$.repository')"
_FOREIGN = "NOT starts_with(identifier, $own)"
_OF_TABLE = (
    f"NOT deleted AND (starts_with(identifier, $own || $name || ',') OR {_FOREIGN} AND {_TABLE} = "
    "$name)"
)
_LATEST = (
    "FROM read_parquet($files, filename = 'part', file_row_number = true, "
    "hive_partitioning = false) QUALIFY row_number() OVER (PARTITION BY identifier "
    "ORDER BY list_position($files, part) DESC, file_row_number DESC) = 1"
)
"""The rows of the intake that count."""
_OWNED = f"SELECT identifier, {_TABLE} FROM records WHERE kind = 'record' AND {_FOREIGN}"
_LISTED = f"SELECT {{}} FROM records WHERE kind = 'record' AND {_OF_TABLE}"
_RECIPES = (
    "SELECT DISTINCT part, name, recipe "
    "FROM read_parquet($files, filename = 'part', hive_partitioning = false)"
)
_WAITING = f"SELECT DISTINCT identifier FROM {engine.table('$files')} WHERE {_OF_TABLE}"


def list_live(store: Writer, namespace: str, name: str) -> Iterator[str]:
    """Yield the identifiers of the live items of a table; one may come twice."""
    values = {"own": f"oai:{namespace}:", "name": name}
    with engine.connect_reader() as connection, suppress(NothingPublished):
        query.prepare_view(connection, store, "records")
        for batch in engine.batches(connection, _LISTED.format("identifier"), values):
            yield from batch
    if files := _list_waiting(store, "own_records"):
        with engine.connect_reader() as connection:
            for batch in engine.batches(connection, _WAITING, {**values, "files": files}):
                yield from batch


def list_documents(store: Writer, namespace: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield identifier and document of the live items of a table, as the next publish has them."""
    values = {"own": f"oai:{namespace}:", "name": name}
    waiting = set[int]()
    if files := _list_waiting(store, "own_records"):
        with engine.connect_reader() as connection:
            sql = f"SELECT identifier, if({_OF_TABLE}, document, NULL) FROM ({_LATEST})"
            for batch in engine.batches(connection, sql, {**values, "files": files}):
                waiting.update(hash_identifier(identifier) for identifier, _ in batch)
                yield from ((identifier, document) for identifier, document in batch if document)
    with engine.connect_reader() as connection, suppress(NothingPublished):
        query.prepare_view(connection, store, "records")
        sql = _LISTED.format("identifier, document")
        for batch in engine.batches(connection, sql, values):
            yield from (row for row in batch if hash_identifier(row[0]) not in waiting)


class ForeignOwners:
    """Which table has each identifier that a file gave: no other may write it."""

    def __init__(self, store: Writer, namespace: str) -> None:
        self._store, self._own = store, f"oai:{namespace}:"
        self._tables: dict[int, str | None] | None = None

    def find(self, identifier: str, name: str) -> str:
        """Return the table that has an identifier; if none has, it is this one from now on."""
        if self._tables is None:
            self._tables = dict(self._list_tables())
        key = hash_identifier(identifier)
        self._tables[key] = owner = self._tables.get(key) or name
        return owner

    def pass_on(self, identifier: str, name: str) -> None:
        """Give an identifier to a table."""
        assert self._tables is not None
        self._tables[hash_identifier(identifier)] = name

    def _list_tables(self) -> Iterator[tuple[int, str | None]]:
        with engine.connect_reader() as connection, suppress(NothingPublished):
            query.prepare_view(connection, self._store, "records")
            for batch in engine.batches(connection, _OWNED, {"own": self._own}):
                yield from ((hash_identifier(identifier), name) for identifier, name in batch)
        if files := _list_waiting(self._store, "own_records"):
            with engine.connect_reader() as connection:
                sql = f"SELECT identifier, {_TABLE} FROM ({_LATEST}) WHERE {_FOREIGN}"
                for batch in engine.batches(connection, sql, {"own": self._own, "files": files}):
                    yield from ((hash_identifier(identifier), name) for identifier, name in batch)


def read_recipes(store: Writer) -> dict[str, str]:
    """Return the recipe of each table in the newest snapshot."""
    newest = Catalogue(store).pointer().newest()
    return {} if newest is None else dict(Catalogue(store).manifest(newest.snapshot).recipes)


def read_waiting_recipes(store: Writer) -> dict[str, str]:
    """Return the recipe of each table in the intake, that of the latest run."""
    if not (files := _list_waiting(store, "own_tables")):
        return {}
    with engine.connect_reader() as connection:
        rows = connection.execute(_RECIPES, {"files": files}).fetchall()
    return {name: recipe for _, name, recipe in sorted(rows, key=lambda row: files.index(row[0]))}


def read_all_recipes(store: Writer) -> dict[str, str]:
    """Return the recipe of each table, as the next publish has it."""
    return {**read_recipes(store), **read_waiting_recipes(store)}


def list_guesses(
    recipes: Mapping[str, str], declared: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    """Return the patterns of the files of each table that is not declared; none if it once was."""
    names = {table["name"] for table in declared}
    tables = {name: json.loads(text)[1] for name, text in recipes.items() if name not in names}
    return {name: table.get("files", []) for name, table in tables.items()}


def _list_waiting(store: Writer, table: str) -> list[str]:
    """Return local files of a table of the intake."""
    runs = [run for run in intake.runs(store) if not run.published]
    return intake.files(store, runs, intake.keys_of(store, runs), table) if runs else []
